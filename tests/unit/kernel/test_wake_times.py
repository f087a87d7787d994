"""The earliest time that is still valid."""

from __future__ import annotations

from duetime.kernel.wake_times import WakeTimes


def test_stale_times_are_dropped_when_they_come_first():
    valid = {"a": 5, "b": 7}
    times = WakeTimes(lambda at_ms, name: valid.get(name) == at_ms)
    assert times.first_ms() is None
    times.add(7, "b")
    times.add(3, "a")
    times.add(5, "a")
    times.add(1, "gone")
    assert times.first_ms() == 5
    assert len(times) == 2
    assert times.take() == "a"
    assert (times.first_ms(), times.take(), times.first_ms()) == (7, "b", None)
