"""One record looks at so many ready intents and no more; the next one goes on."""

from __future__ import annotations

import pytest

from duetime.kernel.commands import advance
from duetime.kernel.invariants import check
from duetime.kernel.queues import dispatch
from duetime.kernel.queues.dispatch import spent
from duetime.protocol.command import LaneSettings, Pause, Resize, Resume, SetLane
from duetime.protocol.intent import Status
from tests.unit.kernel.bench import T0, Bench, delivered, entity, queue

HANDS, TURN, BATCH = 50, 5, 40
MANY = 2 * HANDS + 10


@pytest.fixture(autouse=True)
def bounds(monkeypatch):
    monkeypatch.setattr(dispatch, "HANDS_MAX", HANDS)
    monkeypatch.setattr(dispatch, "HANDS_TURN", TURN)
    monkeypatch.setattr(advance, "WAKES_MAX", 20)


def fill(bench, on, count=MANY, **item):
    for start in range(0, count, BATCH):
        ids = range(start, min(count, start + BATCH))
        bench.submit(*(f"i{n}" for n in ids), on=on, **item)
        bench.later(1)


def changed(applied, new):
    return sum(change.new is new for change in applied.changes)


def test_deadlines_that_have_passed():
    bench = Bench(pushed=())
    fill(bench, queue("q"), deadline=900)
    bench.submit("live", on=queue("q"))
    bench.ms = 1_000
    wakes = bench.do(Resume("task:other"))  # the slice of deadlines of this stamp
    first = bench.demand("w", "task:q", 10)
    assert changed(first, Status.EXPIRED) == HANDS
    assert delivered(first) == []
    check(bench.state)
    assert bench.next() == bench.ms, "there is more, now"
    second = bench.at(1_000)
    left = MANY - HANDS - changed(wakes, Status.EXPIRED)
    assert changed(second, Status.EXPIRED) == left
    assert delivered(second) == ["live"]
    check(bench.state)


@pytest.mark.parametrize("pushed", [(), ("task",)])
def test_the_clock_is_set_back_under_many_that_are_due(pushed):
    bench = Bench(pushed=pushed)
    bench.at(100_000)
    bench.do(Pause("task:q"))
    fill(bench, queue("q"))
    bench.do(Resize(2, 1))
    bench.demand("w", "task:q", 10)
    bench.ms = 0
    first = bench.do(Resume("task:q"))
    assert changed(first, Status.SCHEDULED) == HANDS
    same_frame = bench.do(Resume("task:q"))
    assert not same_frame.changes, "the records of one frame share the bound"
    check(bench.state)
    assert bench.next() == 0
    assert changed(bench.at(0), Status.SCHEDULED) == HANDS
    assert changed(bench.at(0), Status.SCHEDULED) == 10
    assert bench.next() == 100_000
    check(bench.state)


def test_a_lane_with_very_many_credits_is_resumed():
    bench = Bench(pushed=())
    bench.do(Pause("task:q"))
    fill(bench, queue("q"))
    for n in range(3):
        bench.demand(f"w{n}", "task:q", HANDS)
    handed = delivered(bench.do(Resume("task:q")))
    assert len(handed) == HANDS
    while bench.next() == bench.ms:
        more = delivered(bench.at(bench.ms))
        assert len(more) <= HANDS
        handed += more
    assert handed == [f"i{n}" for n in range(MANY)], "in the order of the lane"
    check(bench.state)


def test_a_limit_parks_many():
    bench = Bench(pushed=())
    fill(bench, queue("q"))
    bench.do(SetLane("task:q", LaneSettings(concurrency=1)))
    assert delivered(bench.demand("w", "task:q", 10)) == ["i0"]
    assert bench.state.flow.parked == HANDS - 1
    bench.later(0)
    assert bench.state.flow.parked == 2 * HANDS - 1
    bench.later(0)
    assert bench.state.flow.parked == MANY - 1
    assert not spent(bench.state)
    check(bench.state)


@pytest.mark.parametrize("pushed", [(), ("task",)])
def test_a_flooded_lane_and_tier_holds_up_no_other(pushed):
    """What is early in one lane is looked at in turns with what is ready in another."""
    bench = Bench(pushed=pushed)
    bench.at(100_000)
    bench.do(Pause("task:q"))
    fill(bench, queue("q", tier=0))
    bench.demand("w", "task:q", 10)
    bench.demand("w", "task:z", 10)
    bench.ms = 0
    bench.do(Pause("task:z"))
    bench.submit("ready", on=queue("z", tier=4))
    bench.do(Resume("task:q"))
    bench.at(0)
    bench.do(Resume("task:z"))
    assert "ready" not in delivered(bench.do(Resume("task:z"))), "this frame is spent"
    assert delivered(bench.at(0)) == ["ready"]


