"""Time passes, stands still, and goes back."""

from __future__ import annotations

import pytest

from duetime.protocol.command import Pause, Resize, Resume
from duetime.protocol.intent import Status
from duetime.protocol.terms import ExpiredAction
from tests.unit.kernel.bench import T0, Bench, delivered, entity, queue, stream


@pytest.mark.parametrize("action", ExpiredAction)
def test_a_due_intent_ends_at_its_deadline(action):
    bench = Bench()
    bench.submit("a", on=stream(expired_action=action), deadline=500)
    bench.at(499)
    assert bench.status("a") is Status.DUE
    bench.at(500)
    intent = bench.intent("a")
    assert intent.status.name == {"DISCARD": "EXPIRED", "DEAD_LETTER": "DEAD_LETTERED"}[action.name]
    assert intent.rare is not None and intent.rare.last_error is not None
    assert intent.rare.last_error.kind == "expired"
    assert intent.finished_at_ms == T0 + 500


def test_an_overdue_intent_is_not_delivered_after_its_deadline():
    """The engine was off from before the time until after the deadline."""
    bench = Bench()
    bench.submit("a", delay=1_000, deadline=2_000)
    applied = bench.at(10_000)
    assert delivered(applied) == []
    assert bench.status("a") is Status.EXPIRED


def test_the_deadline_is_looked_at_again_before_a_pushed_delivery():
    bench = Bench()
    for tier in (3, 4):
        bench.do(Resize(tier, 1))
    bench.submit("busy")
    bench.submit("a", deadline=510)
    bench.submit("b")
    bench.ms = 520  # the slot of the deadline ends later
    assert delivered(bench.done("busy")) == ["b"]
    assert bench.status("a") is Status.EXPIRED


def test_the_deadline_is_checked_when_a_lane_is_resumed():
    bench = Bench()
    bench.do(Pause("task:q"))
    bench.submit("a", "b", on=queue("q"), deadline=510)
    bench.ms = 520
    assert delivered(bench.do(Resume("task:q"))) == []
    assert bench.statuses("a", "b") == ["EXPIRED", "EXPIRED"]
    assert bench.state.lanes == {}


def test_a_deadline_that_passed_before_the_submit_is_never_delivered():
    bench = Bench()
    assert delivered(bench.submit("a", delay=-3_000, deadline=-1_000)) == []
    assert bench.status("a") is Status.EXPIRED


def test_every_record_wakes_what_is_due_not_only_an_advance():
    bench = Bench()
    bench.submit("a", delay=100)
    bench.ms = 100
    assert delivered(bench.submit("b", delay=100)) == ["a"]


def test_intents_woken_by_one_record_go_in_the_order_of_their_times():
    bench = Bench()
    bench.submit("c", delay=300)
    bench.submit("a", delay=100)
    bench.submit("b", delay=200)
    assert delivered(bench.at(9_000)) == ["a", "b", "c"]
    assert [bench.intent(id).late_ms for id in "abc"] == [8_900, 8_800, 8_700]


def test_intents_expired_by_one_record_end_in_the_order_of_their_times():
    bench = Bench()
    for id, deadline in (("c", 300), ("a", 100), ("b", 200)):
        bench.submit(id, on=stream(), deadline=deadline)
    bench.at(9_000)
    assert [bench.intent(id).ended for id in "abc"] == [1, 2, 3]


# The clock is set back.


def test_a_ready_pulled_intent_is_not_handed_out_before_its_time():
    bench = Bench()
    bench.submit("a", on=stream(), delay=1_000)
    bench.at(1_000)
    assert bench.status("a") is Status.DUE
    bench.ms = 400
    assert delivered(bench.demand("w", "stream:s")) == []
    assert bench.status("a") is Status.SCHEDULED
    assert bench.next() == 1_000
    assert delivered(bench.at(999)) == []
    assert delivered(bench.at(1_000)) == ["a"]
    assert bench.intent("a").late_ms == 0


