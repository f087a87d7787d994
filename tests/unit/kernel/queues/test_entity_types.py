"""Workers that ask for a type of entities: any of them, one message of each at a time, in order."""

from __future__ import annotations

from duetime.kernel import invariants, query
from duetime.kernel.kernel import Kernel
from duetime.protocol.command import Configure, LaneSettings, Pause, Resume, SetLane
from duetime.protocol.reply import Refusal
from duetime.protocol.terms import Entity, Redelivery
from tests.unit.kernel.bench import T0, Bench, delivered, entity, terms

CARTS = "entities:cart"


def pulled() -> Bench:
    return Bench(pushed=())


def given(applied) -> list[tuple[str, str]]:
    return [(effect.consumer, effect.id) for effect in applied.effects]


def test_messages_of_every_entity_of_the_type_come_and_of_no_other():
    bench = pulled()
    bench.submit("a", on=entity("e1"))
    bench.submit("b", on=entity("e2"))
    bench.submit("x", on=terms(Entity("order", "e1", "add")))
    assert given(bench.demand("w", CARTS, 5)) == [("w", "a"), ("w", "b")]
    assert given(bench.submit("c", on=entity("e3"))) == [("w", "c")]
    assert bench.statuses("x") == ["DUE"]
    invariants.check(bench.state)


def test_one_at_a_time_in_order_also_with_several_workers():
    bench = pulled()
    bench.demand("v", CARTS, 5)
    bench.demand("w", CARTS, 5)
    assert given(bench.submit("a1", "a2", "a3", on=entity("e1"))) == [("v", "a1")]
    assert given(bench.submit("b1", "b2", on=entity("e2"))) == [("w", "b1")]
    assert given(bench.done("a1")) == [("v", "a2")]
    assert given(bench.done("b1")) == [("w", "b2")]
    assert given(bench.done("a2")) == [("v", "a3")]
    invariants.check(bench.state)


def test_a_worker_that_leaves_is_followed_by_another_from_where_it_was():
    bench = pulled()
    on = entity("e1", redelivery=Redelivery(jitter=False, initial_delay_ms=1_000))
    bench.demand("v", CARTS, 1)
    bench.submit("a", "b", on=on)
    bench.demand("w", CARTS, 5)
    assert given(bench.leave("v")) == []
    assert bench.statuses("a", "b") == ["SCHEDULED", "DUE"], "the second waits until the first has ended"
    assert given(bench.later(1_000)) == [("w", "a")]
    assert given(bench.done("a")) == [("w", "b")]


def test_the_longest_wait_or_the_highest_priority_goes_first():
    bench = pulled()
    bench.submit("a", on=entity("e1"))
    bench.ms = 10
    bench.submit("b", on=entity("e2"))
    bench.submit("c", on=entity("e3", priority=300))
    assert delivered(bench.demand("w", CARTS, 2)) == ["c", "a"]
    assert delivered(bench.demand("w", CARTS, 1)) == ["b"]


def test_one_entity_can_be_asked_for_as_well():
    bench = pulled()
    bench.submit("a", "b", on=entity("e1"))
    bench.demand("v", "entity:cart/e1", 1)
    assert delivered(bench.demand("w", CARTS, 1)) == []
    assert given(bench.done("a")) == [("w", "b")]


def test_a_message_asked_for_by_two_demands_goes_to_one():
    bench = pulled()
    bench.demand("v", "entity:cart/e1", 1)
    bench.demand("w", CARTS, 1)
    assert given(bench.submit("a", "b", on=entity("e1"))) == [("v", "a")]
    assert given(bench.done("a")) == [("w", "b")]


def test_an_expired_message_is_not_delivered_and_the_next_one_is():
    bench = pulled()
    bench.submit("a", on=entity("e1"), deadline=100)
    bench.submit("b", on=entity("e1"))
    bench.ms = 200
    assert delivered(bench.demand("w", CARTS, 1)) == ["b"]
    assert bench.statuses("a") == ["EXPIRED"]
    bench = pulled()
    bench.demand("w", CARTS, 1)
    bench.submit("a", on=entity("e1"), delay=500)
    bench.at(600)
    assert bench.statuses("a") == ["DISPATCHING"]


def test_a_claim_takes_what_is_ready_and_leaves_nothing_behind():
    bench = pulled()
    bench.submit("a", on=entity("e1"))
    assert delivered(bench.demand("w", CARTS, 5, standing=False)) == ["a"]
    assert CARTS not in bench.state.lanes
    assert delivered(bench.submit("b", on=entity("e2"))) == []


def test_a_whole_entity_type_can_be_paused_and_why_names_it():
    bench = pulled()
    bench.demand("w", CARTS, 5)
    bench.do(Pause(CARTS))
    assert delivered(bench.submit("a", on=entity("e1"))) == []
    why = query.why(bench.state, bench.intent("a"), T0)
    assert why.code == "paused" and CARTS in why.sentence
    assert delivered(bench.do(Resume(CARTS))) == ["a"]


def test_a_type_has_no_limits():
    refusal = pulled().do(SetLane(CARTS, LaneSettings(concurrency=3))).answer
    assert isinstance(refusal, Refusal) and refusal.reason.value == "InvalidField"


def test_a_demand_on_a_pushed_entity_type_gets_nothing():
    bench = Bench(pushed=("entity",))
    bench.demand("w", CARTS, 5)
    assert given(bench.submit("a", on=entity("e1"))) == [("", "a")]
    bench.do(Configure(bench.state.settings.__class__(pushed=())))
    assert given(bench.submit("b", on=entity("e2"))) == [("w", "b")]


def test_a_message_that_went_away_is_not_offered_any_more():
    bench = pulled()
    bench.submit("a", on=entity("e1"))
    bench.cancel("a")
    assert not bench.state.kinds[CARTS].ready
    assert delivered(bench.demand("w", CARTS, 1)) == []


def test_a_thousand_that_come_and_go_leave_no_heap_behind():
    bench = pulled()
    for number in range(1_000):
        bench.submit(f"a{number}", on=entity(f"e{number}"))
        bench.cancel(f"a{number}")
    assert len(bench.state.kinds[CARTS].heap) < 100


def test_after_a_restart_the_same_goes_to_the_same():
    bench = pulled()
    for number in range(20):
        bench.submit(f"a{number}", f"b{number}", on=entity(f"e{number % 7}", priority=number % 3))
    bench.demand("v", CARTS, 3)
    bench.demand("w", CARTS, 2)
    checkpoint = bench.kernel.checkpoint(1)
    again = Bench(bench.store)
    again.kernel = Kernel(bench.store)
    again.kernel.thaw(checkpoint)
    again.state = again.kernel.state
    first = {effect.id for effect in again.demand("w", CARTS, 4).effects}
    invariants.check(again.state)
    assert len(first) == 2, "of seven entities five are busy"


def test_a_clock_that_is_set_back_makes_it_wait_again():
    bench = pulled()
    bench.ms = 1_000
    bench.submit("a", on=entity("e1"))
    bench.ms = 500
    assert delivered(bench.demand("w", CARTS, 1)) == []
    assert bench.statuses("a") == ["SCHEDULED"]
    assert delivered(bench.at(1_000)) == ["a"]
