"""Fair shares by key: one who floods delays the others no more than `docs/guarantees.md` says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from duetime.kernel import invariants
from duetime.kernel.queues.fairness import TURN
from duetime.kernel.reasons import why
from duetime.protocol.command import LaneSettings, Pause, Resize, Resume, SetLane
from duetime.protocol.terms import Limit, Terms
from tests.unit.kernel.bench import T0, Bench, delivered, entity, queue, stream

LANE = "stream:s"


def tenant(key: str, weight: int = 1, **more: Any) -> Terms:
    return stream(fairness_key=key, fairness_weight=weight, **more)


def ids(name: str, count: int) -> list[str]:
    return [f"{name}{n}" for n in range(count)]


def take(bench: Bench, credits: int) -> list[str]:
    return delivered(bench.demand("w", LANE, credits, standing=False))


def keys(started: list[str]) -> str:
    """The first letters of ids: whose turn it was."""
    return "".join(id[0] for id in started)


def most_before(weight: int, others: list[int], nth: int = 1) -> int:
    """The bound: so many of others may start before the n-th of a key that waits."""
    return sum(nth * other // weight + 1 for other in others)


def test_a_flood_of_one_key_does_not_delay_another():
    bench = Bench()
    for start in range(0, 100_000, 10_000):
        bench.submit(*[f"a{n}" for n in range(start, start + 10_000)], on=tenant("a"))
    take(bench, 1_000)
    bench.ms = 60_000
    bench.submit(*ids("b", 10), on=tenant("b"))
    started = take(bench, 100)
    places = [place for place, id in enumerate(started) if id.startswith("b")]
    assert [started[place] for place in places] == ids("b", 10), "in their own order"
    for nth, place in enumerate(places, start=1):
        assert place - (nth - 1) <= most_before(1, [1], nth) == nth + 1, f"the {nth}. waited for {place}"


def test_weights_are_shares_of_the_starts():
    bench = Bench()
    for key, weight in (("a", 1), ("b", 3), ("c", 6)):
        bench.submit(*ids(key, 1_000), on=tenant(key, weight))
    started = keys(take(bench, 1_000))
    assert [started.count(key) for key in "abc"] == [100, 300, 600]


def test_intents_without_a_key_are_one_share():
    bench = Bench()
    bench.submit(*ids("p", 50), on=stream())
    bench.submit(*ids("a", 50), on=tenant("a"))
    bench.submit(*ids("q", 50), on=stream())
    assert keys(take(bench, 10)) == "papapapapa"
    started = keys(take(bench, 80))
    assert started.count("a") == 40 and started.count("q") == 0, "the older of one share go first"


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_for_any_weights_and_whenever_one_comes(seed):
    """For each key that waits, each other one starts at most (its weight // the waiting one's) + 1 times."""
    chance = random.Random(seed)
    weights = {key: chance.choice((1, 2, 3, 7, 10, 100, 999, 1000)) for key in "abcdefgh"}
    bench = Bench()
    waiting = dict.fromkeys(weights, 0)
    passed: dict[str, dict[str, int]] = {}
    for number in range(600):
        bench.ms += 1
        if chance.random() < 0.5:
            key = chance.choice("aaaabcdefgh")
            count = chance.choice((1, 1, 3, 10))
            names = [f"{key}{number}-{n}" for n in range(count)]
            bench.submit(*names, on=tenant(key, weights[key], priority=chance.choice((0, 0, 9, -9))))
            passed.setdefault(key, {})
            waiting[key] += count
        for id in take(bench, 1):
            key = id[0]
            waiting[key] -= 1
            for other, starts in passed.items():
                starts[key] = starts.get(key, 0) + 1
                most = weights[key] // weights[other] + 1
                assert other == key or starts[key] <= most, f"{key} passed {other} {starts[key]} times"
            passed[key] = {}
            if not waiting[key]:
                del passed[key]
    invariants.check(bench.state)


def test_a_returning_key_has_no_saved_share():
    bench = Bench()
    bench.submit(*ids("a", 500), on=tenant("a"))
    bench.submit("b0", on=tenant("b"))
    assert "b0" in take(bench, 300)
    bench.submit(*ids("c", 100), on=tenant("b"))
    assert keys(take(bench, 10)).count("c") == 5


def test_endless_new_keys_starve_no_other_key():
    """Each of them is new and has had nothing; who was served once goes on all the same."""
    bench = Bench()
    bench.submit(*ids("a", 100), on=tenant("a"))
    take(bench, 1)
    starts = []
    for number in range(1_000):
        bench.submit(f"x{number}", on=tenant(f"x{number}"))
        starts += take(bench, 1)
    assert keys(starts).count("a") == 1_000 // 65, "one in each 65: as if there were 64 others"
    shares = bench.state.lanes[LANE].track(3).shares
    assert shares is not None and shares.entry <= shares.level + TURN
    invariants.check(bench.state)


def test_keys_that_mean_nothing_any_more_are_forgotten():
    bench = Bench()
    bench.submit("far", on=stream(), delay=1_000_000)
    for number in range(5_000):
        bench.submit(f"x{number}", on=tenant(f"x{number}"))
        take(bench, 1)
    shares = bench.state.lanes[LANE].track(3).shares
    assert shares is not None and len(shares.keys) < 1_100
    assert len(bench.kernel.checkpoint(1).shares[0].had) < 200


def test_an_empty_lane_forgets_its_shares_despite_standing_demand():
    bench = Bench()
    bench.demand("w", LANE, 100)
    assert keys(delivered(bench.submit(*ids("a", 5), on=tenant("a")))) == "aaaaa"
    bench.submit("b0", on=tenant("b"))
    for id in (*ids("a", 5), "b0"):
        bench.done(id)
    assert bench.state.lanes[LANE].track(3).shares is None
    assert bench.kernel.checkpoint(1).shares == ()


def test_an_intent_that_did_not_start_costs_its_key_nothing():
    bench = Bench()
    bench.submit(*ids("a", 50), on=tenant("a"))
    bench.submit(*ids("b", 10), on=tenant("b"), deadline=1_000)
    bench.submit(*ids("c", 10), on=tenant("b"))
    take(bench, 1)
    bench.cancel("c0")
    bench.patch("c1", priority=-5)
    bench.later(2_000)
    started = keys(take(bench, 10))
    assert started.count("c") == 5 and "b" not in started
    invariants.check(bench.state)


def test_inside_a_key_the_order_is_by_time_and_head_start():
    bench = Bench()
    bench.submit("a-old", on=tenant("a"))
    bench.ms = 10_000
    bench.submit("a-nine", on=tenant("a", priority=9))
    bench.submit("a-eleven", on=tenant("a", priority=11))
    bench.submit("b-late", on=tenant("b", priority=-300))
    assert take(bench, 4) == ["a-eleven", "b-late", "a-old", "a-nine"]


def test_all_tiers_of_a_pulled_lane_take_turns_together():
    bench = Bench()
    bench.submit(*ids("a", 50), on=tenant("a", tier=1))
    bench.submit(*ids("c", 50), on=tenant("a", tier=2))
    bench.ms = 5_000
    bench.submit(*ids("b", 5), on=tenant("b", tier=3))
    assert keys(take(bench, 10)).count("b") == 5


def test_a_resumed_lane_keeps_its_turns():
    bench = Bench()
    bench.submit(*ids("a", 10), on=tenant("a"))
    bench.submit(*ids("b", 10), on=tenant("b"))
    take(bench, 3)
    bench.do(Pause(LANE))
    assert take(bench, 3) == []
    bench.do(Resume(LANE))
    assert keys(take(bench, 4)) == "baba"


# The same, where the engine hands out by itself.


def push(bench: Bench, first: str, count: int) -> list[str]:
    """End one after the other; who follows."""
    order = [first]
    for _ in range(count):
        order += delivered(bench.done(order[-1]))
    return order[1:]


def narrow(bench: Bench) -> None:
    """One delivery at a time."""
    bench.do(Resize(3, 1))
    bench.do(Resize(4, 1))
    bench.submit("first", on=queue("other"))


def pushed(key: str, weight: int = 1, **more: Any) -> Terms:
    return queue("q", fairness_key=key, fairness_weight=weight, **more)


def test_pushed_lanes_take_turns_too():
    bench = Bench()
    narrow(bench)
    bench.submit(*ids("a", 20), on=pushed("a"))
    bench.ms = 5_000
    bench.submit(*ids("b", 4), on=pushed("b", 2))
    assert keys(push(bench, "first", 6)) == "abbabb"
    invariants.check(bench.state)


def test_between_lanes_the_age_of_the_first_decides():
    bench = Bench()
    narrow(bench)
    bench.submit(*ids("a", 20), on=pushed("a"))
    bench.ms = 5_000
    bench.submit("o0", on=queue("other"))
    bench.ms = 6_000
    bench.submit("b0", on=pushed("b"))
    assert keys(push(bench, "first", 4)) == "aoba"


def test_a_lane_that_changes_to_pull_resets_its_turns():
    bench = Bench()
    narrow(bench)
    bench.submit(*ids("a", 20), on=pushed("a"))
    bench.submit(*ids("b", 20), on=pushed("b", limits=(Limit("k", concurrency=1),), tier=2))
    bench.submit(*ids("c", 2), on=queue("q"))
    bench.configure(pushed=("bare",))
    invariants.check(bench.state)
    started = delivered(bench.demand("w", "task:q", 8))
    assert keys(started).count("b") <= 1 and {*"ac"} <= {*keys(started)}
    bench.configure(pushed=("bare", "task"))
    invariants.check(bench.state)
    for id in ("first", *started):
        bench.done(id)
    invariants.check(bench.state)


# Limits.


def test_an_intent_held_by_the_limit_of_its_lane_returns_in_turn():
    bench = Bench()
    bench.do(SetLane(LANE, LaneSettings(concurrency=1)))
    bench.demand("w", LANE, 1_000)
    bench.submit(*ids("a", 100), on=tenant("a"))
    bench.ms = 5_000
    bench.submit(*ids("b", 3), on=tenant("b"))
    bench.submit(*ids("p", 3), on=stream())
    started = keys(push(bench, "a0", 9))
    assert started.count("b") == started.count("p") == 3, started
    assert "aaa" not in started
    invariants.check(bench.state)


def test_a_rate_lets_each_key_have_its_part_of_a_burst():
    bench = Bench()
    limit = (Limit("all", rate=10, burst=10),)
    bench.demand("w", LANE, 1_000)
    bench.submit(*ids("a", 100), on=tenant("a", limits=limit))
    bench.ms = 500
    bench.submit(*ids("b", 100), on=tenant("b", limits=limit))
    bench.submit(*ids("c", 100), on=tenant("c", 2, limits=limit))
    started = keys(delivered(bench.later(1_000)))
    assert [started.count(key) for key in "abc"] == [2, 2, 6], started


def test_a_key_behind_its_limit_has_one_turn_to_catch_up_and_no_more():
    bench = Bench()
    bench.demand("w", LANE, 10_000)
    narrow_limit = (Limit("slow", concurrency=1),)
    bench.submit(*ids("a", 50), on=tenant("a", limits=narrow_limit))
    bench.submit(*ids("b", 300), on=tenant("b"))
    bench.leave("w")
    bench.later(60_000)
    bench.demand("v", LANE, 1)
    bench.do(SetLane(LANE, LaneSettings()))
    invariants.check(bench.state)
    started = keys(take(bench, 40))
    assert started.count("a") <= 2, "its limit holds"


def test_a_flood_does_not_hold_a_limiter_against_others_while_the_rest_runs_on():
    """Z is not limited and races on. X and Y wait for one limiter and must take turns there, although new
    ones of X keep coming and all of Y's flood is there already."""
    bench = Bench()
    limit = (Limit("shared", concurrency=1),)
    bench.demand("w", LANE, 100_000)
    bench.submit(*ids("y", 100), on=tenant("y", limits=limit))
    running, order = "y0", ""
    for number in range(40):
        bench.submit(f"x{number}", on=tenant("x", limits=limit))
        bench.submit(*[f"z{number}-{n}" for n in range(20)], on=tenant("z"))
        (running,) = delivered(bench.done(running))
        order += running[0]
    assert order.count("x") >= 19 and order.count("y") >= 19, order
    assert "xxx" not in order and "yyy" not in order, order


def test_a_cancelled_parked_intent_is_skipped():
    bench = Bench()
    bench.demand("w", LANE, 100)
    limit = (Limit("k", concurrency=1),)
    bench.submit("a0", "a1", "a2", on=tenant("a", limits=limit))
    bench.submit("b0", on=tenant("b", limits=limit))
    bench.cancel("b0")
    bench.cancel("a1")
    assert delivered(bench.done("a0")) == ["a2"]
    invariants.check(bench.state)


def test_a_limiter_forgets_intents_of_forgotten_shares():
    bench = Bench()
    limit = (Limit("k", concurrency=1),)
    bench.submit("other", on=queue("q", limits=limit))
    bench.demand("w", LANE, 100)
    bench.submit("a0", on=tenant("a", limits=limit))
    bench.cancel("a0")  # the lane is empty now, and its shares are forgotten
    bench.submit("a1", "b1", on=tenant("a", limits=limit))
    bench.submit("c1", on=tenant("c", limits=limit))
    assert delivered(bench.done("other")) == ["a1"]
    assert delivered(bench.done("a1")) == ["c1"]
    invariants.check(bench.state)


# Across a restart, and as it is told.


def test_a_restart_does_not_change_the_turn():
    bench = Bench()
    bench.submit(*ids("a", 300), on=tenant("a", 7))
    bench.submit(*ids("p", 300), on=stream())
    take(bench, 10)
    bench.submit(*ids("b", 300), on=tenant("b", 3))
    bench.submit(*ids("c", 3), on=tenant("c"))
    take(bench, 5)
    bench.cancel("c0")
    bench.save()
    again = bench.thawed()
    assert again.kernel.checkpoint(1).shares == bench.kernel.checkpoint(1).shares
    invariants.check(again.state)
    for _ in range(20):
        assert take(again, 7) == take(bench, 7)
    again.submit("n0", on=tenant("new", 2))
    bench.submit("n0", on=tenant("new", 2))
    assert take(again, 20) == take(bench, 20)


def test_a_restart_does_not_change_the_order_of_parked_intents():
    bench = Bench()
    bench.do(SetLane(LANE, LaneSettings(concurrency=1)))
    bench.demand("w", LANE, 1_000)
    bench.submit(*ids("a", 30), on=tenant("a"))
    bench.submit(*ids("b", 30), on=tenant("b", 2))
    first = push(bench, "a0", 3)
    bench.save()
    again = bench.thawed()
    assert push(again, first[-1], 12) == push(bench, first[-1], 12)


def test_why_says_how_many_of_its_own_key_are_due():
    bench = Bench()
    bench.submit(*ids("a", 3), on=tenant("a"))
    bench.submit("b0", on=tenant("b"))
    reason = why(bench.state, bench.intent("a1"), T0)
    assert reason.code == "no-worker"
    assert "Keys take turns in its lane; 3 of 'a' are due." in reason.sentence
    assert (reason.data["fairness_key"], reason.data["due_of_key"]) == ("a", 3)
    assert "1 of 'b' is due." in why(bench.state, bench.intent("b0"), T0).sentence
    bench.submit("p", on=stream())
    assert "Keys" not in why(bench.state, bench.intent("p"), T0).sentence


def test_an_entity_has_one_order_whatever_keys_its_messages_have():
    bench = Bench()
    bench.submit("m0", "m1", on=entity(fairness_key="a"))
    bench.submit("m2", on=entity(fairness_key="b"))
    assert push(bench, "m0", 2) == ["m1", "m2"]
    bench.cancel("m2")
    bench.save()
    invariants.check(bench.thawed().state)


@pytest.mark.parametrize("how", ["cancel", "expire", "patch"])
def test_a_lane_moves_among_others_when_its_next_intent_is_gone(how):
    """The next one by turns was there long before: after a restart it would go first, and so it must now."""
    bench = Bench()
    bench.do(Resize(3, 1))
    for tier in (0, 1, 2, 4):
        bench.do(Resize(tier, 1))
    bench.submit("a0", on=queue("q", fairness_key="a"))
    bench.submit("a1", on=queue("q", fairness_key="a"))
    bench.later(10)
    lent = [f"x{n}" for n in range(4)]
    bench.submit(*lent, on=queue("other"))
    bench.later(10)
    bench.submit("b1", on=queue("q", fairness_key="b"), deadline=1_000)
    waiting = [id for id in ("a1", *lent, "b1") if bench.status(id).name == "DUE"]
    assert "a1" in waiting and "b1" in waiting and len(waiting) > 2
    if how == "cancel":
        bench.cancel("b1")
    elif how == "expire":
        bench.later(2_000)
    else:
        bench.patch("b1", execute_at_ms=T0 + 60_000, deadline_ms=0)
    assert delivered(bench.done("a0"))[:1] == ["a1"]
    invariants.check(bench.state)
