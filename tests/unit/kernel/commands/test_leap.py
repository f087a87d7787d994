"""Clocks that are set, and engines that stand still: leases, order, ticks, keys and retention."""

from __future__ import annotations

import pytest

from duetime.kernel import invariants
from duetime.limits import DAY_MS, HOUR_MS, LEAP_BELIEVED_MS, MINUTE_MS, SECOND_MS
from duetime.protocol.command import Leap, PutSchedule, Start, Tick
from duetime.protocol.intent import Ties
from duetime.protocol.outcome import Rejected
from duetime.protocol.schedule import Schedule, tick_id
from duetime.protocol.terms import Claim, Guarantee, Limit, Until
from tests.unit.kernel.bench import T0, Bench, delivered, entity, error, stream, terms

LANE = "stream:s"
LEASE = 30_000


def leap(bench: Bench, by_ms: int, passed_ms: int = 0, still_ms: int = 0):
    """The clock is set; besides, so much time really passed."""
    bench.ms += by_ms + passed_ms
    applied = bench.do(Leap(by_ms, still_ms))
    invariants.check(bench.state)
    return applied


def leased(lease_ms: int = LEASE, **more) -> Bench:
    """A worker that holds a delivery and has spoken a second ago."""
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=lease_ms, **more))
    bench.demand("w", LANE)
    bench.later(9_000)
    bench.beat("w")
    bench.later(1_000)
    return bench


# Leases.


@pytest.mark.parametrize("by_ms", [35_000, 2 * HOUR_MS, 40 * DAY_MS])
def test_a_clock_set_ahead_makes_no_worker_silent(by_ms):
    bench = leased(guarantee=Guarantee.AT_MOST_ONCE)
    leap(bench, by_ms)
    assert bench.statuses("a") == ["DISPATCHING"]
    bench.later(LEASE - 1_001)
    assert bench.statuses("a") == ["DISPATCHING"], "a second of its lease was over"
    bench.later(1)
    assert bench.statuses("a") == ["DEAD_LETTERED"]


def test_a_clock_set_back_does_not_make_a_lease_longer():
    bench = leased()
    leap(bench, -HOUR_MS, passed_ms=500)
    bench.later(LEASE - 1_501)
    assert bench.statuses("a") == ["DISPATCHING"]
    bench.later(1)
    assert bench.statuses("a") == ["SCHEDULED"]


def test_a_leap_and_its_reversal_leave_a_lease_unchanged():
    bench = leased()
    started_ms = bench.intent("a").dispatched_at_ms
    leap(bench, HOUR_MS)
    leap(bench, -HOUR_MS)
    assert bench.intent("a").dispatched_at_ms == started_ms
    assert bench.intent("a").wake_at_ms == T0 + 9_000 + LEASE


def test_a_leap_does_not_change_the_measured_duration():
    bench = Bench()
    bench.submit("a")
    bench.later(1_000)
    leap(bench, 40 * DAY_MS)
    assert T0 + bench.ms - bench.intent("a").dispatched_at_ms == 1_000
    leap(bench, -41 * DAY_MS)
    assert T0 + bench.ms - bench.intent("a").dispatched_at_ms == 1_000


def test_time_in_which_the_engine_stood_still_does_not_count():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=3_000))
    bench.demand("w", LANE)
    leap(bench, 0, passed_ms=4_500, still_ms=4_400)
    assert bench.statuses("a") == ["DISPATCHING"]
    bench.later(2_899)
    assert bench.statuses("a") == ["DISPATCHING"], "a tenth of a second was not the engine's fault"
    bench.later(1)
    assert bench.statuses("a") == ["SCHEDULED"]


def test_after_a_long_stall_a_worker_has_a_whole_lease_to_come_back():
    bench = leased()
    bench.later(LEASE - 2_000)
    leap(bench, 0, passed_ms=HOUR_MS, still_ms=HOUR_MS)
    bench.later(LEASE - 1)
    assert bench.statuses("a") == ["DISPATCHING"]
    bench.later(1)
    assert bench.statuses("a") == ["SCHEDULED"]


@pytest.mark.parametrize("away_ms", [DAY_MS, -DAY_MS, 0])
def test_time_without_an_engine_does_not_count(away_ms):
    bench = leased(guarantee=Guarantee.AT_MOST_ONCE)
    bench.save()
    bench = bench.thawed()
    bench.ms += away_ms
    bench.do(Start(1))
    invariants.check(bench.state)
    bench.later(LEASE - 1)
    assert bench.statuses("a") == ["DISPATCHING"]
    bench.later(1)
    assert bench.statuses("a") == ["DEAD_LETTERED"]


def test_by_the_old_rules_a_lease_runs_on_without_an_engine():
    bench = leased()
    bench.ms += DAY_MS
    bench.do(Start(1, rules=1))
    assert bench.statuses("a") == ["SCHEDULED"]


