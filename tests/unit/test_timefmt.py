"""Times and sizes as people read them."""

from __future__ import annotations

import pytest

from duetime.timefmt import iso, iso_or_none, plural, size


def test_moments():
    assert iso(1_893_456_000_007) == "2030-01-01T00:00:00.007Z"
    assert iso(-1) == "1969-12-31T23:59:59.999Z"
    assert iso(-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"
    assert iso_or_none(0) is None
    assert iso_or_none(None) is None
    assert iso_or_none(1_000) == "1970-01-01T00:00:01.000Z"


@pytest.mark.parametrize(
    ("count", "text"), [(5, "5 B"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (1 << 31, "2.0 GiB")]
)
def test_sizes(count, text):
    assert size(count) == text


def test_plurals():
    assert (plural(1, "intent"), plural(2_000, "intent")) == ("1 intent", "2,000 intents")
