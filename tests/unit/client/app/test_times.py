"""What users say about time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from duetime.client.app.times import delay_ms, moment_ms
from duetime.errors import InvalidField
from duetime.timefmt import moment_of


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (0, 0),
        (1.5, 1_500),
        ("250ms", 250),
        ("1h30m", 5_400_000),
        ("1h 30min", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        (" 0.5S ", 500),
        (timedelta(days=30), 2_592_000_000),
        (timedelta(microseconds=1_600), 2),
    ],
)
def test_a_delay(said, meant):
    assert delay_ms(said) == meant


@pytest.mark.parametrize(
    "said", ["", "soon", "5", "5 parsecs", "1h!", -1, "-5s", float("inf"), float("nan"), True, None, []]
)
def test_an_invalid_delay_is_refused(said):
    with pytest.raises(InvalidField) as caught:
        delay_ms(said)
    assert "30d" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (1_900_000_000, 1_900_000_000_000),
        (1.25, 1_250),
        ("2030-01-01T00:00:00Z", 1_893_456_000_000),
        ("2030-01-01T02:00:00.001+02:00", 1_893_456_000_001),
        (datetime(2030, 1, 1, tzinfo=UTC), 1_893_456_000_000),
        (datetime(2030, 1, 1, 5, tzinfo=timezone(timedelta(hours=5))), 1_893_456_000_000),
    ],
)
def test_a_moment(said, meant):
    assert moment_ms(said) == meant


@pytest.mark.parametrize(
    "said", ["tomorrow", "2030-01-01T00:00:00", datetime(2030, 1, 1), 1_893_456_000_000, True, None]
)
def test_an_invalid_time_is_refused(said):
    """A moment without a zone is none; milliseconds in place of seconds are a mistake."""
    with pytest.raises(InvalidField):
        moment_ms(said)


def test_a_moment_and_back():
    assert moment_ms(moment_of(1_893_456_000_123)) == 1_893_456_000_123
