"""Workers that pull: credits, turns, leases."""

from __future__ import annotations

import pytest

from duetime.protocol.effect import Voided
from duetime.protocol.intent import Status
from duetime.protocol.terms import Redelivery
from tests.unit.kernel.bench import T0, Bench, delivered, entity, error, stream, terms

LANE = "stream:s"


def given(applied) -> list[tuple[str, str]]:
    """Who was given what."""
    return [(effect.consumer, effect.id) for effect in applied.effects]


def test_without_a_consumer_it_waits():
    bench = Bench()
    assert delivered(bench.submit("a", on=stream())) == []
    bench.later(1_000_000)
    assert bench.status("a") is Status.DUE


def test_credits_are_used_one_by_one():
    bench = Bench()
    bench.submit("a", "b", "c", on=stream())
    assert given(bench.demand("w", LANE, 2)) == [("w", "a"), ("w", "b")]
    assert given(bench.demand("w", LANE, 1)) == [("w", "c")]


def test_standing_credits_wait_for_work():
    bench = Bench()
    bench.demand("w", LANE, 2)
    assert given(bench.submit("a", "b", "c", on=stream())) == [("w", "a"), ("w", "b")]


def test_credits_add_up():
    bench = Bench()
    bench.demand("w", LANE, 1)
    bench.demand("w", LANE, 2)
    assert len(delivered(bench.submit("a", "b", "c", "d", on=stream()))) == 3


def test_a_claim_takes_what_is_ready_and_no_more():
    bench = Bench()
    bench.submit("a", on=stream())
    assert delivered(bench.demand("w", LANE, 5, standing=False)) == ["a"]
    assert delivered(bench.submit("b", on=stream())) == []
    assert bench.state.consumers["w"].credits == {}


def test_a_claim_on_an_empty_lane_leaves_nothing_behind():
    bench = Bench()
    bench.demand("w", LANE, 5, standing=False)
    assert bench.state.lanes == {}
    assert delivered(bench.submit("a", on=stream())) == []


def test_a_claim_that_is_used_up_exactly():
    bench = Bench()
    bench.submit("a", on=stream())
    assert delivered(bench.demand("w", LANE, 1, standing=False)) == ["a"]
    assert not bench.state.lanes[LANE].turns


@pytest.mark.parametrize("credits", [0, -3])
@pytest.mark.parametrize("standing", [True, False])
def test_no_credits_are_no_demand(credits, standing):
    bench = Bench()
    bench.submit("a", on=stream())
    assert delivered(bench.demand("w", LANE, credits, standing=standing)) == []
    assert bench.state.consumers["w"].credits == {}
    bench = Bench()
    bench.demand("w", LANE, credits, standing=standing)
    assert bench.state.lanes == {}


def test_consumers_take_turns():
    bench = Bench()
    bench.demand("v", LANE, 3)
    bench.demand("w", LANE, 2)
    applied = bench.submit(*"abcde", on=stream())
    assert given(applied) == [("v", "a"), ("w", "b"), ("v", "c"), ("w", "d"), ("v", "e")]


def test_a_pushed_lane_has_no_use_for_credits():
    bench = Bench()
    assert error(bench.demand("w", "task:default", 1, standing=False)) == "InvalidField"
    assert bench.state.consumers == {}


def test_a_lane_that_is_pulled_by_choice():
    bench = Bench(pushed=())
    bench.submit("a", on=terms())
    assert given(bench.demand("w", "task:default")) == [("w", "a")]
    assert bench.intent("a").permit == -1
    bench.done("a")
    assert bench.status("a") is Status.ACKED


def test_a_pulled_entity_still_runs_one_at_a_time():
    bench = Bench(pushed=())
    bench.submit("a", "b", on=entity())
    assert delivered(bench.demand("w", "entity:cart/e1", 5)) == ["a"]
    bench.demand("v", "entity:cart/e1", 5)
    assert given(bench.done("a")) == [("w", "b")]
    assert bench.status("b") is Status.DISPATCHING


def test_a_lease_ends_to_the_slot():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=10_000))
    bench.demand("w", LANE)
    assert bench.next() == 10_000
    bench.at(9_999)
    assert bench.status("a") is Status.DISPATCHING
    bench.at(10_000)
    intent = bench.intent("a")
    assert (intent.status, intent.attempt, intent.consumer) == (Status.SCHEDULED, 1, "")
    assert intent.rare is not None and intent.rare.last_error is not None
    assert intent.rare.last_error.kind == "lost"


def test_an_outcome_after_the_lease_is_stale():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.demand("w", LANE)
    bench.later(30_000)
    assert bench.done("a").answer == [False]
    assert bench.status("a") is Status.DUE, "it is tried again at once the first time"


def test_a_heartbeat_restarts_every_lease():
    bench = Bench()
    bench.submit("a", "b", on=stream(lease_ms=10_000))
    bench.demand("w", LANE, 2)
    for ms in range(5_000, 60_000, 5_000):
        bench.at(ms)
        bench.beat("w")
    bench.at(64_999)
    assert bench.statuses("a", "b") == ["DISPATCHING", "DISPATCHING"]
    bench.at(65_000)
    assert bench.statuses("a", "b") == ["SCHEDULED", "SCHEDULED"]


