"""The order in a lane: entities one at a time, the rest by time and head start."""

from __future__ import annotations

import pytest

from duetime.kernel.invariants import check
from duetime.protocol.command import Pause, Resize, Resume
from duetime.protocol.intent import Status
from duetime.protocol.outcome import Lost, Rejected, Returned, Snoozed
from tests.unit.kernel.bench import T0, Bench, delivered, entity, queue, stream


def drain(bench: Bench, first: list[str]) -> list[str]:
    """Acknowledge one after the other; the order in which they ran."""
    order = []
    waiting = list(first)
    while waiting:
        assert len(waiting) == 1, "one at a time"
        order.append(waiting[0])
        waiting = delivered(bench.done(waiting.pop()))
    return order


def test_messages_of_one_entity_run_one_at_a_time_in_the_order_of_acceptance():
    bench = Bench()
    ids = [f"m{n}" for n in range(100)]
    first = delivered(bench.submit(*ids, on=entity()))
    assert first == ["m0"]
    assert drain(bench, first) == ids


def test_entities_do_not_wait_for_each_other():
    bench = Bench()
    assert delivered(bench.submit("a", on=entity("e1"))) == ["a"]
    assert delivered(bench.submit("b", on=entity("e2"))) == ["b"]


def test_the_order_holds_across_tiers_and_priorities():
    bench = Bench()
    bench.submit("a", on=entity(tier=4))
    bench.submit("b", on=entity(tier=4, priority=-300))
    bench.submit("c", on=entity(tier=0, priority=300))
    assert drain(bench, ["a"]) == ["a", "b", "c"]


@pytest.mark.parametrize("outcome", [None, Lost("gone"), Returned("stop"), Snoozed(1_000)])
def test_a_message_that_is_tried_again_holds_its_entity(outcome):
    bench = Bench()
    bench.submit("a", "b", "c", on=entity())
    applied = bench.fail("a") if outcome is None else bench.settle("a", outcome)
    assert delivered(applied) == []
    again = delivered(bench.submit("d", on=entity())) + delivered(bench.at(1_000))
    assert again == ["a"]
    assert drain(bench, ["a"]) == ["a", "b", "c", "d"]


def test_a_dead_letter_does_not_hold_its_entity():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    assert delivered(bench.settle("a", Rejected("bad", "never"))) == ["b"]


def test_a_delayed_message_does_not_hold_others_and_waits_its_turn_when_due():
    bench = Bench()
    bench.submit("late", on=entity(), delay=1_000)
    assert delivered(bench.submit("now", on=entity())) == ["now"]
    assert delivered(bench.at(1_000)) == []
    assert drain(bench, ["now"]) == ["now", "late"]


def test_delayed_messages_of_one_moment_run_in_the_order_of_acceptance():
    bench = Bench()
    ids = [f"m{n}" for n in range(12)]
    for n, id in enumerate(ids):
        bench.submit(id, on=entity(tier=n % 5), delay=1_000)
    assert drain(bench, delivered(bench.at(1_000))) == ids


def test_messages_that_became_due_while_time_stood_still_run_in_the_order_of_acceptance():
    bench = Bench()
    bench.submit("a", on=entity(), delay=900)
    bench.submit("b", on=entity(), delay=100)
    assert drain(bench, delivered(bench.at(5_000))) == ["a", "b"]


def test_an_entity_is_held_across_a_restart_by_the_message_that_was_tried():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.fail("a")
    bench.save()
    again = bench.thawed()
    assert delivered(again.submit("c", on=entity())) == []
    assert delivered(again.at(1_000)) == ["a"]
    assert drain(again, ["a"]) == ["a", "b", "c"]


def test_an_entity_that_is_out_across_a_restart_lets_nothing_pass():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.save()
    again = bench.thawed()
    assert delivered(again.start()) == [], "the lost one goes first, after its wait"
    assert delivered(again.at(1_000)) == ["a"]
    assert drain(again, ["a"]) == ["a", "b"]


def test_an_entity_is_forgotten_when_it_has_nothing_to_do():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    drain(bench, ["a"])
    assert (bench.state.lanes, bench.state.entities) == ({}, 0)


def test_a_resumed_entity_continues_in_order():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.do(Pause("entity:cart/e1"))
    assert delivered(bench.done("a")) == []
    assert drain(bench, delivered(bench.do(Resume("entity:cart/e1")))) == ["b"]


# Other lanes.


def take_all(bench: Bench, lane: str) -> list[str]:
    return delivered(bench.demand("w", lane, 1_000))


def test_in_a_lane_the_intent_due_first_goes_first():
    bench = Bench()
    bench.submit("c", on=stream(), delay=300)
    bench.submit("a", on=stream(), delay=100)
    bench.submit("b", on=stream(), delay=200)
    bench.at(1_000)
    assert take_all(bench, "stream:s") == ["a", "b", "c"]


def test_among_equals_the_order_of_acceptance_decides():
    bench = Bench()
    ids = [f"i{n}" for n in range(50)]
    bench.submit(*ids, on=stream())
    assert take_all(bench, "stream:s") == ids