def test_entities_of_one_type():
    count = HANDS + TURN + 1
    bench = Bench(pushed=())
    for n in range(count):
        bench.submit(f"i{n}", on=entity(f"e{n}"))
    bench.later(1)
    handed = delivered(bench.demand("w", "entities:cart", count))
    assert len(handed) == HANDS
    check(bench.state)
    assert bench.next() == bench.ms
    handed += delivered(bench.at(bench.ms))
    assert handed == [f"i{n}" for n in range(count)]
    assert bench.next() != bench.ms
    check(bench.state)


def test_permits_are_used_and_borrowed_in_slices():
    count = HANDS + TURN
    bench = Bench(pushed=("task",))
    bench.do(Pause("task:q"))
    fill(bench, queue("q", tier=0), count)
    bench.do(Resize(0, TURN))
    bench.do(Resize(1, 2 * count))
    handed = delivered(bench.do(Resume("task:q")))
    assert len(handed) == HANDS
    assert bench.next() == bench.ms
    handed += delivered(bench.at(bench.ms))
    assert handed == [f"i{n}" for n in range(count)]
    check(bench.state)


def test_after_a_restart_the_next_record_has_the_same_effects():
    bench = Bench(pushed=("callback",))
    bench.at(100_000)
    for name in ("a", "b", "c"):
        bench.do(Pause(f"task:{name}"))
        bench.submit(*(f"{name}{n}" for n in range(HANDS // 2)), on=queue(name))
        bench.later(1)
        for consumer in ("w", "v"):
            bench.demand(consumer, f"task:{name}", HANDS)
    for name in ("c", "b", "a"):
        bench.do(Resume(f"task:{name}"))
    assert spent(bench.state)
    bench.save()
    again = bench.thawed()
    assert again.next() == bench.next() == bench.ms
    for _ in range(3):
        one, other = bench.submit("more", on=queue("b")), again.submit("more", on=queue("b"))
        assert one.effects == other.effects == []
        one, other = bench.at(bench.ms), again.at(bench.ms)
        assert one.effects == other.effects
        assert one.changes == other.changes
    check(again.state)


def test_under_the_first_rules_one_record_hands_out_all():
    bench = Bench(pushed=())
    bench.state.rules = 1
    fill(bench, queue("q"))
    assert len(delivered(bench.demand("w", "task:q", MANY))) == MANY
    assert bench.state.handed == 0 and not spent(bench.state)


def test_a_lane_that_is_dropped_and_opened_again_in_a_spent_frame():
    bench = Bench(pushed=())
    fill(bench, queue("q"))
    bench.demand("w", "task:q", HANDS)
    assert spent(bench.state)
    bench.submit("gone", on=queue("z"))
    bench.cancel("gone")
    assert "task:z" not in bench.state.lanes
    bench.later(1)
    fill(bench, queue("q"), HANDS)
    bench.demand("w", "task:q", HANDS)
    bench.submit("gone again", on=queue("z"))
    bench.cancel("gone again")
    bench.demand("w", "task:z", 1)
    bench.submit("there", on=queue("z"))
    assert "there" in delivered(bench.later(1))


@pytest.mark.parametrize("pushed", [(), ("task",)])
def test_a_stale_entry_of_a_parked_intent_counts_for_nothing(pushed):
    """It is not there after a restart, and the next record must do the same then."""
    bench = Bench(pushed=pushed)
    bench.do(SetLane("task:q", LaneSettings(concurrency=1)))
    bench.submit("first", on=queue("q"))
    bench.demand("w", "task:q", 2)
    bench.do(Pause("task:q"))
    bench.submit("second", "third", on=queue("q"))
    bench.patch("second", execute_at_ms=T0)
    bench.later(1)
    assert len(bench.state.lanes["task:q"].tracks[0]) == 3
    bench.do(Resume("task:q"))
    assert bench.intent("second").waits and bench.intent("third").waits
    assert bench.state.handed == 2
    check(bench.state)
