"""How late an intent is: until its call is made, and without what it waited for a limit."""

from __future__ import annotations

from duetime.kernel import invariants
from duetime.kernel.history import entries_of
from duetime.kernel.query import why
from duetime.kernel.queues import dispatch
from duetime.limits import PAUSES_KEPT
from duetime.protocol.command import LaneSettings, Pause, Resume, SetLane, Settle
from duetime.protocol.outcome import Done, Failed, Outcome, Settlement, Snoozed
from duetime.protocol.terms import Limit
from duetime.protocol.view import view_of
from duetime.store.memory import MemoryStore
from tests.unit.kernel.bench import T0, Bench, entity, queue, terms

QUEUE = "task:default"


def ended(bench: Bench, id: str, waited_ms: int, outcome: Outcome | None = None) -> None:
    """The delivery of this intent that is out ended; it waited so long in its channel."""
    intent = bench.intent(id)
    bench.do(Settle((Settlement(id, intent.delivery, outcome or Done(), None, intent.consumer, waited_ms),)))
    invariants.check(bench.state)


def late(bench: Bench, id: str = "a") -> tuple[int, int]:
    intent = bench.intent(id)
    return intent.late_ms, intent.limited_ms


# The moment of the call.


def test_the_call_counts_and_not_the_hand_over():
    bench = Bench()
    bench.submit("a")
    bench.ms = 5_000
    ended(bench, "a", 4_500)
    assert late(bench) == (4_500, 0)
    assert bench.intent("a").first_dispatch_at_ms == T0 + 4_500


def test_a_reported_wait_is_at_most_the_time_that_passed():
    bench = Bench()
    bench.submit("a")
    bench.ms = 100
    ended(bench, "a", 1_000_000)
    assert late(bench) == (100, 0)


def test_a_held_back_delivery_is_late_since_it_was_first_due():
    """The breaker holds the call back, and hands the delivery back: it was not called yet."""
    bench = Bench()
    bench.submit("a")
    ended(bench, "a", -1, Snoozed(5_000))
    shown = view_of(bench.intent("a"))
    assert shown.late_ms is None and not shown.first_dispatch_at_ms
    bench.at(5_000)
    ended(bench, "a", -1, Snoozed(1_000))
    bench.at(6_050)
    bench.ms = 6_200
    ended(bench, "a", 70)
    assert late(bench) == (6_120, 0)


def test_a_retry_does_not_change_how_late_the_first_call_was():
    bench = Bench()
    bench.submit("a")
    bench.ms = 10
    ended(bench, "a", 5, Failed("x", "no"))
    bench.at(2_000)
    bench.ms = 2_100
    ended(bench, "a", 90)
    assert late(bench) == (5, 0)


def test_a_new_time_or_a_revival_resets_lateness():
    bench = Bench()
    bench.submit("a", "b")
    ended(bench, "a", -1, Snoozed(5_000))
    bench.patch("a", execute_at_ms=T0 + 60_000)
    bench.at(60_000)
    assert late(bench) == (0, 0)
    ended(bench, "b", -1, Failed("breaker", "held back", delay_ms=0))
    bench.later(0)
    assert bench.intent("b").late_from_ms == T0
    while bench.status("b").name != "DEAD_LETTERED":
        bench.later(100_000)
        ended(bench, "b", 1, Failed("x", "no"))
    bench.revive("b")
    assert late(bench, "b") == (0, 0)


# Limits.


def test_time_waiting_for_a_rate_is_reported_separately():
    bench = Bench()
    limited = terms(limits=(Limit("k", 1, 1_000),))
    bench.submit("a", "b", "c", on=limited)
    assert bench.state.flow.parked == 2
    bench.at(400)
    assert view_of(bench.intent("b"), T0 + 400).limited_ms == 400
    bench.at(1_000)
    bench.at(2_000)
    assert [late(bench, id) for id in "abc"] == [(0, 0), (0, 1_000), (0, 2_000)]
    assert bench.state.flow.parked == 0
    invariants.check(bench.state)


def test_waiting_for_concurrency_is_reported_separately_from_waiting_for_a_worker():
    bench = Bench(pushed=("callback",))
    bench.do(SetLane(QUEUE, LaneSettings(concurrency=1)))
    bench.demand("w", QUEUE, 1)
    bench.submit("a", "b")
    bench.demand("w", QUEUE, 1)
    bench.at(3_000)
    ended(bench, "a", 0)
    assert late(bench, "b") == (0, 3_000)
    bench.submit("c")
    bench.at(3_500)
    ended(bench, "b", 0)
    bench.at(4_000)
    bench.demand("w", QUEUE, 1)
    assert late(bench, "c") == (1_000, 0), "no worker asked for it"


def test_time_in_a_paused_queue_is_reported_separately():
    bench = Bench()
    bench.submit("a")
    bench.do(Pause("task:q"))
    bench.do(Pause("task:q"))
    bench.submit("b", on=queue("q"), delay=100)
    bench.at(1_100)
    bench.do(Resume("task:q"))
    assert late(bench, "b") == (0, 1_000)
    bench.do(Resume("task:q"))
    invariants.check(bench.state)


