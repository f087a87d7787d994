"""One armed timer for the whole engine, on the wall clock.

On Linux it is a timerfd: it fires at a moment of the wall clock, to the microsecond, and at once when
the clock is set, so a clock jump is noticed without polling. Elsewhere it is the event loop's own timer,
which checks again every half minute in case the clock was set.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

from duetime.clock import Alarm, AlarmClock, Clock, SystemClock, ahead_of
from duetime.limits import ALARM_CHECK_S, LEAP_MS

_CLOCK_REALTIME = 0
_TFD_TIMER_ABSTIME = 1
_TFD_TIMER_CANCEL_ON_SET = 2


class LoopAlarm:
    """Uses the event loop's own timer."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ahead_of = ahead_of(clock)
        self._ahead_ms = 0
        self._ring = ring
        self._at_ms: int | None = None
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at_ms: int | None) -> None:
        if at_ms == self._at_ms:
            return
        self._at_ms = at_ms
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if at_ms is not None:
            self._wait()

    def close(self) -> None:
        self.set(None)

    def _wait(self) -> None:
        assert self._at_ms is not None
        self._ahead_ms = self._ahead_of()
        delay_s = max(0.0, min((self._at_ms - self._clock.now_ms()) / 1000, ALARM_CHECK_S))
        self._handle = asyncio.get_running_loop().call_later(delay_s, self._look)

    def _look(self) -> None:
        leapt = abs(self._ahead_of() - self._ahead_ms) >= LEAP_MS
        if self._at_ms is not None and self._clock.now_ms() < self._at_ms and not leapt:
            self._wait()
        else:
            self._at_ms = self._handle = None
            self._ring()


class _Itimerspec(ctypes.Structure):
    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long),
        ("value_ns", ctypes.c_long),
    )


class TimerfdAlarm:
    """Uses a timerfd of the wall clock."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = -1
        self._at_ms: int | None = None

    def set(self, at_ms: int | None) -> None:
        if self._fd < 0:
            self._open()  # with the first call, at the start: later there may be no file descriptor left
        elif at_ms == self._at_ms:
            return
        self._at_ms = at_ms
        # A moment in the past rings at once; all zeros would disarm.
        seconds, millis = divmod(max(1, at_ms), 1000) if at_ms is not None else (0, 0)
        spec = _Itimerspec(0, 0, seconds, millis * 1_000_000)
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        if self._libc.timerfd_settime(self._fd, flags, ctypes.byref(spec), None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        self._fd = self._libc.timerfd_create(_CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        asyncio.get_running_loop().add_reader(self._fd, self._look)

    def _look(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        except OSError:  # ECANCELED: the clock was set, so it may be time, or not any more
            pass
        self._at_ms = None
        self._ring()


def make_alarm(clock: Clock, ring: Callable[[], None]) -> Alarm:
    """The best alarm for this clock: the one an `AlarmClock` makes, otherwise the system's."""
    if isinstance(clock, AlarmClock):
        return clock.alarm(ring)
    if isinstance(clock, SystemClock) and _has_timerfd():
        return TimerfdAlarm(ring)
    return LoopAlarm(clock, ring)


def _has_timerfd() -> bool:
    return hasattr(ctypes.CDLL(None), "timerfd_create")  # tidy: a function of the C library
