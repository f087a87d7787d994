"""Stopping an intent."""

from __future__ import annotations

from duetime.protocol.intent import Status
from tests.unit.kernel.bench import T0, Bench, aborted, delivered, entity, stream


def test_a_cancelled_intent_does_not_fire():
    bench = Bench()
    bench.submit("a", "b", delay=1_000)
    bench.cancel("a")
    assert delivered(bench.at(1_000)) == ["b"]
    assert bench.status("a") is Status.CANCELED
    assert bench.intent("a").finished_at_ms == T0


def test_a_running_intent_is_aborted_and_its_late_outcome_is_stale():
    bench = Bench()
    bench.submit("a")
    applied = bench.cancel("a")
    assert aborted(applied) == [("a", 1)]
    assert bench.done("a").answer == [False]
    assert bench.status("a") is Status.CANCELED
    assert bench.state.out[""] == {}
    assert bench.state.tiers.all[3].used == 0


def test_an_abort_names_the_consumer_that_holds_the_delivery():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.demand("w", "stream:s")
    (abort,) = bench.cancel("a").effects
    assert abort.consumer == "w"
    assert bench.next() is None or delivered(bench.later(60_000)) == [], "no lease is left behind"


def test_a_due_intent_that_is_cancelled_is_passed_over():
    bench = Bench()
    bench.submit("a", "b", on=stream())
    bench.cancel("a")
    assert delivered(bench.demand("w", "stream:s", 5)) == ["b"]


def test_cancelling_the_holder_of_an_entity_lets_the_next_message_go():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    applied = bench.cancel("a")
    assert aborted(applied) == [("a", 1)]
    assert delivered(applied) == ["b"]


def test_cancelling_a_holder_that_waits_for_its_retry_lets_the_next_message_go():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.fail("a")
    assert delivered(bench.cancel("a")) == ["b"]


def test_cancelling_a_message_that_is_not_due_leaves_its_entity_alone():
    bench = Bench()
    bench.submit("a", on=entity())
    bench.submit("b", on=entity(), delay=1_000)
    bench.cancel("b")
    assert bench.state.lanes["entity:cart/e1"].pending == 1
    bench.done("a")
    assert bench.state.entities == 0


def test_a_cancelled_message_leaves_no_entity_behind():
    bench = Bench()
    bench.submit("a", on=entity(), delay=1_000)
    bench.cancel("a")
    assert (bench.state.lanes, bench.state.entities) == ({}, 0)