def test_a_pause_that_ended_before_costs_nothing():
    bench = Bench(pushed=("callback",))
    bench.submit("a", on=queue("q"))
    bench.do(Pause("task:q"))
    bench.later(100)
    bench.do(Resume("task:q"))
    bench.later(100)
    bench.submit("b", "c", on=queue("q"))
    bench.later(50)
    bench.demand("w", "task:q", 2)
    assert (late(bench, "a"), late(bench, "b")) == ((150, 100), (50, 0))
    bench.do(Pause("task:q"))
    bench.later(100)
    bench.do(Resume("task:q"))
    bench.demand("w", "task:q", 1)
    assert late(bench, "c") == (50, 100)


def test_a_wait_is_kept_though_a_checkpoint_came_between():
    bench = Bench(MemoryStore(durable=True))
    bench.submit("a")
    bench.save()
    bench.ms = 500
    ended(bench, "a", 300)
    bench.save(2)
    assert late(bench.thawed()) == (300, 0)


def test_a_pause_is_the_same_after_a_restart():
    bench = Bench(MemoryStore(durable=True), pushed=("callback",))
    bench.submit("a", on=queue("q"))
    for _ in range(PAUSES_KEPT + 2):
        bench.later(100)
        bench.do(Pause("task:q"))
        bench.later(100)
        bench.do(Resume("task:q"))
    bench.do(Pause("task:q"))
    [(name, pauses)] = bench.kernel.checkpoint(0).pauses
    assert name == "task:q" and len(pauses) == PAUSES_KEPT and pauses[-1][1] == 0
    again = Bench(bench.store)
    again.kernel.thaw(bench.kernel.checkpoint(0))
    again.ms = bench.ms
    for each in (bench, again):
        each.later(1_000)
        each.do(Resume("task:q"))
        each.demand("w", "task:q")
    assert again.intent("a").limited_ms == 1_000 + 100 * (PAUSES_KEPT - 1)


def test_time_behind_a_busy_entity_is_reported_separately():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.at(3_000)
    ended(bench, "a", 0)
    assert (late(bench, "a"), late(bench, "b")) == ((0, 0), (0, 3_000))
    bench.submit("c", on=entity())
    ended(bench, "b", 0)
    assert late(bench, "c") == (0, 0)


def test_an_entity_that_is_free_and_has_no_worker_makes_late():
    bench = Bench(pushed=("callback",))
    bench.demand("w", "entities:cart", 1)
    bench.submit("a", "b", on=entity())
    bench.at(1_000)
    ended(bench, "a", 0)
    bench.at(1_500)
    bench.demand("w", "entities:cart", 1)
    assert late(bench, "b") == (500, 1_000)


TYPE = "entities:cart"


def test_time_of_a_paused_entity_type_is_reported_separately():
    bench = Bench(pushed=("callback",))
    bench.demand("w", TYPE, 2)
    bench.do(Pause(TYPE))
    bench.submit("a", on=entity("e1"))
    bench.submit("b", on=entity("e2"), delay=400)
    bench.submit("c", on=entity("e3"))
    bench.at(1_000)
    bench.do(Resume(TYPE))
    assert late(bench, "a") == late(bench, "c") == (0, 1_000)
    bench.at(1_500)
    bench.demand("w", TYPE, 1)
    assert late(bench, "b") == (500, 600), "then no worker asked for it"
    assert not bench.state.type_pauses, "nobody waits any more"
    bench.submit("d", on=entity("e4"))
    bench.demand("w", TYPE, 1)
    assert late(bench, "d") == (0, 0)
    invariants.check(bench.state)


def test_a_retry_that_waits_for_a_paused_type_changes_nothing():
    bench = Bench(pushed=("callback",))
    bench.submit("a", on=entity("e1"))
    bench.demand("w", TYPE, 1)
    ended(bench, "a", 0, Failed("x", "no", delay_ms=0))
    bench.do(Pause(TYPE))
    bench.at(1_000)
    bench.do(Resume(TYPE))
    bench.demand("w", TYPE, 1)
    assert bench.intent("a").delivery == 2 and late(bench) == (0, 0)


def test_a_paused_type_without_consumers_is_the_same_after_a_restart():
    bench = Bench(MemoryStore(durable=True), pushed=("callback",))
    bench.submit("a", on=entity("e1"))
    for _ in range(PAUSES_KEPT + 2):
        bench.later(100)
        bench.do(Pause(TYPE))
        bench.do(Pause(TYPE))
        bench.later(100)
        bench.do(Resume(TYPE))
    bench.do(Resume(TYPE))
    assert TYPE not in bench.state.lanes
    [(name, pauses)] = bench.kernel.checkpoint(0).pauses
    assert name == TYPE and len(pauses) == PAUSES_KEPT
    again = Bench(bench.store)
    again.kernel.thaw(bench.kernel.checkpoint(0))
    again.ms = bench.ms
    again.demand("w", TYPE, 1)
    assert late(again) == ((PAUSES_KEPT + 4) * 100, PAUSES_KEPT * 100)
    assert not again.state.type_pauses


