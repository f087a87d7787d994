"""Intents that wait for other intents."""

from __future__ import annotations

import pytest

from duetime import limits
from duetime.kernel import dependents
from duetime.protocol.intent import Status
from duetime.protocol.outcome import Rejected
from duetime.protocol.terms import ExpiredAction
from tests.unit.kernel.bench import T0, Bench, delivered, errors, queue, stream


def test_a_child_goes_when_its_parent_is_acknowledged():
    bench = Bench()
    assert delivered(bench.submit("p")) == ["p"]
    assert delivered(bench.submit("c", after=("p",))) == []
    assert bench.status("c") is Status.BLOCKED
    assert delivered(bench.done("p")) == ["c"]
    assert bench.intent("c").late_ms == 0, "it is late only from the moment it could go"


def test_a_child_waits_for_every_parent():
    bench = Bench()
    bench.submit("p", "q", "r")
    bench.submit("c", after=("p", "q", "r"))
    bench.done("q")
    bench.done("p")
    assert bench.status("c") is Status.BLOCKED
    assert delivered(bench.done("r")) == ["c"]


def test_a_parent_named_twice_counts_once():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p", "p"))
    assert delivered(bench.done("p")) == ["c"]


def test_a_parent_that_is_acknowledged_already_is_not_waited_for():
    bench = Bench()
    bench.submit("p")
    bench.done("p")
    assert delivered(bench.submit("c", after=("p",))) == ["c"]


def test_a_child_still_waits_for_its_own_time():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), delay=1_000)
    assert delivered(bench.done("p")) == []
    assert bench.status("c") is Status.SCHEDULED
    assert delivered(bench.at(999)) == []
    assert delivered(bench.at(1_000)) == ["c"]


def test_a_parent_of_the_same_batch_is_known():
    bench = Bench()
    applied = bench.submit("p", delay=9)
    applied = bench.submit("c", "d", after=("p",))
    assert errors(applied) == ["", ""]


def test_a_parent_that_does_not_exist_is_refused_and_nothing_is_made():
    bench = Bench()
    bench.submit("p")
    assert errors(bench.submit("c", after=("p", "nobody"))) == ["InvalidField"]
    assert bench.store.get("c") is None
    rare = bench.intent("p").rare
    assert rare is None or not rare.dependents


def test_an_intent_cannot_wait_for_itself():
    bench = Bench()
    assert errors(bench.submit("c", after=("c",))) == ["InvalidField"]


@pytest.mark.parametrize("how", ["cancel", "reject", "expire"])
def test_a_parent_that_ends_otherwise_ends_its_children_with_the_reason(how):
    bench = Bench()
    bench.submit("p", delay=100, deadline=150)
    bench.submit("c", after=("p",))
    if how == "cancel":
        bench.cancel("p")
    elif how == "reject":
        bench.fire("p")
        bench.settle("p", Rejected("bad", "never"))
    else:
        bench.configure(pushed=())
        bench.at(200)
    child = bench.intent("c")
    assert child.status is Status.DEAD_LETTERED
    assert child.rare is not None and child.rare.last_error is not None
    assert child.rare.last_error.kind == "dependency"
    assert repr("p") in child.rare.last_error.message
    assert bench.status("p").name in child.rare.last_error.message


@pytest.mark.parametrize("others", [(), ("q",)])
def test_a_child_of_a_parent_that_ended_otherwise_is_dead_at_once(others):
    bench = Bench()
    bench.submit("p", "q", delay=9)
    bench.cancel("p")
    assert errors(bench.submit("c", after=(*others, "p"))) == [""]
    assert bench.status("c") is Status.DEAD_LETTERED
    bench.fire("q")
    assert delivered(bench.done("q")) == [], "the other parent has nobody waiting any more"


def test_a_retry_of_the_parent_is_not_its_end():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",))
    bench.fail("p")
    assert bench.status("c") is Status.BLOCKED
    bench.later(1_000)
    assert delivered(bench.done("p")) == ["c"]


def test_a_cancelled_child_is_not_woken():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",))
    bench.cancel("c")
    assert delivered(bench.done("p")) == []
    assert bench.status("c") is Status.CANCELED


def test_a_forgotten_child_is_not_looked_for():
    bench = Bench(retention_ms=0, key_window_ms=0)
    bench.submit("p")
    bench.submit("c", after=("p",))
    bench.cancel("c")
    bench.later(120_000)
    assert bench.store.get("c") is None
    assert delivered(bench.done("p")) == []


