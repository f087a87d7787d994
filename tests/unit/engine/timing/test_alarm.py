"""The alarm on the event loop's own timer: it also rings when somebody set the clock."""

from __future__ import annotations

import asyncio

import pytest

from duetime.engine.timing.alarm import LoopAlarm
from duetime.limits import LEAP_MS
from duetime.testing.time import ManualClock


class Timer:
    """An event loop's timer, fired by hand."""

    def __init__(self) -> None:
        self.delay_s: float | None = None

    def call_later(self, delay_s, call):
        self.delay_s, self.fire = delay_s, call
        return self

    def cancel(self):
        self.delay_s = None


@pytest.fixture
def timer(monkeypatch):
    timer = Timer()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: timer)
    return timer


def test_an_alarm_rings_at_its_time_and_checks_the_clock_before(timer):
    clock, rings = ManualClock(), []
    alarm = LoopAlarm(clock, lambda: rings.append(clock.now_ms()))
    at_ms = clock.now_ms() + 40_000
    alarm.set(at_ms)
    alarm.set(at_ms)
    assert timer.delay_s == 30
    clock.set_ms(at_ms - 10_000)
    timer.fire()
    assert timer.delay_s == 10 and not rings
    clock.set_ms(at_ms)
    timer.fire()
    assert rings == [at_ms]
    alarm.close()


@pytest.mark.parametrize("by_ms", [-LEAP_MS, -7_200_000, LEAP_MS])
def test_an_alarm_rings_after_the_clock_was_set(timer, by_ms):
    clock, rings = ManualClock(), []
    alarm = LoopAlarm(clock, lambda: rings.append(1))
    alarm.set(clock.now_ms() + 3_600_000)
    clock.leap(by_ms)
    timer.fire()
    assert rings == [1], "what is planned may have to be planned again"
    alarm.set(clock.now_ms() + 1_000)
    assert timer.delay_s == 1
    alarm.close()
    assert timer.delay_s is None
