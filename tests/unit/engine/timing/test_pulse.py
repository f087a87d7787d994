"""The pulse: notices that the event loop stood still, and only while somebody holds something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from duetime.clock import Clock, SystemClock
from duetime.engine.shell.pump import Pump
from duetime.engine.timing import pulse as module
from duetime.engine.timing.pulse import Pulse
from duetime.kernel.kernel import Kernel
from duetime.limits import PULSE_MS, STALL_MS, STALL_RENEWS_MS
from duetime.log.memory import MemoryLog
from duetime.store.memory import MemoryStore
from duetime.testing.time import ManualClock
from tests.unit.kernel.bench import Bench, stream


class Beats:
    """An event loop's timer and clock, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Clock | None = None) -> None:
        self.ms = 1_000
        self.calls: list[Callable[[], None]] = []
        monkeypatch.setattr(module, "monotonic_ns", lambda: self.ms * 1_000_000)
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)
        self.bench = Bench(MemoryStore())
        kernel = Kernel(self.bench.store)
        kernel.state = self.bench.state
        self.pump = Pump(MemoryLog(), kernel, SystemClock(), 0, lambda: 1)
        self.pulse = Pulse(self.pump, clock if clock is not None else SystemClock())

    def call_later(self, delay_s, call):
        assert delay_s == PULSE_MS / 1000
        self.calls.append(call)
        return self

    def cancel(self):
        self.calls.clear()

    def beat(self, late_ms: int = 0) -> None:
        """The timer fires."""
        self.ms += PULSE_MS + late_ms
        self.calls.pop()()

    def hold(self) -> None:
        self.bench.submit("a", on=stream())
        self.bench.demand("w", "stream:s")
        self.pulse.plan()


@pytest.fixture
def beats(monkeypatch):
    return Beats(monkeypatch)


def test_without_a_worker_there_is_no_pulse(beats):
    beats.pulse.plan()
    assert not beats.calls and not beats.pulse.stood_still() and not beats.pulse.stalled_lately()
    beats.pulse.close()


def test_a_clock_set_by_hand_needs_none(monkeypatch):
    beats = Beats(monkeypatch, ManualClock())
    beats.hold()
    beats.pulse.deaf(10_000)
    assert not beats.calls and not beats.pump.stood_still()


def test_the_pulse_beats_while_a_delivery_is_held_and_then_ends(beats):
    beats.hold()
    beats.pulse.plan()
    for _ in range(3):
        assert len(beats.calls) == 1
        beats.beat(late_ms=STALL_MS - 1)
    assert beats.pump.stood_still() == 0
    beats.bench.done("a")
    beats.beat()
    assert not beats.calls


def test_a_late_heartbeat_is_reported_once(beats):
    beats.hold()
    beats.beat(late_ms=3_000)
    assert beats.pulse.stalled_lately()
    assert beats.pump.stood_still() == 3_000
    assert beats.pump.stood_still() == 0


def test_a_turn_that_comes_before_the_late_beat_knows_it_already(beats):
    beats.hold()
    beats.ms += PULSE_MS + 4_000
    assert beats.pump.stood_still() == 4_000
    beats.calls.pop()()
    assert beats.pump.stood_still() == 0, "it is not told again"


def test_lately_is_over_after_a_while(beats):
    beats.hold()
    beats.ms += PULSE_MS + 4_000
    assert beats.pulse.stalled_lately(), "who leaves before the beat knows it, too"
    beats.bench.done("a")
    beats.calls.pop()()
    beats.ms += STALL_RENEWS_MS
    assert not beats.pulse.stalled_lately()


def test_closed_it_beats_no_more(beats):
    beats.hold()
    beats.pulse.close()
    assert not beats.calls


def test_time_in_which_nothing_was_taken_from_the_inbox_counts_like_a_standstill(beats):
    beats.pulse.deaf(10_000)
    assert beats.pump.stood_still() == 0, "nobody holds anything"
    beats.hold()
    beats.pulse.deaf(STALL_MS - 1)
    assert beats.pump.stood_still() == 0
    beats.beat(late_ms=2_000)
    beats.pulse.deaf(10_000)
    assert beats.pump.stood_still() == 10_000, "the loop stood still within that time"
