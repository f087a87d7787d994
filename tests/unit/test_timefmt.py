"""Times and sizes as people read them."""

from __future__ import annotations

import pytest

from duetime.timefmt import (
    NoOffset,
    NotATime,
    iso,
    iso_or_none,
    moment_of,
    ms_of,
    parse,
    plural,
    size,
    size_bytes,
)


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


@pytest.mark.parametrize(
    ("value", "at_ms"),
    [
        ("2030-01-01T01:00:00.007+01:00", 1_893_456_000_007),
        ("2030-01-01T00:00:00.0079Z", 1_893_456_000_007),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        (1_893_456_000.007, 1_893_456_000_007),
        (-1, -1_000),
    ],
)
def test_times_are_parsed(value, at_ms):
    assert parse(value) == at_ms
    assert ms_of(moment_of(at_ms)) == at_ms


@pytest.mark.parametrize("value", ["", "tomorrow", "2030-13-01", float("nan"), float("inf"), 1e308])
def test_other_values_are_not_times(value):
    with pytest.raises(NotATime):
        parse(value)


def test_a_time_without_an_offset_is_ambiguous():
    with pytest.raises(NoOffset):
        parse("2030-01-01T00:00:00")
