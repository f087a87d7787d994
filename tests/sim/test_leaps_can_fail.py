"""The laws of clocks that leap are able to fail: each test plants a bug, and the simulator must find it."""

from __future__ import annotations

import re

import pytest

from duetime.engine.shell.pump import Pump
from duetime.kernel import claims, lifecycle, retention
from duetime.kernel.commands import leap, schedules, submit
from duetime.kernel.transitions import move
from duetime.protocol.command import Advance, Command, Demand, Leap, Submit
from duetime.protocol.intent import DISPATCHING, SCHEDULED, Item
from duetime.protocol.record import Record
from duetime.testing.laws.leaps import Leaps
from duetime.testing.sim import simulated
from tests.sim.test_checkers_can_fail import first_violation
from tests.unit.kernel.bench import T0, Bench, stream


def test_a_leap_counts_against_leases(monkeypatch):
    monkeypatch.setattr(leap, "_move_leases", lambda state, by_ms, still_ms, anew: None)
    assert "its lease is" in first_violation()


def test_a_stall_counts_against_leases(monkeypatch):
    real = leap._move_leases
    monkeypatch.setattr(leap, "_move_leases", lambda s, by_ms, still_ms, anew: real(s, by_ms, 0, anew=False))
    assert "its lease is" in first_violation()


def leap_after_a_delivery() -> None:
    """A worker with an old heartbeat and a new delivery, while the clock is set ahead."""
    bench, law = Bench(), Leaps()

    def do(ms: int, command: Command) -> None:
        bench.ms = ms
        record = Record(bench.state.records + 1, T0 + ms, command)
        law.passes(record)
        law.applied(record, bench.do(command), {})

    terms = stream(lease_ms=30_000)
    do(0, Demand("worker", "stream:s", 1))
    do(20_000, Submit((terms,), (Item("a", 0, T0 + 20_000),)))
    assert bench.status("a") is DISPATCHING
    do(85_000, Leap(60_000))
    assert bench.status("a") is DISPATCHING
    do(109_999, Advance())
    assert bench.status("a") is DISPATCHING
    do(110_000, Advance())
    assert bench.status("a") is SCHEDULED


def test_a_new_delivery_of_a_worker_with_an_old_heartbeat_loses_its_lease(monkeypatch):
    """Too rare for random seeds: about one in eighty has it."""
    leap_after_a_delivery()

    def move_leases(state, by_ms, still_ms, anew):
        for consumer in state.consumers.values():
            consumer.seen_at_ms = state.at_ms if anew else consumer.seen_at_ms + by_ms + still_ms

    monkeypatch.setattr(leap, "_move_leases", move_leases)
    with pytest.raises(AssertionError, match="its lease is"):
        leap_after_a_delivery()


def test_the_pump_does_not_notice_that_the_clock_was_set(monkeypatch):
    monkeypatch.setattr(Pump, "_notice", lambda self, batch, ahead_ms: None)
    assert "the kernel's steady clock is wrong" in first_violation()


def undoubting(monkeypatch, module, name):
    """Let one function of the kernel believe every leap at once."""
    real = getattr(module, name)

    def believing(state, *more):
        doubt_ms, state.doubt_ms = state.doubt_ms, 0
        try:
            return real(state, *more)
        finally:
            state.doubt_ms = doubt_ms

    monkeypatch.setattr(module, name, believing)


def test_retention_believes_a_leap_at_once(monkeypatch):
    undoubting(monkeypatch, retention, "apply")
    assert re.search("the dead letter .* is gone|the key .* made", first_violation())


def test_keys_believe_a_leap_at_once(monkeypatch):
    real = submit._by_key
    monkeypatch.setattr(submit, "_by_key", lambda state, item, at_ms: real(state, item, state.at_ms))
    assert re.search("the key .* made", first_violation())


def test_unique_keys_believe_a_leap_at_once(monkeypatch):
    undoubting(monkeypatch, claims, "_holder")
    assert re.search("and .* took it", first_violation())


def test_ticks_believe_a_leap_at_once(monkeypatch):
    undoubting(monkeypatch, schedules, "_tick")
    assert "decided what is not believed" in first_violation()


def test_a_leap_is_never_taken_back(monkeypatch):
    real = leap._leapt

    def leapt(state, command, before_ms):
        doubt_ms = state.doubt_ms
        real(state, command, before_ms)
        state.doubt_ms = max(doubt_ms, state.doubt_ms)

    monkeypatch.setattr(leap, "_leapt", leapt)
    assert re.search("the key .* (is free and was refused|gave)", first_violation())


def test_messages_are_overtaken_when_the_clock_is_set_back(monkeypatch):
    def early(state, intent):
        if intent.due_at_ms <= state.at_ms:
            return False
        due_at_ms = intent.due_at_ms
        lifecycle.undo_due(state, intent)
        move(state, intent, SCHEDULED)
        intent.due_at_ms = 0
        state.timers.arm(intent, due_at_ms)
        return True

    monkeypatch.setattr(lifecycle, "_early", early)
    assert "was there before" in first_violation()


def test_a_schedule_stays_where_the_clock_was(monkeypatch):
    monkeypatch.setattr(simulated, "rewound", lambda state, now_ms: ())
    assert "makes no ticks" in first_violation()


def test_a_restart_counts_against_leases(monkeypatch):
    real = leap._move_leases

    def move_leases(state, by_ms, still_ms, anew):
        if by_ms or still_ms:
            real(state, by_ms, still_ms, anew=anew)

    monkeypatch.setattr(leap, "_move_leases", move_leases)
    assert "its lease is" in first_violation()
