"""When an intent is looked at again: never early, a little late, by tier."""

from __future__ import annotations

import random

import pytest

from duetime.kernel.commands import advance
from duetime.kernel.invariants import check
from duetime.kernel.timers import Timers
from duetime.limits import DAY_MS, TIER_SLOT_MS, TIER_WINDOW_MS, WAKES_MAX
from duetime.protocol.command import Patch
from duetime.protocol.intent import Intent, Status
from duetime.store.memory import MemoryStore
from duetime.store.store import SEQ_MAX
from tests.unit.kernel.bench import T0, Bench, delivered, errors, queue


@pytest.mark.parametrize("tier", range(5))
@pytest.mark.parametrize("delay", [1, 7, 49, 50, 51, 99, 100, 101, 1_001])
def test_nothing_is_early_and_late_by_less_than_a_slot(tier, delay):
    bench = Bench()
    bench.state.timers.extend(T0 + DAY_MS, 10)
    bench.submit("a", on=queue("q", tier=tier), delay=delay)
    assert delivered(bench.at(delay - 1)) == []
    wake = bench.next()
    assert wake is not None and delay <= wake < delay + TIER_SLOT_MS[tier]
    if wake > delay:
        assert delivered(bench.at(delay)) == []
        assert delivered(bench.at(wake - 1)) == []
    assert delivered(bench.at(wake)) == ["a"]
    assert bench.intent("a").late_ms == wake - delay < TIER_WINDOW_MS[tier]


def test_following_the_alarm_alone_fires_everything_in_its_slot():
    bench = Bench()
    delays = {f"i{n}": 37 * n + 1 for n in range(200)}
    for n, (id, delay) in enumerate(delays.items()):
        bench.submit(id, on=queue("q", tier=n % 5), delay=delay)
    seen = {}
    while (wake := bench.next()) is not None:
        assert wake > bench.ms or wake == bench.ms
        for id in delivered(bench.at(wake)):
            seen[id] = wake
            seen.update(dict.fromkeys(delivered(bench.done(id)), wake))
    assert seen.keys() == delays.keys()
    for n, (id, delay) in enumerate(delays.items()):
        assert delay <= seen[id] < delay + TIER_SLOT_MS[n % 5]


def test_intents_of_one_slot_are_one_cohort_and_one_wake_up():
    bench = Bench()
    bench.kernel.state.timers.extend(T0 + DAY_MS, 10)
    bench.submit(*(f"i{n}" for n in range(49)), delay=1_000)
    for n in range(50):
        bench.submit(f"j{n}", delay=951 + n)
    assert bench.state.timers.cohorts == 1
    assert len(bench.at(1_000).changes) > 99


def test_a_cancelled_intent_does_not_wake():
    bench = Bench()
    bench.submit("a", "b", delay=100)
    bench.cancel("a")
    applied = bench.at(100)
    assert {change.id for change in applied.changes} == {"b"}


def test_a_moved_intent_wakes_once():
    bench = Bench()
    bench.state.timers.extend(T0 + DAY_MS, 10)
    bench.submit("a", delay=100)
    for delay in (200, 100, 300, 100, 200):
        bench.patch("a", execute_at_ms=T0 + delay)
    assert delivered(bench.at(100)) == []
    assert delivered(bench.at(200)) == ["a"]
    assert delivered(bench.at(300)) == []


def test_an_intent_far_away_is_not_armed_until_its_window_comes():
    bench = Bench()
    bench.state.timers.extend(T0 + 1_000, 10)
    bench.submit("far", delay=DAY_MS)
    bench.submit("near", delay=500)
    assert bench.state.timers.cohorts == 1
    assert bench.next() == 500
    bench.at(500)
    assert bench.next() == DAY_MS, "the first wake behind the edge"
    bench.state.timers.extend(T0 + DAY_MS, 10)
    assert bench.intent("far").armed >> 3 == T0 + DAY_MS
    assert delivered(bench.at(DAY_MS)) == ["far"]


def test_without_a_window_a_cold_intent_still_fires():
    bench = Bench()
    bench.submit("a", delay=DAY_MS)
    assert bench.state.timers.cohorts == 0
    assert delivered(bench.at(DAY_MS)) == ["a"]


def test_a_window_is_loaded_in_parts():
    bench = Bench()
    timers = bench.state.timers
    bench.submit(*(f"i{n}" for n in range(10)), delay=1_000)
    assert timers.extend(T0 + 5_000, 4) is True
    assert sum(1 for n in range(10) if bench.intent(f"i{n}").armed) == 4
    assert timers.extend(T0 + 5_000, 4) is True
    assert timers.extend(T0 + 5_000, 4) is False
    assert sum(1 for n in range(10) if bench.intent(f"i{n}").armed) == 10
    assert bench.store.edge == (T0 + 5_000, SEQ_MAX)
    assert len(delivered(bench.at(1_000))) == 10


