"""Dead letters get another life."""

from __future__ import annotations

import pytest

from duetime.protocol.intent import Status
from duetime.protocol.outcome import Rejected
from duetime.protocol.terms import Entity, ExpiredAction, Redelivery, Task
from tests.unit.kernel.bench import T0, Bench, delivered, deliveries, entity, error, stream, terms


def dead(bench: Bench, **more) -> None:
    bench.submit("a", **more)
    bench.settle("a", Rejected("bad", "never"))
    assert bench.status("a") is Status.DEAD_LETTERED


def test_revive_resets_attempts_and_keeps_the_delivery_number():
    bench = Bench()
    bench.submit("a")
    bench.fail("a")
    bench.at(1_000)
    bench.settle("a", Rejected("bad", "never"))
    (deliver,) = deliveries(bench.revive("a"))
    assert (deliver.attempt, deliver.delivery) == (1, 3)
    assert bench.settle("a", Rejected("bad", "x"), 2).answer == [False], "the old life has no say"
    bench.done("a")
    assert bench.status("a") is Status.ACKED


def test_a_revived_intent_is_not_finished():
    bench = Bench()
    dead(bench)
    bench.ms = 10
    bench.revive("a", execute_at_ms=T0 + 60_000)
    intent = bench.intent("a")
    assert (intent.finished_at_ms, intent.ended, intent.first_dispatch_at_ms, intent.late_ms) == (0, 0, 0, -1)
    assert bench.state.counts[Status.DEAD_LETTERED] == 0
    assert bench.state.lanes["task:default"].pending == 1


def test_a_revived_intent_waits_for_its_new_time():
    bench = Bench()
    dead(bench)
    assert delivered(bench.revive("a", execute_at_ms=T0 + 500)) == []
    assert delivered(bench.at(499)) == []
    assert delivered(bench.at(500)) == ["a"]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"execute_at_ms": T0 - 5_000}, ""),
        ({"execute_at_ms": T0 - 5_001}, "InThePast"),
        ({"execute_at_ms": T0 + 10, "deadline_ms": T0 + 9}, "DeadlineTooEarly"),
        ({"deadline_ms": T0 - 1}, "DeadlineTooEarly"),
    ],
)
def test_times_of_a_revived_intent_follow_the_same_rules(changes, name):
    bench = Bench()
    dead(bench)
    assert error(bench.revive("a", **changes)) == name
    assert (bench.status("a") is Status.DEAD_LETTERED) == bool(name)


def test_a_deadline_that_has_passed_is_dropped():
    bench = Bench()
    bench.submit("a", on=stream(expired_action=ExpiredAction.DEAD_LETTER), deadline=500)
    bench.at(500)
    assert bench.status("a") is Status.DEAD_LETTERED
    bench.revive("a")
    assert bench.intent("a").deadline_ms == 0
    assert delivered(bench.demand("w", "stream:s")) == ["a"]


def test_a_deadline_that_has_not_passed_still_holds():
    bench = Bench()
    dead(bench, deadline=500)
    assert error(bench.revive("a", execute_at_ms=T0 + 501)) == "DeadlineTooEarly"
    bench.revive("a")
    assert bench.intent("a").deadline_ms == T0 + 500


def test_a_deadline_of_now_ends_it_at_once():
    bench = Bench()
    dead(bench)
    bench.revive("a", deadline_ms=T0)
    assert bench.status("a") is Status.EXPIRED


def test_target_retry_and_payload_may_be_new():
    bench = Bench()
    dead(bench, payload=b"1")
    policy = Redelivery(max_attempts=1)
    applied = bench.revive("a", target=Task("f", "other"), redelivery=policy, payload=b"2")
    (deliver,) = deliveries(applied)
    assert (deliver.terms.target, deliver.terms.lane) == (Task("f", "other"), "task:other")
    assert (deliver.payload, deliver.terms.redelivery) == (b"2", policy)
    assert list(bench.state.lanes) == ["task:other"]
    bench.fail("a")
    assert bench.status("a") is Status.DEAD_LETTERED
    assert bench.state.lanes == {}


def test_a_revived_intent_may_become_a_message_of_an_entity():
    bench = Bench()
    dead(bench)
    bench.submit("m", on=entity())
    assert delivered(bench.revive("a", target=Entity("cart", "e1", "add"))) == []
    assert delivered(bench.done("m")) == ["a"]


def test_a_revived_entity_message_has_no_old_claim_on_its_entity():
    bench = Bench()
    dead(bench, on=entity())
    bench.submit("b", "c", on=entity())
    assert delivered(bench.revive("a")) == []
    assert delivered(bench.done("b")) == ["a"], "it was accepted before c"


def test_a_stale_place_of_the_old_life_is_not_a_second_delivery():
    """The same rank and number in another lane, while the old lane still has its entry."""
    bench = Bench(pushed=())
    on = terms(expired_action=ExpiredAction.DEAD_LETTER)
    bench.submit("a", on=on, deadline=510)
    bench.submit("b", on=on)
    bench.ms = 550
    bench.at(550)
    assert bench.statuses("a", "b") == ["DEAD_LETTERED", "DUE"]
    bench.revive("a", execute_at_ms=T0)
    assert delivered(bench.demand("w", "task:default", 9)) == ["a", "b"]


def test_many_lives_still_tell_their_story():
    bench = Bench()
    dead(bench)
    for _ in range(100):
        bench.revive("a")
        bench.settle("a", Rejected("bad", "again"))
    rare = bench.intent("a").rare
    assert rare is not None and rare.history is not None
    assert len(rare.history) <= 64
    assert bench.intent("a").delivery == 101


def test_a_stale_place_in_another_lane_is_not_a_second_delivery():
    """Revived into another lane at the same rank, while the old lane still has its entry."""
    bench = Bench(pushed=())
    on = terms(expired_action=ExpiredAction.DEAD_LETTER)
    bench.submit("a", "b", on=on, deadline=510)
    bench.patch("b", deadline_ms=0)
    bench.at(550)
    assert bench.statuses("a", "b") == ["DEAD_LETTERED", "DUE"]
    bench.revive("a", execute_at_ms=T0, target=Task("work", "other"))
    assert bench.status("a") is Status.DUE
    assert delivered(bench.demand("w", "task:default", 9)) == ["b"]
    assert delivered(bench.demand("w", "task:other", 9)) == ["a"]