def test_a_late_wake_up_does_not_cost_the_place():
    bench = Bench()
    bench.submit("first", on=stream(tier=4), delay=110)  # its slot ends at 200
    bench.submit("second", on=stream(tier=0), delay=150)  # and this one's at 150
    bench.at(150)
    assert bench.statuses("first", "second") == ["SCHEDULED", "DUE"]
    bench.at(200)
    assert take_all(bench, "stream:s") == ["first", "second"]


def test_priority_is_seconds_of_head_start():
    bench = Bench()
    bench.submit("old", on=stream())
    bench.ms = 10_000
    bench.submit("nine", on=stream(priority=9))
    bench.submit("eleven", on=stream(priority=11))
    assert take_all(bench, "stream:s") == ["eleven", "old", "nine"]


def test_low_priority_waits_and_then_wins():
    """A stream of urgent work cannot starve what waits: after its head start is over it goes first."""
    bench = Bench()
    bench.submit("low", on=stream(priority=-300))
    turn = 0
    for turn in range(1, 1_000):
        bench.ms = turn * 1_000
        bench.submit(f"high{turn}", on=stream(priority=300))
        if take_one(bench) == "low":
            break
    assert turn == 600


def take_one(bench: Bench) -> str:
    (id,) = delivered(bench.demand("w", "stream:s", 1, standing=False))
    return id


def test_priority_means_the_same_on_pushed_lanes():
    bench = Bench()
    bench.do(Resize(3, 1))
    bench.do(Resize(4, 1))
    bench.submit("busy")
    bench.submit("old", on=queue("q"))
    bench.ms = 10_000
    bench.submit("nine", on=queue("q", priority=9))
    bench.submit("eleven", on=queue("q", priority=11))
    bench.submit("twelve", on=queue("other", priority=12))
    order = []
    running = "busy"
    for _ in range(4):
        (running,) = delivered(bench.done(running))
        order.append(running)
    assert order == ["twelve", "eleven", "old", "nine"]


def test_a_retry_queues_behind_the_waiting_intents():
    bench = Bench()
    bench.submit("a", "b", on=stream())
    assert take_one(bench) == "a"
    bench.fail("a", delay_ms=50)
    bench.at(50)
    assert take_all(bench, "stream:s") == ["b", "a"]


def test_many_lanes_share_their_tier_s_permits_by_age():
    bench = Bench()
    bench.do(Resize(3, 1))
    bench.do(Resize(4, 1))
    bench.submit("busy")
    ids = [f"i{n}" for n in range(30)]
    for n, id in enumerate(ids):
        bench.ms += 1
        bench.submit(id, on=queue(f"q{n % 7}"))
    order = []
    running = "busy"
    for _ in ids:
        (running,) = delivered(bench.done(running))
        order.append(running)
    assert order == ids


def test_a_lane_is_forgotten_when_it_is_empty():
    bench = Bench()
    bench.submit("a", on=queue("q"), delay=500)
    assert "task:q" in bench.state.lanes
    bench.at(500)
    bench.done("a")
    assert bench.state.lanes == {}


def test_a_cancelled_head_is_not_in_the_way():
    bench = Bench()
    bench.do(Resize(3, 1))
    bench.do(Resize(4, 1))
    bench.submit("busy", "a", "b")
    bench.cancel("a")
    assert delivered(bench.done("busy")) == ["b"]
    assert bench.status("b") is Status.DISPATCHING
    assert bench.intent("b").due_at_ms == T0


def test_a_message_that_was_accepted_before_the_holder_and_is_due_later_does_not_block_it():
    bench = Bench()
    bench.submit("early", on=entity(), delay=500)
    bench.submit("holder", on=entity())
    bench.fail("holder")
    assert delivered(bench.at(500)) == [], "the holder is still under way"
    assert delivered(bench.at(1_000)) == ["holder"]
    assert drain(bench, ["holder"]) == ["holder", "early"]


def test_one_alone_in_its_lane_is_patched_cancelled_and_followed_by_others():
    bench = Bench(pushed=())
    bench.submit("a", on=queue("q"))
    track = bench.state.lanes["task:q"].tracks[0]
    bench.patch("a", priority=5)
    bench.later(0)
    assert [(entry[0], entry[2].id) for entry in track.ready] == [(T0 - 5_000, "a")]
    assert len(track) == 1
    bench.do(Pause("task:q"))
    bench.cancel("a")
    assert len(track) == 1, "a stale entry stands until somebody looks"
    bench.submit("b", "c", on=queue("q"))
    bench.do(Resume("task:q"))
    check(bench.state)
    assert delivered(bench.demand("w", "task:q", 5)) == ["b", "c"]


def test_a_stale_entry_alone_in_its_lane_is_skipped():
    bench = Bench(pushed=())
    bench.submit("a", "late", on=queue("q"), delay=0)
    bench.submit("later", on=queue("q"), delay=1_000)
    assert delivered(bench.demand("w", "task:q", 2)) == ["a", "late"]
    bench.submit("b", on=queue("q"))
    bench.cancel("b")
    assert delivered(bench.demand("w", "task:q", 1)) == []
    assert delivered(bench.at(1_000)) == ["later"]