def test_a_rate_is_not_filled_by_a_leap():
    bench = Bench()
    limited = terms(limits=(Limit("k", 1, 10_000, 1),))
    assert delivered(bench.submit("a", "b", on=limited)) == ["a"]
    assert delivered(leap(bench, HOUR_MS)) == []
    assert delivered(leap(bench, -HOUR_MS, passed_ms=4_000)) == [], "only four seconds passed"
    assert delivered(bench.later(5_999)) == []
    assert delivered(bench.later(1)) == ["b"]


# The order of an entity's messages.


def test_messages_of_an_entity_keep_their_order_when_the_clock_is_set_back():
    bench = Bench()
    bench.submit("1", "2", "3", on=entity())
    leap(bench, -1_000)
    bench.submit("4", "5", on=entity())
    order = ["1"]
    for _ in range(4):
        applied = bench.done(order[-1])
        while not (went := delivered(applied)):
            assert bench.ms < 0, "nothing is early by the clock on the wall"
            applied = bench.later(100)
        invariants.check(bench.state)
        order += went
    assert order == ["1", "2", "3", "4", "5"]
    assert bench.ms == 0, "and not a moment too late"


def test_the_order_survives_a_restart():
    bench = Bench()
    bench.submit("1", "2", "3", on=entity())
    leap(bench, -1_000)
    bench.submit("4", on=entity())
    assert delivered(bench.done("1")) == []
    bench.save()
    bench = bench.thawed()
    invariants.check(bench.state)
    assert delivered(bench.submit("5", on=entity())) == []
    bench.at(0)
    assert bench.statuses("2", "3", "4", "5") == ["DISPATCHING", "DUE", "DUE", "DUE"]


def test_an_entity_does_not_wait_for_a_message_that_was_to_come_later_anyway():
    bench = Bench()
    bench.submit("1", on=entity())
    bench.submit("in 30 days", on=entity(), delay=30 * DAY_MS)
    leap(bench, 40 * DAY_MS)
    leap(bench, -40 * DAY_MS)
    bench.submit("2", on=entity())
    assert delivered(bench.done("1")) == ["2"]
    assert bench.statuses("in 30 days") == ["SCHEDULED"]


def test_messages_behind_one_of_a_wrong_clock_can_be_released():
    bench = Bench()
    bench.submit("1", on=entity())
    leap(bench, DAY_MS)
    bench.submit("2", "3", on=entity())
    leap(bench, -DAY_MS)
    bench.submit("4", on=entity())
    assert delivered(bench.done("1")) == []
    assert delivered(bench.fire("2")) == ["2"]
    bench.done("2")
    assert bench.statuses("3", "4") == ["SCHEDULED", "DUE"]
    assert delivered(bench.cancel("3")) == ["4"]


def test_by_the_old_rules_they_overtake():
    bench = Bench()
    bench.do(Start(1, rules=1))
    bench.submit("1", "2", on=entity())
    bench.ms = -1_000
    bench.submit("3", on=entity())
    assert delivered(bench.done("1")) == ["3"]


# What is forgotten.


def dead(bench: Bench, id: str = "dead", **more) -> None:
    bench.submit(id, **more)
    bench.settle(id, Rejected("bad", "never"))


def test_dead_letters_survive_a_leap_that_does_not_last():
    bench = Bench()
    dead(bench)
    leap(bench, 40 * DAY_MS)
    bench.later(LEAP_BELIEVED_MS - 1)
    assert bench.statuses("dead") == ["DEAD_LETTERED"]
    leap(bench, -40 * DAY_MS)
    bench.later(LEAP_BELIEVED_MS)
    assert bench.statuses("dead") == ["DEAD_LETTERED"] and not bench.state.doubt_ms
    bench.later(30 * DAY_MS)
    assert bench.store.get("dead") is None


def test_a_leap_that_lasts_is_believed():
    bench = Bench()
    dead(bench)
    leap(bench, 40 * DAY_MS)
    bench.later(LEAP_BELIEVED_MS)
    assert bench.store.get("dead") is None


def test_a_key_survives_a_leap_that_does_not_last():
    bench = Bench()
    bench.submit("a", key="k")
    leap(bench, 40 * DAY_MS)
    bench.submit("b", key="k")
    leap(bench, -40 * DAY_MS)
    bench.submit("c", key="k")
    assert bench.store.get("b") is None and bench.store.get("c") is None
    leap(bench, 40 * DAY_MS)
    bench.later(LEAP_BELIEVED_MS)
    bench.submit("d", key="k")
    assert bench.store.get("d") is not None


def test_a_unique_key_survives_a_leap_that_does_not_last():
    bench = Bench()
    once = Ties(Claim("u", Until.TIME, HOUR_MS))
    bench.submit("a", ties=once)
    leap(bench, 2 * HOUR_MS)
    bench.submit("b", ties=once)
    assert bench.store.get("b") is None
    bench.later(LEAP_BELIEVED_MS)
    bench.submit("c", ties=once)
    assert bench.store.get("c") is not None