def test_between_two_parts_of_a_window_nothing_is_lost():
    """A new intent of the very millisecond at which the first part ended goes to its side of the edge."""
    bench = Bench()
    timers = bench.state.timers
    bench.submit("a", "b", "c", delay=1_000)
    timers.extend(T0 + 5_000, 2)
    bench.submit("d", delay=1_000)
    bench.submit("e", delay=999)
    timers.extend(T0 + 5_000, 2)
    timers.extend(T0 + 5_000, 2)
    assert sorted(delivered(bench.at(1_000))) == ["a", "b", "c", "d", "e"]


def test_no_wake_at_all_is_no_alarm():
    bench = Bench()
    bench.submit("a")
    assert bench.next() is None


def test_the_alarm_is_the_earlier_of_slot_and_far():
    bench = Bench()
    bench.state.timers.extend(T0 + 1_000, 10)
    bench.submit("far", delay=2_000)
    assert bench.next() == 2_000
    bench.submit("farther", delay=3_000)
    assert bench.next() == 2_000
    bench.submit("nearer", delay=1_500)
    assert bench.next() == 1_500
    bench.submit("near", delay=900)
    assert bench.next() == 900


def test_the_far_alarm_is_asked_of_the_store_once():
    class Counting(MemoryStore):
        asked = 0

        def next_wake(self):
            self.asked += 1
            return super().next_wake()

    store = Counting()
    bench = Bench(store)
    bench.submit("a", delay=5_000)
    assert [bench.next() for _ in range(5)] == [5_000] * 5
    bench.submit("b", delay=4_000)
    assert bench.next() == 4_000
    assert store.asked == 1


def test_disarming_is_forgetting_the_slot():
    store = MemoryStore()
    store.edge = (T0 + DAY_MS, SEQ_MAX)
    timers = Timers(store)
    on = queue("q")
    intent = Intent(1, "a", on, b"", Status.SCHEDULED, T0 + 50, 0, T0, T0)
    timers.arm(intent, T0 + 50)
    timers.arm(intent, 0)
    assert (intent.armed, intent.wake_at_ms) == (0, 0)
    assert timers.expire(T0 + 100) == []
    assert timers.next_ms() is None


def test_arming_the_same_slot_twice_is_one_entry():
    store = MemoryStore()
    store.edge = (T0 + DAY_MS, SEQ_MAX)
    timers = Timers(store)
    intent = Intent(1, "a", queue("q"), b"", Status.SCHEDULED, T0 + 50, 0, T0, T0)
    timers.arm(intent, T0 + 50)
    timers.arm(intent, T0 + 49)
    timers.arm(intent, 0)
    timers.arm(intent, T0 + 50)
    assert timers.expire(T0 + 50) == [intent]


def test_a_window_that_ended_in_the_middle_of_a_millisecond_is_completed_when_that_moment_comes():
    bench = Bench()
    bench.submit("a", "b", "c", delay=1_000)
    bench.state.timers.extend(T0 + 1_000, 2)
    assert bench.store.edge == (T0 + 1_000, 2)
    assert delivered(bench.at(1_000)) == ["a", "b", "c"]


# More is due than one record wakes.


def many(bench: Bench, count: int, prefix: str = "i", **on: object) -> None:
    bench.submit(*(f"{prefix}{n}" for n in range(count)), on=queue("q", **on), delay=1_000)


def due(bench: Bench) -> int:
    return bench.state.counts[Status.DUE] + bench.state.counts[Status.DISPATCHING]


def test_one_record_wakes_a_slice_and_the_next_record_continues():
    bench = Bench()
    many(bench, 3 * WAKES_MAX + 1)
    for slice in (1, 2, 3):
        bench.at(1_000)
        assert due(bench) == slice * WAKES_MAX
        assert bench.next() == 1_000, "there is more, now"
    bench.at(1_000)
    assert due(bench) == 3 * WAKES_MAX + 1
    assert bench.next() is None
    check(bench.state)


def test_records_of_one_frame_share_the_slice():
    bench = Bench()
    many(bench, 3 * WAKES_MAX)
    bench.ms = 1_000
    for n in range(5):
        bench.cancel(f"i{3 * WAKES_MAX - 1 - n}")
        assert due(bench) == WAKES_MAX
    bench.ms = 1_001
    bench.submit("late")
    assert due(bench) == 2 * WAKES_MAX + 1
    bench.at(1_001)
    assert due(bench) == 3 * WAKES_MAX - 4
    check(bench.state)


