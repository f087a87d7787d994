"""Schedules in the kernel: each tick is decided once, as the overlap policy says, and survives everything."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from duetime import limits
from duetime.kernel import invariants
from duetime.kernel.commands import schedules
from duetime.kernel.kernel import Applied
from duetime.protocol.command import (
    Drain,
    DropSchedule,
    PauseSchedule,
    PutSchedule,
    ResumeSchedule,
    Tick,
    Trigger,
)
from duetime.protocol.intent import Intent
from duetime.protocol.reply import Existing
from duetime.protocol.schedule import Overlap, Schedule, Timetable, tick_id
from tests.unit.kernel.bench import T0, Bench, aborted, delivered, error, terms

EVERY = 1_000


def put(bench: Bench, next_ms: int = EVERY, **fields: Any) -> Applied:
    fields.setdefault("terms", terms())
    return bench.do(PutSchedule(Schedule("s", every_ms=EVERY, **fields), T0 + next_ms if next_ms else 0))


def table(bench: Bench, id: str = "s") -> Timetable:
    return bench.state.timetables.all[id]


def tick(bench: Bench, *times: int, next_ms: int | None = None, missed: int = 0) -> Applied:
    """The tick that is due, at its time or later; `times` and `next_ms` after T0."""
    now = table(bench)
    next_ms = times[-1] + EVERY if next_ms is None else next_ms
    bench.ms = max(bench.ms, times[-1] if times else 0)
    applied = bench.do(
        Tick("s", now.revision, now.next_ms, tuple(T0 + each for each in times), missed, T0 + next_ms)
    )
    invariants.check(bench.state)
    return applied


def at(ms: int) -> str:
    return tick_id("s", T0 + ms)


def test_a_tick_makes_an_intent_named_by_its_time():
    bench = Bench()
    put(bench, payload=b"[1]")
    assert bench.next() == EVERY
    assert delivered(tick(bench, 1000)) == [at(1000)]
    assert bench.intent(at(1000)).payload == b"[1]"
    assert bench.next() == 2000
    now = table(bench)
    assert (now.made, now.last_ms, now.last_id) == (1, T0 + 1000, at(1000))


def test_the_same_tick_again_does_nothing():
    bench = Bench()
    put(bench)
    command = Tick("s", 1, T0 + 1000, (T0 + 1000,), 0, T0 + 2000)
    bench.ms = 1000
    assert delivered(bench.do(command)) == [at(1000)]
    assert error(bench.do(command)) == "RevisionMoved"
    assert table(bench).made == 1


def test_a_tick_is_not_decided_twice_when_the_clock_goes_back():
    bench = Bench(retention_ms=0)
    put(bench)
    tick(bench, 1000)
    bench.done(at(1000))
    bench.later(120_000)
    assert bench.store.get(at(1000)) is None, "forgotten"
    bench.ms = 0
    bench.do(PauseSchedule("s"))
    bench.do(ResumeSchedule("s", T0 + 1000))
    assert delivered(tick(bench, 1000)) == []
    assert table(bench).made == 1 and table(bench).next_ms == T0 + 2000


def test_a_recreated_schedule_does_not_repeat_known_ticks():
    bench = Bench()
    put(bench)
    tick(bench, 1000)
    bench.do(DropSchedule("s"))
    bench.ms = 0
    put(bench)
    assert delivered(tick(bench, 1000)) == []
    assert table(bench).made == 0


def test_a_late_tick_is_not_too_old():
    bench = Bench()
    put(bench)
    bench.ms = 3_600_000
    assert delivered(tick(bench, 1000, next_ms=3_601_000, missed=2)) == [at(1000)]
    assert table(bench).missed == 2


def test_jitter_is_the_same_for_the_same_tick():
    bench = Bench()
    put(bench, jitter_ms=500)
    assert delivered(tick(bench, 1000)) == []
    schedule = table(bench).schedule
    late_ms = schedules.spread_ms(schedule, T0 + 1000)
    assert bench.intent(at(1000)).execute_at_ms == T0 + 1000 + late_ms
    found = {schedules.spread_ms(schedule, T0 + n) for n in range(2_000)}
    assert min(found) == 0 and max(found) == 500
    assert schedules.spread_ms(replace(schedule, jitter_ms=0), T0) == 0


def test_allow_lets_them_overlap():
    bench = Bench()
    put(bench)
    assert delivered(tick(bench, 1000)) + delivered(tick(bench, 2000)) == [at(1000), at(2000)]
    assert table(bench).live == ()


def test_skip_leaves_a_tick_out_while_one_runs():
    bench = Bench()
    put(bench, overlap=Overlap.SKIP)
    tick(bench, 1000)
    assert delivered(tick(bench, 2000)) == []
    bench.done(at(1000))
    assert delivered(tick(bench, 3000)) == [at(3000)]
    assert (table(bench).made, table(bench).skipped) == (2, 1)


def test_queue_one_waits_for_the_end_and_more_are_skipped():
    bench = Bench()
    put(bench, overlap=Overlap.QUEUE_ONE)
    tick(bench, 1000)
    tick(bench, 2000)
    tick(bench, 3000)
    assert (table(bench).queued_ms, table(bench).skipped) == (T0 + 2000, 1)
    assert delivered(bench.done(at(1000))) == [at(2000)]
    assert bench.intent(at(2000)).execute_at_ms == T0 + 2000
    assert table(bench).queued_ms == 0
    invariants.check(bench.state)


def test_a_queued_tick_is_not_refused_when_the_lane_is_full():
    bench = Bench()
    put(bench, overlap=Overlap.QUEUE_ONE)
    tick(bench, 1000)
    tick(bench, 2000)
    bench.submit("x", "y")
    bench.configure(lane_pending_max=1)
    assert delivered(bench.done(at(1000))) == [at(2000)]


def test_cancel_running_stops_the_earlier_one():
    bench = Bench()
    put(bench, overlap=Overlap.CANCEL_RUNNING)
    tick(bench, 1000)
    applied = tick(bench, 2000)
    assert aborted(applied) == [(at(1000), 1)]
    assert delivered(applied) == [at(2000)]
    assert bench.statuses(at(1000), at(2000)) == ["CANCELED", "DISPATCHING"]
    assert table(bench).live == (at(2000),)


def test_a_tick_that_cannot_be_taken_is_tried_again():
    bench = Bench(lane_pending_max=1)
    put(bench, overlap=Overlap.CANCEL_RUNNING)
    bench.submit("other")
    bench.ms = 1000
    applied = tick(bench, 1000, 2000, next_ms=3000)
    now = table(bench)
    assert isinstance(applied.answer, Timetable) and "holds 1 intents" in now.refused
    assert (now.next_ms, now.wake_ms) == (T0 + 1000, T0 + 2000 + limits.TICK_RETRY_MS)
    bench.done("other")
    assert delivered(tick(bench, 1000)) == [at(1000)]
    assert table(bench).refused == ""


def test_commands_for_an_unknown_schedule_are_refused():
    bench = Bench()
    for command in (Tick("s", 1, 1, (1,), 0, 2), Trigger("s"), PauseSchedule("s"), DropSchedule("s")):
        assert error(bench.do(command)) == "NoSuchSchedule"


def test_putting_the_same_changes_nothing_and_another_rule_replaces():
    bench = Bench()
    put(bench)
    bench.ms = 500
    put(bench, next_ms=700)
    assert table(bench).next_ms == T0 + 1000 and table(bench).revision == 1
    put(bench, next_ms=700, payload=b"2")
    assert table(bench).next_ms == T0 + 700 and table(bench).revision == 2
    assert bench.next() == 700
    assert error(bench.do(Tick("s", 1, T0 + 700, (T0 + 700,), 0, 0))) == "RevisionMoved"
    assert error(bench.do(replace(PutSchedule(table(bench).schedule, 1), revision=1))) == "RevisionMoved"
    assert error(bench.do(PauseSchedule("s", 1))) == "RevisionMoved"


@pytest.mark.parametrize("ended", [True, False])
def test_a_stricter_rule_knows_what_runs(ended):
    bench = Bench()
    put(bench)
    tick(bench, 1000)
    if ended:
        bench.done(at(1000))
    put(bench, next_ms=2000, overlap=Overlap.SKIP)
    assert table(bench).live == (() if ended else (at(1000),))
    assert delivered(tick(bench, 2000)) == ([at(2000)] if ended else [])


def test_a_stricter_rule_before_the_first_tick():
    bench = Bench()
    put(bench)
    put(bench, overlap=Overlap.SKIP)
    assert table(bench).live == ()


def test_a_looser_rule_still_sees_them_end():
    bench = Bench()
    put(bench, overlap=Overlap.SKIP)
    tick(bench, 1000)
    put(bench, next_ms=2000)
    assert delivered(tick(bench, 2000)) == [at(2000)]
    bench.done(at(1000))
    assert table(bench).live == ()
    invariants.check(bench.state)


def test_pause_and_resume():
    bench = Bench()
    put(bench)
    bench.do(PauseSchedule("s"))
    assert bench.next() is None and table(bench).revision == 2
    bench.do(PauseSchedule("s"))
    assert table(bench).revision == 2
    assert error(tick(bench, 1000)) == "RevisionMoved"
    bench.do(ResumeSchedule("s", T0 + 1000))
    assert bench.next() == 1000
    bench.do(ResumeSchedule("s", T0 + 9000))
    assert bench.next() == 1000, "it was not paused"
    invariants.check(bench.state)


def test_a_dropped_schedule_leaves_its_intents_alone():
    bench = Bench()
    put(bench, overlap=Overlap.QUEUE_ONE)
    tick(bench, 1000)
    tick(bench, 2000)
    bench.do(DropSchedule("s"))
    assert bench.next() is None
    assert delivered(bench.done(at(1000))) == []
    invariants.check(bench.state)


def test_trigger_makes_one_more_despite_a_running_one():
    bench = Bench()
    put(bench, overlap=Overlap.SKIP)
    applied = bench.do(Trigger("s"))
    assert isinstance(applied.answer, Intent)
    again = bench.do(Trigger("s"))
    assert delivered(applied) + delivered(again) == [f"s@now-{T0}", f"s@now-{T0 + 1}"]
    assert delivered(tick(bench, 1000)) == [], "they run"
    assert table(bench).made == 2


def test_a_trigger_with_a_name_makes_one():
    bench = Bench()
    put(bench)
    assert delivered(bench.do(Trigger("s", "abc"))) == ["s@now-abc"]
    again = bench.do(Trigger("s", "abc"))
    assert isinstance(again.answer, Existing) and again.answer.intent.id == "s@now-abc"
    assert delivered(again) == [] and table(bench).made == 1


def test_a_trigger_can_be_refused():
    bench = Bench(lane_pending_max=1)
    put(bench)
    bench.submit("other")
    assert error(bench.do(Trigger("s"))) == "LaneFull"


def test_the_last_tick():
    bench = Bench()
    put(bench)
    bench.ms = 1000
    bench.do(Tick("s", 1, T0 + 1000, (T0 + 1000,), 0, 0))
    assert bench.next() is None and table(bench).next_ms == 0
    invariants.check(bench.state)


def test_the_number_of_schedules_is_limited(monkeypatch):
    monkeypatch.setattr(schedules, "SCHEDULES_MAX", 1)
    bench = Bench()
    put(bench)
    assert error(bench.do(PutSchedule(Schedule("t", terms(), every_ms=1000), T0))) == "Busy"


def test_a_draining_engine_starts_no_new_ticks():
    bench = Bench()
    put(bench)
    bench.do(Drain())
    assert bench.next() is None
    bench.start()
    assert bench.next() == 1000


def test_a_checkpoint_has_all_of_it():
    bench = Bench()
    put(bench, overlap=Overlap.QUEUE_ONE)
    tick(bench, 1000)
    tick(bench, 2000)
    bench.save()
    second = bench.thawed()
    assert table(second) == table(bench)
    assert second.next() == bench.next() == 3000
    assert delivered(second.done(at(1000))) == [at(2000)]
    invariants.check(second.state)


def test_an_intent_that_ends_at_its_deadline_is_noticed():
    bench = Bench()
    put(bench, overlap=Overlap.QUEUE_ONE)
    bench.submit("busy", deadline=5)
    tick(bench, 1000)
    tick(bench, 2000)
    bench.fail(at(1000))
    bench.patch(at(1000), deadline_ms=T0 + 2500)
    assert at(2000) in delivered(bench.at(2500))
    assert bench.status(at(1000)).name == "EXPIRED"
    invariants.check(bench.state)
