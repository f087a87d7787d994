"""What becomes of a new intent: its times, its id, and how many may be there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from duetime.kernel.invariants import check
from duetime.protocol.command import Start, Submit
from duetime.protocol.intent import Intent, Item, Status
from duetime.protocol.outcome import Rejected
from duetime.protocol.reply import Refusal
from duetime.protocol.terms import Bare, Callback, Entity, Stream, Task, lane_of
from tests.unit.kernel.bench import (
    T0,
    Bench,
    delivered,
    deliveries,
    entity,
    errors,
    queue,
    replies,
    stream,
    terms,
)


def test_an_intent_of_now_is_handed_out_in_the_same_record():
    bench = Bench()
    applied = bench.submit("a")
    assert delivered(applied) == ["a"]
    assert [(change.old, change.new) for change in applied.changes] == [
        (None, Status.SCHEDULED),
        (Status.SCHEDULED, Status.DUE),
        (Status.DUE, Status.DISPATCHING),
    ]
    intent = replies(applied)[0]
    assert isinstance(intent, Intent)
    assert (intent.seq, intent.delivery, intent.attempt, intent.late_ms) == (1, 1, 1, 0)


def test_a_delivery_carries_all_that_a_channel_needs():
    bench = Bench()
    on = terms(timeout_ms=7)
    applied = bench.submit("a", on=on, payload=b"{}", deadline=50, traceparent="00-1")
    (deliver,) = deliveries(applied)
    assert (deliver.id, deliver.delivery, deliver.attempt, deliver.terms) == ("a", 1, 1, on)
    assert (deliver.payload, deliver.execute_at_ms, deliver.deadline_ms) == (b"{}", T0, T0 + 50)
    assert (deliver.traceparent, deliver.late_ms, deliver.consumer) == ("00-1", 0, "")


def test_an_intent_of_later_waits():
    bench = Bench()
    assert delivered(bench.submit("a", delay=100)) == []
    assert bench.status("a") is Status.SCHEDULED
    assert bench.next() == 100
    assert delivered(bench.at(100)) == ["a"]


@pytest.mark.parametrize(("delay", "error"), [(-1, ""), (-5_000, ""), (-5_001, "InThePast")])
def test_a_time_in_the_past_is_forgiven_for_five_seconds(delay, error):
    bench = Bench()
    assert errors(bench.submit("a", delay=delay)) == [error]


def test_lateness_counts_from_the_time_that_was_asked_for():
    bench = Bench()
    (deliver,) = deliveries(bench.submit("a", delay=-1_234))
    assert deliver.late_ms == 1_234


def test_the_tolerance_is_a_setting():
    bench = Bench(past_tolerance_ms=0)
    assert errors(bench.submit("a", delay=-1)) == ["InThePast"]
    assert errors(bench.submit("a")) == [""]


def test_a_deadline_before_the_time_is_refused():
    bench = Bench()
    assert errors(bench.submit("a", delay=10, deadline=9)) == ["DeadlineTooEarly"]
    assert errors(bench.submit("a", delay=10, deadline=11)) == [""]


def test_an_id_exists_once():
    bench = Bench()
    assert errors(bench.submit("a", "a", delay=10)) == ["", "IdExists"]
    assert errors(bench.submit("a")) == ["IdExists"]
    assert bench.state.counts[Status.SCHEDULED] == 1


def test_an_id_stays_taken_when_its_intent_has_ended():
    bench = Bench()
    bench.submit("a")
    bench.done("a")
    assert errors(bench.submit("a")) == ["IdExists"]


def test_a_fresh_id_is_not_looked_up():
    bench = Bench()
    assert errors(bench.submit("a", fresh=True)) == [""]


def test_a_refused_intent_leaves_no_trace():
    bench = Bench(lane_pending_max=1)
    bench.submit("a", delay=10)
    before = bench.kernel.checkpoint(0)
    applied = bench.submit("b", "c", delay=10, key="k")
    assert errors(applied) == ["LaneFull", "LaneFull"]
    assert (applied.effects, applied.changes) == ([], [])
    after = bench.kernel.checkpoint(0)
    assert (after.counts, after.pending, after.seq) == (before.counts, before.pending, before.seq)
    assert bench.store.by_key("k") is None


def test_a_depth_of_ten_admits_ten_of_a_thousand_in_one_batch():
    bench = Bench(lane_pending_max=10)
    applied = bench.submit(*(f"i{n}" for n in range(1_000)), delay=1_000)
    assert errors(applied) == [""] * 10 + ["LaneFull"] * 990
    assert bench.state.lanes["task:default"].pending == 10


def test_a_depth_of_ten_admits_ten_messages_to_one_entity():
    bench = Bench(entity_pending_max=10)
    applied = bench.submit(*(f"i{n}" for n in range(1_000)), on=entity())
    assert errors(applied) == [""] * 10 + ["EntityFull"] * 990
    assert errors(bench.submit("other", on=entity("e2"))) == [""], "every entity has its own depth"


def test_room_in_a_lane_comes_back_one_by_one():
    bench = Bench(lane_pending_max=2)
    bench.submit("a", "b")
    assert errors(bench.submit("c")) == ["LaneFull"]
    bench.done("a")
    assert errors(bench.submit("c", "d")) == ["", "LaneFull"]


def test_all_lanes_together_have_a_limit():
    bench = Bench(pending_max=3)
    assert errors(bench.submit("a", "b", delay=5)) == ["", ""]
    assert errors(bench.submit("c", "d", on=queue("q"), delay=5)) == ["", "Busy"]
    bench.cancel("a")
    assert errors(bench.submit("d", "e", on=stream())) == ["", "Busy"]


def test_live_entities_have_a_limit():
    bench = Bench(entities_max=2)
    assert errors(bench.submit("a", on=entity("e1"))) == [""]
    assert errors(bench.submit("b", on=entity("e2"))) == [""]
    assert errors(bench.submit("c", on=entity("e3"))) == ["EntityFull"]
    assert errors(bench.submit("d", on=entity("e2"))) == [""], "one that lives already is not a new one"
    bench.done("a")
    assert errors(bench.submit("c", on=entity("e3"))) == [""]


def test_each_item_has_its_own_terms_and_its_own_answer():
    bench = Bench()
    items = (Item("a", 1, T0), Item("b", 0, T0 + 5), Item("a", 0, T0))
    applied = bench.do(Submit((queue("x"), queue("y")), items))
    first, second, third = replies(applied)
    assert isinstance(first, Intent) and first.terms.lane == "task:y"
    assert isinstance(second, Intent) and second.terms.lane == "task:x"
    assert isinstance(third, Refusal) and third.reason.value == "IdExists"


def test_the_order_of_acceptance_is_counted():
    bench = Bench()
    bench.submit("a", "b", delay=9)
    bench.submit("c")
    assert [bench.intent(id).seq for id in "abc"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("target", "lane"),
    [
        (Task("f"), "task:default"),
        (Task("f", "mail"), "task:mail"),
        (Entity("cart", "7", "add"), "entity:cart/7"),
        (Callback("http://x/hook"), "callback:x"),
        (Callback("https://x:8443/a/b?c=d/e", batch=True), "callback:x:8443#batch"),
        (Stream("news"), "stream:news"),
        (Bare(), "bare:"),
    ],
)
def test_every_target_has_its_lane(target, lane):
    assert lane_of(target) == lane
    bench = Bench()
    bench.submit("a", on=terms(target))
    assert list(bench.state.lanes) == [lane]


def test_a_time_counted_from_the_moment_of_asking_is_never_too_old():
    bench = Bench()
    assert delivered(bench.submit("a", delay=-60_000, relative=True)) == ["a"]
    assert bench.intent("a").late_ms == 60_000


class TestDelayedMessages:
    """They count against the limits of entities as delayed intents count in queues."""

    def test_the_number_of_messages_of_an_entity_is_limited(self):
        bench = Bench(entity_pending_max=3)
        bench.submit("a", on=entity(), delay=60_000)
        bench.submit("b", on=entity())
        bench.submit("c", on=entity(), delay=3_600_000)
        assert refused(bench.submit("d", on=entity(), delay=60_000)) == "EntityFull"
        assert refused(bench.submit("e", on=entity())) == "EntityFull"
        bench.cancel("a")
        assert refused(bench.submit("f", on=entity(), delay=60_000)) is None
        assert refused(bench.submit("g", on=entity(), delay=60_000)) == "EntityFull"
        bench.done("b")
        assert refused(bench.submit("h", on=entity())) is None

    def test_a_cold_entity_is_full_without_a_lane(self):
        bench = Bench(entity_pending_max=2)
        bench.submit("a", "b", on=entity(), delay=3_600_000)
        assert not bench.state.lanes, "what is due later needs no lane"
        assert refused(bench.submit("c", on=entity(), delay=3_600_000)) == "EntityFull"
        assert refused(bench.submit("d", on=entity())) == "EntityFull"

    def test_an_entity_with_a_delayed_message_is_live(self):
        bench = Bench(entities_max=2)
        bench.submit("a", on=entity("one"), delay=60_000)
        bench.submit("b", on=entity("two"))
        assert refused(bench.submit("c", on=entity("three"), delay=60_000)) == "EntityFull"
        assert refused(bench.submit("d", on=entity("one"))) is None
        bench.cancel("a")
        bench.done("d")
        assert refused(bench.submit("e", on=entity("three"), delay=60_000)) is None

    def test_blocked_messages_count_too(self):
        bench = Bench(entity_pending_max=1)
        bench.submit("first")
        bench.submit("a", on=entity(), after=("first",))
        assert refused(bench.submit("b", on=entity())) == "EntityFull"
        bench.done("first")
        assert bench.status("a") is Status.DISPATCHING
        assert refused(bench.submit("b", on=entity())) == "EntityFull"
        bench.done("a")
        assert refused(bench.submit("b", on=entity())) is None

    @pytest.mark.parametrize("counted", [True, False])
    def test_they_are_counted_after_a_restart(self, counted):
        """Also from a checkpoint of a version that did not count them."""
        bench = Bench(entity_pending_max=2)
        bench.submit("a", on=entity(), delay=60_000)
        bench.submit("b", "held", on=entity("other"))
        bench.submit("c", on=entity(), delay=60_000)
        bench.fail("b")
        checkpoint = bench.kernel.checkpoint(1)
        for job in bench.store.checkpoint(checkpoint):
            job()
        again = Bench(bench.store.reopen())  # type: ignore[attr-defined]
        saved = again.store.load()
        assert saved is not None
        again.kernel.thaw(saved if counted else replace(saved, waiting=None))
        check(again.state)
        assert again.state.waiting == {"entity:cart/e1": 2}
        assert refused(again.submit("d", on=entity())) == "EntityFull"

    def test_under_the_first_rules_they_did_not_count(self):
        bench = Bench()
        bench.do(Start(1, 1))
        bench.configure(entity_pending_max=1, entities_max=1)
        bench.submit("a", "b", "c", on=entity(), delay=60_000)
        bench.submit("d", on=entity())
        assert bench.statuses("a", "b", "c", "d") == ["SCHEDULED"] * 3 + ["DISPATCHING"]
        assert refused(bench.submit("e", on=entity())) == "EntityFull"
        assert refused(bench.submit("f", on=entity("two"))) == "EntityFull"

    def test_a_clock_that_is_set_back_and_a_patch_keep_the_count(self):
        bench = Bench(entity_pending_max=2)
        bench.submit("a", "b", on=entity())
        bench.patch("b", execute_at_ms=T0 + 60_000)
        check(bench.state)
        assert refused(bench.submit("c", on=entity())) == "EntityFull"
        bench.at(60_000)
        bench.settle("a", Rejected("x", "no"))
        assert delivered(bench.revive("a")) == []
        check(bench.state)
        assert refused(bench.submit("c", on=entity())) == "EntityFull"


def refused(applied):
    """The error of the last reply, or None."""
    answer = applied.answer[-1]
    return answer.reason.value if isinstance(answer, Refusal) else None