def test_a_beat_of_another_consumer_does_not_help():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=10_000))
    bench.demand("w", LANE)
    bench.at(5_000)
    bench.beat("v")
    bench.at(10_000)
    assert bench.status("a") is Status.SCHEDULED


def test_a_new_demand_is_a_sign_of_life_too():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=10_000))
    bench.demand("w", LANE)
    bench.at(5_000)
    bench.demand("w", LANE)
    bench.at(14_999)
    assert bench.status("a") is Status.DISPATCHING


def test_a_poison_intent_that_kills_its_workers_ends_as_a_dead_letter():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=1_000, redelivery=Redelivery(max_attempts=3, jitter=False)))
    for n in range(3):
        bench.later(60_000)
        assert delivered(bench.demand(f"w{n}", LANE, 1, standing=False)) == ["a"]
        bench.later(1_000)
    assert bench.status("a") is Status.DEAD_LETTERED
    assert bench.intent("a").attempt == 3


def test_a_silent_consumer_gets_its_lost_credits():
    bench = Bench()
    bench.submit("a", "b", on=stream(lease_ms=1_000))
    bench.demand("w", LANE, 5)
    applied = bench.at(1_000)
    assert applied.voided == [Voided("w", {LANE: 3})], "once, though two leases ran out"
    assert bench.at(2_000).voided == []


def test_a_leaving_consumer_loses_its_deliveries_at_once():
    bench = Bench()
    bench.submit("a", "b", on=stream())
    bench.demand("w", LANE, 5)
    bench.leave("w")
    assert bench.statuses("a", "b") == ["SCHEDULED", "SCHEDULED"]
    assert bench.state.out == {"": {}}
    assert bench.state.consumers == {}
    assert not bench.state.lanes[LANE].turns
    assert delivered(bench.at(5_000)) == [], "its credits are void"


def test_deliveries_of_a_leaving_consumer_go_to_the_others():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.demand("v", LANE)
    bench.demand("w", LANE)
    bench.leave("v")
    assert given(bench.at(1_000)) == [("w", "a")]


def test_leaving_twice_or_unknown_is_nothing():
    bench = Bench()
    bench.leave("nobody")
    bench.demand("w", LANE)
    bench.leave("w")
    bench.leave("w")
    assert (bench.state.consumers, bench.state.lanes) == ({}, {})


def test_a_new_epoch_voids_credits_and_keeps_leases():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=10_000))
    bench.demand("v", LANE)
    bench.demand("w", LANE, 3)
    bench.start()
    assert sorted(bench.state.consumers) == ["v"], "who holds nothing is gone"
    assert delivered(bench.submit("b", on=stream())) == [], "nobody is connected yet"
    assert bench.done("a").answer == [True], "a worker outlives the engine"


def test_a_lease_ends_also_under_a_new_engine():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=10_000))
    bench.demand("w", LANE)
    bench.save()
    again = bench.thawed()
    again.start()
    again.at(9_999)
    assert again.status("a") is Status.DISPATCHING
    again.at(10_000)
    assert again.status("a") is Status.SCHEDULED


def test_turns_and_credits_survive_a_restart():
    bench = Bench()
    bench.demand("v", LANE, 3)
    bench.demand("w", LANE, 2)
    bench.submit("a", on=stream())
    bench.save()
    again = bench.thawed()
    assert given(again.submit(*"bcdef", on=stream())) == given(bench.submit(*"bcdef", on=stream()))
    assert given(again.submit("g", on=stream())) == []


def test_an_expired_intent_uses_no_credit():
    bench = Bench()
    bench.submit("a", on=stream(), deadline=510)
    bench.submit("b", on=stream())
    bench.ms = 520
    assert given(bench.demand("w", LANE)) == [("w", "b")]
    assert bench.status("a") is Status.EXPIRED


def test_a_lease_of_hours_is_longer_than_the_window_in_memory():
    bench = Bench()
    bench.submit("a", on=stream(lease_ms=36_000_000))
    bench.demand("w", LANE)
    assert bench.next() == 36_000_000
    bench.at(35_999_999)
    assert bench.status("a") is Status.DISPATCHING
    bench.at(36_000_000)
    assert bench.status("a") is Status.SCHEDULED
    assert bench.intent("a").updated_at_ms == T0 + 36_000_000


def test_a_silent_consumer_is_handed_nothing_more_until_it_asks_again():
    bench = Bench()
    bench.demand("w", LANE, 5)
    assert given(bench.submit("a", on=stream(lease_ms=1_000))) == [("w", "a")]
    bench.later(1_500)  # silent beyond its lease: a is lost
    assert delivered(bench.submit("b", on=stream())) == []
    assert given(bench.demand("w", LANE, 5)) == [("w", "a"), ("w", "b")]