def test_a_ready_pushed_intent_is_not_handed_out_before_its_time():
    bench = Bench()
    for tier in (3, 4):
        bench.do(Resize(tier, 1))
    bench.submit("busy")
    bench.submit("a", delay=1_000)
    bench.submit("b", delay=200)
    bench.at(1_000)
    bench.ms = 400
    assert delivered(bench.done("busy")) == ["b"], "this one's time has come by either clock"
    assert delivered(bench.done("b")) == []
    assert bench.statuses("a", "b") == ["SCHEDULED", "ACKED"]
    assert delivered(bench.at(1_000)) == ["a"]


def test_a_ready_message_of_an_entity_is_not_handed_out_before_its_time():
    bench = Bench()
    bench.submit("a", on=entity())
    bench.submit("b", on=entity(), delay=1_000)
    bench.at(1_000)
    bench.ms = 400
    assert delivered(bench.done("a")) == []
    assert bench.status("b") is Status.SCHEDULED
    assert bench.state.lanes == {}, "its entity has nothing to do until then"
    assert delivered(bench.at(1_000)) == ["b"]


def test_a_holder_with_a_due_retry_still_holds_its_entity():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.do(Pause("entity:cart/e1"))
    bench.fail("a")
    bench.at(1_000)
    assert bench.status("a") is Status.DUE
    bench.ms = 400
    assert delivered(bench.do(Resume("entity:cart/e1"))) == []
    assert bench.statuses("a", "b") == ["SCHEDULED", "DUE"]
    assert delivered(bench.at(1_000)) == ["a"]
    assert delivered(bench.done("a")) == ["b"]


def test_delays_of_new_intents_count_from_the_clock_that_was_set_back():
    bench = Bench()
    bench.at(100_000)
    bench.ms = 0
    assert delivered(bench.submit("a")) == ["a"]
    bench.submit("b", delay=500)
    assert delivered(bench.at(499)) == []
    assert delivered(bench.at(500)) == ["b"]


def test_the_clock_is_no_longer_behind_when_it_reaches_its_old_time():
    bench = Bench()
    bench.at(1_000)
    bench.at(500)
    assert bench.state.behind
    bench.at(999)
    assert bench.state.behind
    bench.at(1_000)
    assert not bench.state.behind


def test_a_clock_that_is_behind_stays_behind_after_a_restart():
    bench = Bench()
    bench.submit("a", on=stream(), delay=1_000)
    bench.at(1_000)
    bench.at(400)
    bench.save()
    again = bench.thawed()
    assert again.state.behind
    assert delivered(again.demand("w", "stream:s")) == []
    assert delivered(again.at(1_000)) == ["a"]


def test_a_lease_is_not_shortened_by_a_clock_that_went_back():
    bench = Bench()
    bench.at(10_000)
    bench.submit("a", on=stream(lease_ms=1_000))
    bench.demand("w", "stream:s")
    bench.ms = 0
    bench.beat("w")
    bench.at(10_999)
    assert bench.status("a") is Status.DISPATCHING
    bench.at(11_000)
    assert bench.status("a") is Status.SCHEDULED


def test_a_leap_forward_fires_everything_on_its_way():
    bench = Bench()
    for n in range(50):
        bench.submit(f"i{n}", delay=n * 3_600_000)
    assert len(delivered(bench.at(60 * 3_600_000))) == 49, "one had gone before"


def test_a_retry_is_not_before_the_intent_s_own_time_when_the_clock_went_back_while_it_ran():
    bench = Bench()
    bench.submit("a", delay=100_000)
    bench.at(100_000)
    bench.ms = 0
    bench.fail("a")
    assert delivered(bench.at(99_999)) == []
    assert delivered(bench.at(100_000)) == ["a"]


def test_a_holder_that_is_too_late_lets_the_next_message_go_in_the_same_record():
    bench = Bench()
    bench.submit("a", "b", on=entity())
    bench.do(Pause("entity:cart/e1"))
    bench.fail("a")
    bench.patch("a", deadline_ms=T0 + 1_010)
    bench.at(1_000)
    bench.ms = 1_020  # before the end of the deadline's slot
    assert delivered(bench.do(Resume("entity:cart/e1"))) == ["b"]
    assert bench.statuses("a", "b") == ["EXPIRED", "DISPATCHING"]