def test_an_id_that_is_used_again_does_not_inherit_the_old_wait():
    """The parent still lists the id of a child that ended long ago; its namesake waits for another."""
    bench = Bench(retention_ms=0, key_window_ms=0)
    bench.submit("p", "q")
    bench.submit("c", after=("p",))
    bench.cancel("c")
    bench.later(120_000)
    assert errors(bench.submit("c", after=("q",))) == [""]
    assert delivered(bench.done("p")) == []
    assert bench.status("c") is Status.BLOCKED
    assert delivered(bench.done("q")) == ["c"]


@pytest.mark.parametrize("action", ExpiredAction)
def test_a_blocked_intent_ends_at_its_deadline(action):
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), deadline=500, on=queue("q", expired_action=action))
    bench.at(499)
    assert bench.status("c") is Status.BLOCKED
    bench.at(500)
    assert bench.status("c").name == {"DISCARD": "EXPIRED", "DEAD_LETTER": "DEAD_LETTERED"}[action.name]


def test_a_child_released_after_its_deadline_is_not_handed_out():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), deadline=510)
    bench.ms = 520  # the slot of the deadline has not ended, so nothing but this record looks at it
    assert delivered(bench.done("p")) == []
    assert bench.status("c") is Status.EXPIRED


def test_the_end_of_a_chain_of_five_thousand_comes_in_one_record():
    bench = Bench()
    bench.submit("i0", delay=9)
    for n in range(1, 5_001):
        bench.submit(f"i{n}", after=(f"i{n - 1}",))
    applied = bench.cancel("i0")
    assert len(applied.changes) == 5_001
    assert bench.state.counts[Status.DEAD_LETTERED] == 5_000
    assert bench.state.live() == 0
    assert not bench.state.lanes, "nobody is left in the lane"


def test_a_chain_is_acknowledged_link_by_link():
    bench = Bench()
    bench.submit("i0")
    for n in range(1, 50):
        bench.submit(f"i{n}", after=(f"i{n - 1}",))
    for n in range(49):
        assert delivered(bench.done(f"i{n}")) == [f"i{n + 1}"]


def test_the_number_of_dependents_is_limited(monkeypatch):
    monkeypatch.setattr(dependents, "DEPENDENTS_MAX", 3)
    assert limits.DEPENDENTS_MAX == 10_000
    bench = Bench()
    bench.submit("p")
    assert errors(bench.submit("a", "b", "c", "d", after=("p",))) == ["", "", "", "InvalidField"]


def test_a_parent_that_expires_while_things_are_handed_out_ends_its_children_at_once():
    """The deadline is seen by the hand-out, after the children of all other parents were looked at."""
    bench = Bench()
    bench.submit("p", on=stream(), deadline=510)
    bench.submit("c", after=("p",))
    bench.submit("d", after=("c",))
    bench.ms = 520  # before the end of the deadline's slot
    applied = bench.demand("w", "stream:s")
    assert delivered(applied) == []
    assert bench.statuses("p", "c", "d") == ["EXPIRED", "DEAD_LETTERED", "DEAD_LETTERED"]
    assert bench.state.ended_parents == []


def test_the_child_of_a_parent_that_expired_in_the_hand_out_is_not_blocked_for_ever_by_a_restart():
    bench = Bench()
    bench.submit("p", on=stream(), deadline=510)
    bench.submit("c", after=("p",))
    bench.ms = 520
    bench.demand("w", "stream:s")
    bench.save()
    again = bench.thawed()
    again.later(10_000)
    assert again.statuses("p", "c") == ["EXPIRED", "DEAD_LETTERED"]


def test_a_blocked_intent_is_kept_in_the_counts():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",))
    assert bench.state.counts[Status.BLOCKED] == 1
    bench.done("p")
    assert bench.state.counts[Status.BLOCKED] == 0
    assert bench.intent("c").due_at_ms == T0


def test_an_id_that_is_used_again_under_the_same_parent_is_counted_once():
    bench = Bench(retention_ms=0, key_window_ms=0)
    bench.submit("p", "q")
    bench.submit("c", after=("p",))
    bench.cancel("c")
    bench.later(120_000)
    bench.submit("c", after=("p", "q"))
    assert delivered(bench.done("p")) == [], "q is still out"
    assert delivered(bench.done("q")) == ["c"]