def test_a_slice_has_a_part_of_every_tier():
    bench = Bench()
    for tier in (4, 3, 0):
        many(bench, 2 * WAKES_MAX, f"t{tier}-", tier=tier)
    bench.at(1_000)
    woken = [
        sum(bench.intent(f"t{tier}-{n}").status is not Status.SCHEDULED for n in range(2 * WAKES_MAX))
        for tier in (0, 3, 4)
    ]
    assert woken == [WAKES_MAX * 3 // 5, WAKES_MAX // 5, WAKES_MAX // 5]
    bench.at(1_000)
    assert bench.intent(f"t0-{2 * woken[0] - 1}").status is not Status.SCHEDULED


def test_slices_go_by_wake_and_acceptance_however_the_cohort_was_filled():
    """Filled in disorder, in parts, with moves inside the cohort: the same slices as after a restart."""
    count = 3 * 4_096
    bench = Bench()
    bench.state.timers.extend(T0 + DAY_MS, 10)
    order = sorted(range(count), key=lambda n: n * 7_919 % count)
    for n in order:
        bench.submit(f"i{n}", on=queue("q", tier=4), delay=1_901 + n % 100)
    bench.do(Patch("i0", execute_at_ms=T0 + 2_000))
    bench.do(Patch("i99", execute_at_ms=T0 + 1_901))
    bench.cancel("i1")
    bench.save()
    again = bench.thawed()
    again.state.timers.extend(T0 + DAY_MS, count)
    while (wake := bench.next()) is not None:
        assert again.next() == wake
        first, second = bench.at(wake), again.at(wake)
        assert first.changes == second.changes
        wakes = [bench.intent(change.id).due_at_ms for change in first.changes if change.new is Status.DUE]
        assert wakes == sorted(wakes)
    assert due(bench) == count - 1


def test_the_clock_is_set_back_between_two_slices():
    bench = Bench()
    many(bench, 2 * WAKES_MAX)
    bench.at(1_000)
    bench.at(500)
    assert bench.next() == 1_000
    bench.cancel("i0")
    bench.cancel(f"i{WAKES_MAX}")
    assert due(bench) < WAKES_MAX, "none more woke, and those not handed out wait again"
    check(bench.state)
    while (wake := bench.next()) is not None and wake <= 1_000:
        bench.at(wake)
    assert due(bench) == 2 * WAKES_MAX - 2


def test_under_the_first_rules_one_record_wakes_all():
    bench = Bench()
    bench.state.rules = 1
    many(bench, 2 * 4_096 + 1)
    bench.at(1_000)
    assert due(bench) == 2 * 4_096 + 1


def test_a_cohort_that_ends_with_a_whole_part():
    bench = Bench()
    many(bench, 4_096)
    while (wake := bench.next()) is not None:
        bench.at(wake)
    assert due(bench) == 4_096


def test_the_clock_is_set_back_behind_some_of_the_slots_that_ended():
    bench = Bench()
    bench.submit(*(f"soon{n}" for n in range(2 * WAKES_MAX)), on=queue("q"), delay=500)
    many(bench, 5_000, tier=4)
    bench.at(1_000)
    assert due(bench) == WAKES_MAX
    bench.at(700)
    check(bench.state)
    for _ in range(3):
        bench.at(700)
    woken = {bench.intent(f"i{n}").status is not Status.SCHEDULED for n in range(WAKES_MAX // 5, 5_000)}
    assert woken == {False}
    assert bench.next() == 1_000
    while (wake := bench.next()) is not None:
        bench.at(wake)
    assert due(bench) == 2 * WAKES_MAX + 5_000


def test_many_slots_end_at_once_and_one_record_takes_only_its_slice_of_them(monkeypatch):
    """The engine was down: there are as many slots as intents. Those that must wait stay where they are."""
    monkeypatch.setattr(advance, "WAKES_MAX", 50)
    bench = Bench()
    bench.state.timers.extend(T0 + DAY_MS, 10)
    for n in range(500):
        bench.submit(f"i{n}", on=queue("q"), delay=1_000 + 50 * (n * 7 % 500))
    assert bench.state.timers.cohorts == 500
    for left in range(450, -1, -50):
        first = bench.at(DAY_MS)
        assert sum(change.new is Status.DUE for change in first.changes) == 50
        assert left - 1 <= bench.state.timers.cohorts <= left
        check(bench.state)
    wakes = [bench.intent(id).due_at_ms for id in delivered(bench.demand("w", "task:q", 500))]
    assert wakes == sorted(wakes)


def test_slices_of_many_slots_and_tiers_are_the_same_after_a_restart(monkeypatch):
    monkeypatch.setattr(advance, "WAKES_MAX", 25)
    chance = random.Random(5)
    bench = Bench()
    bench.state.timers.extend(T0 + DAY_MS, 10)
    for n in range(400):
        bench.submit(f"i{n}", on=queue("q", tier=n % 5), delay=chance.randrange(100, 20_000))
    bench.ms = 30_000
    for round in range(20):
        bench.at(30_000 if round != 7 else 15_000)
        late = bench.submit(f"late{round}", on=queue("q", tier=4), delay=-25_000, relative=True)
        assert not errors(late)[0]
        if round % 3 == 0:
            bench.save()
            again = bench.thawed()
            one, other = bench.at(bench.ms), again.at(bench.ms)
            assert one.changes == other.changes
            check(bench.state)
    assert due(bench) == 420


def test_many_that_are_due_are_placed_after_a_restart():
    bench = Bench()
    bench.submit(*(f"i{n}" for n in range(1_200)), on=queue("q"))
    bench.save()
    again = bench.thawed()
    assert due(again) == due(bench) == 1_200
    check(again.state)