def test_a_message_that_waited_for_its_entity_and_for_a_pause_waited_once():
    bench = Bench(pushed=("callback",))
    bench.demand("w", TYPE, 1)
    bench.submit("a", "b", on=entity("e1"))
    bench.at(500)
    bench.do(Pause(TYPE))
    bench.at(1_000)
    ended(bench, "a", 0)
    bench.at(2_000)
    bench.do(Resume(TYPE))
    bench.at(2_500)
    bench.demand("w", TYPE, 1)
    assert late(bench, "b") == (500, 2_000)


def test_messages_behind_another_one_of_their_entity_are_counted():
    bench = Bench(MemoryStore(durable=True), pushed=("callback",))
    bench.submit("a", "b", "c", on=entity("e1"))
    bench.submit("d", on=entity("e2"))
    assert bench.state.behind_others == 2
    bench.demand("w", TYPE, 2)
    assert bench.state.behind_others == 2
    bench.cancel("c")
    assert bench.state.behind_others == 1
    again = Bench(bench.store)
    again.kernel.thaw(bench.kernel.checkpoint(0))
    assert again.state.behind_others == 1
    bench.patch("b", execute_at_ms=T0 + 1_000)
    assert bench.state.behind_others == 0
    bench.at(1_000)
    assert bench.state.behind_others == 1
    ended(bench, "a", 0)
    assert bench.state.behind_others == 0


def test_an_intent_that_leaves_while_limited_is_no_longer_counted():
    bench = Bench()
    limited = terms(limits=(Limit("k", concurrency=1),))
    bench.submit("a", "b", "c", "d", on=limited)
    bench.submit("e", on=limited, deadline=500)
    assert bench.state.flow.parked == 4
    bench.ms = 200
    bench.cancel("b")
    bench.patch("c", execute_at_ms=T0 + 60_000)
    assert bench.intent("b").limited_ms == 200
    bench.at(600)
    assert bench.status("e").name == "EXPIRED" and bench.state.flow.parked == 1
    invariants.check(bench.state)
    bench.configure(pushed=("callback",))  # the lane is pulled from now on: all look again
    assert bench.state.flow.parked == 0 and bench.intent("d").limited_ms == 600
    invariants.check(bench.state)


def test_logs_of_the_first_rules_add_up_as_they_did():
    bench = Bench()
    bench.state.rules = 1
    limited = terms(limits=(Limit("k", 1, 1_000),))
    bench.submit("a", "b", on=limited)
    bench.submit("c", "d", on=entity())
    bench.do(Pause("task:q"))
    bench.submit("e", on=queue("q"))
    bench.at(1_000)
    bench.do(Resume("task:q"))
    bench.done("c")
    assert [late(bench, id) for id in "bde"] == [(1_000, 0)] * 3
    bench.do(Pause(TYPE))
    assert not bench.state.type_pauses


def test_a_stale_entry_parks_its_intent_once_and_releases_it():
    """An intent that was patched while it was due stands in its track twice."""
    bench = Bench(pushed=("callback",))
    limited = terms(limits=(Limit("k", concurrency=1),))
    bench.submit("a", "b", on=limited)
    bench.patch("b", payload=b"[1]")
    bench.demand("w", QUEUE, 3)
    assert bench.state.flow.parked == 1
    invariants.check(bench.state)
    bench.state.flow.limiters["key:k"].running = 0
    track = bench.state.lanes[QUEUE].track(3)
    assert not dispatch.held_up(bench.state, track, bench.intent("b"))
    assert bench.state.flow.parked == 0


def test_why_tells_waiting_for_a_limit_apart():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.at(3_000)
    ended(bench, "a", 0)
    waited = "waited 3 s for a limit, a pause or its entity"
    told = why(bench.state, bench.intent("b"), T0 + 3_000)
    assert told.data["limited_ms"] == 3_000
    assert f"(delivery 1, attempt 1 of 5, {waited} before)" in told.sentence
    ended(bench, "b", 0, Failed("x", "no", delay_ms=0))
    bench.later(10)
    told = why(bench.state, bench.intent("b"), T0 + 3_010)
    assert "waited" not in told.sentence, "that was not this attempt"
    ended(bench, "b", 0)
    notes = [each.note for each in entries_of(bench.intent("b")) if each.status.name == "DISPATCHING"]
    assert notes == [waited, ""]
    told = why(bench.state, bench.intent("b"), T0 + 3_000)
    assert told.data["limited_ms"] == 3_000
    assert "it started 0 ms after its time, and 3 s more for a limit, a pause or its entity" in told.sentence
