"""Times and sizes as people read them."""

from __future__ import annotations

import pytest

from duetime.timefmt import iso, iso_or_none, plural, size, size_bytes


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


@pytest.mark.parametrize(
    ("text", "count"),
    [("512M", 512 << 20), ("2g", 2 << 30), ("1.5 KiB", 1536), ("10MB", 10 << 20), (" 7 ", 7), ("0", 0)],
)
def test_sizes_are_read(text, count):
    assert size_bytes(text) == count


@pytest.mark.parametrize("text", ["", "M", "-1M", "512X", "1e3", "5 M M"])
def test_a_text_that_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a size; write it as 512M"):
        size_bytes(text)