def test_the_doubt_counts_from_the_last_large_leap():
    bench = Bench()
    dead(bench)
    leap(bench, 20 * DAY_MS)
    bench.later(LEAP_BELIEVED_MS - 1)
    leap(bench, 20 * DAY_MS)
    bench.later(LEAP_BELIEVED_MS - 1)
    leap(bench, SECOND_MS)
    assert bench.statuses("dead") == ["DEAD_LETTERED"]
    bench.later(1)
    assert bench.store.get("dead") is None and not bench.state.doubt_ms


def test_a_leap_back_removes_only_its_own_length_of_doubt():
    bench = Bench()
    leap(bench, 10 * DAY_MS)
    leap(bench, -4 * DAY_MS)
    assert bench.state.believed_ms() == T0
    leap(bench, -7 * DAY_MS)
    assert bench.state.believed_ms() == T0 - DAY_MS


def test_doubt_survives_a_restart():
    bench = Bench()
    dead(bench)
    leap(bench, 40 * DAY_MS)
    bench.save()
    bench = bench.thawed()
    bench.ms += 10_000
    bench.do(Start(1))
    assert bench.state.believed_ms() == T0
    bench.ms -= 40 * DAY_MS
    bench.do(Start(2))
    assert bench.statuses("dead") == ["DEAD_LETTERED"] and bench.state.doubt_ms == 10_000


def test_a_start_with_a_leapt_clock_is_not_believed_at_once():
    bench = Bench()
    dead(bench)
    bench.ms += 40 * DAY_MS
    bench.do(Start(1))
    assert bench.statuses("dead") == ["DEAD_LETTERED"]
    bench.later(LEAP_BELIEVED_MS)
    assert bench.store.get("dead") is None


def test_an_engine_that_runs_a_minute_a_day_also_forgets():
    bench = Bench()
    dead(bench)
    for day in range(1, 33):
        bench.ms = day * DAY_MS
        bench.do(Start(day))
        bench.later(MINUTE_MS)
        assert bench.state.believed_ms() >= T0 + (day - 1) * DAY_MS
    assert bench.store.get("dead") is None


def test_the_first_start_of_all_doubts_nothing():
    bench = Bench()
    bench.do(Start(1))
    assert not bench.state.doubt_ms


# Ticks.


def test_a_tick_of_a_leap_is_not_the_last_word():
    bench = Bench()
    bench.do(PutSchedule(Schedule("s", terms(), every_ms=1_000), T0 + 1_000))
    leap(bench, 2 * HOUR_MS)
    late = T0 + 2 * HOUR_MS
    bench.do(Tick("s", 1, T0 + 1_000, (late,), 7_199, late + 1_000))
    assert bench.state.timetables.all["s"].newest_ms == late
    assert delivered(leap(bench, -2 * HOUR_MS)) == []
    bench.do(Tick("s", 1, late + 1_000, (), 0, T0 + 1_000))
    assert bench.state.timetables.all["s"].newest_ms == T0, "the clock came back"
    bench.at(1_000)
    assert delivered(bench.do(Tick("s", 1, T0 + 1_000, (T0 + 1_000,), 0, T0 + 2_000))) == [
        tick_id("s", T0 + 1_000)
    ]
    bench.at(2 * HOUR_MS)
    assert delivered(bench.do(Tick("s", 1, T0 + 2_000, (late,), 0, late + 1_000))) == [], "it was made"
    assert bench.state.timetables.all["s"].last_ms == late


def test_the_newest_tick_is_shown_though_the_clock_is_not_believed_yet():
    """The engine was down for ten minutes: for an hour nobody knows whether it was not the clock."""
    bench = Bench()
    bench.do(PutSchedule(Schedule("s", terms(), every_ms=1_000), T0 + 1_000))
    bench.ms = 10 * MINUTE_MS
    bench.do(Start(2, rules=2))
    down = T0 + 10 * MINUTE_MS
    bench.do(Tick("s", 1, T0 + 1_000, (down,), 598, down + 1_000))
    table = bench.state.timetables.all["s"]
    assert (table.newest_ms, table.last_ms) == (down, T0)
    bench.later(LEAP_BELIEVED_MS)
    bench.do(Tick("s", 1, down + 1_000, (T0 + bench.ms,), 3_598, T0 + bench.ms + 1_000))
    table = bench.state.timetables.all["s"]
    assert table.newest_ms == table.last_ms == T0 + bench.ms


def test_ticks_decided_before_a_leap_stay_decided():
    bench = Bench(retention_ms=0)
    bench.do(PutSchedule(Schedule("s", terms(), every_ms=1_000), T0 + 1_000))
    bench.at(1_000)
    bench.do(Tick("s", 1, T0 + 1_000, (T0 + 1_000,), 0, T0 + 2_000))
    leap(bench, HOUR_MS)
    late = T0 + HOUR_MS
    bench.do(Tick("s", 1, T0 + 2_000, (late,), 3_598, late + 1_000))
    assert bench.state.timetables.all["s"].last_ms == T0 + 1_000
    assert error(bench.do(Tick("s", 1, T0 + 2_000, (), 0, T0))) == "RevisionMoved"
