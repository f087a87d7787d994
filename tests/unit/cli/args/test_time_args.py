"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime.cli.args import time_args
from duetime.client.app.times import moment_ms
from duetime.errors import InvalidField
from duetime.timefmt import moment_of

# A Thursday, 10:30 in UTC and 11:30 in Paris.
NOW = datetime(2030, 1, 31, 10, 30, tzinfo=UTC)
NOW_MS = moment_ms(NOW)


def at(text: str) -> str:
    return moment_of(time_args.moment(text, NOW_MS)).isoformat()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2030-01-31T10:30:00+00:00"),
        ("2030-02-01T09:00+01:00", "2030-02-01T08:00:00+00:00"),
        ("2030-02-01T09:00Z", "2030-02-01T09:00:00+00:00"),
        ("2030-02-01 09:00:30.5+01:00", "2030-02-01T08:00:30.500000+00:00"),
        ("1900000000", "2030-03-17T17:46:40+00:00"),
        ("in 1h30m", "2030-01-31T12:00:00+00:00"),
        ("in 90", "2030-01-31T10:31:30+00:00"),
        ("+90s", "2030-01-31T10:31:30+00:00"),
        ("2h ago", "2030-01-31T08:30:00+00:00"),
        ("tomorrow 9:00 Europe/Paris", "2030-02-01T08:00:00+00:00"),
        ("today 23:59:59 UTC", "2030-01-31T23:59:59+00:00"),
        ("11:00 UTC", "2030-01-31T11:00:00+00:00"),
        ("10:00 UTC", "2030-02-01T10:00:00+00:00"),
        ("9am Europe/Paris", "2030-02-01T08:00:00+00:00"),
        ("12am UTC", "2030-02-01T00:00:00+00:00"),
        ("12:15 pm UTC", "2030-01-31T12:15:00+00:00"),
        ("friday 17:30 UTC", "2030-02-01T17:30:00+00:00"),
        ("thu 9:00 UTC", "2030-02-07T09:00:00+00:00"),
        ("2030-07-01 09:00 Europe/Paris", "2030-07-01T07:00:00+00:00"),
        ("2030-07-01T09:00 Europe/Paris", "2030-07-01T07:00:00+00:00"),
        ("2030-07-01 09:00 America/New_York", "2030-07-01T13:00:00+00:00"),
    ],
)
def test_a_moment(text, expected):
    assert at(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "soon", "tomorrow", "9", "25:00", "13pm", "9:60", "someday 9:00", "2030-02-31 09:00",
        "in soon",
        "9:00 Mars/Olympus", "9:00 ../etc", "tomorrow 9:00 extra Europe/Paris", "-5",
    ],
)  # fmt: skip
def test_an_invalid_time_is_refused_with_a_hint(text):
    with pytest.raises(InvalidField) as caught:
        time_args.moment(text, NOW_MS)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "millis"), [("5", 5_000), (" 0.5 ", 500), ("30s", 30_000), ("1h30m", 5_400_000)]
)
def test_a_length_of_time(text, millis):
    assert time_args.length(text) == millis


@pytest.mark.parametrize("text", ["", "-5", "soon", "1900000000", "5 parsecs", "1e3"])
def test_an_invalid_duration_is_refused(text):
    with pytest.raises(InvalidField, match="not a duration"):
        time_args.length(text)


def test_an_hour_that_the_clocks_jump_over_does_not_exist():
    with pytest.raises(InvalidField, match="does not exist"):
        time_args.moment("2030-03-31 02:30 Europe/Paris", NOW_MS)


def test_without_a_zone_it_is_this_machines(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert at("tomorrow 9:00") == "2030-02-01T14:00:00+00:00"
    finally:
        monkeypatch.undo()
        time.tzset()
