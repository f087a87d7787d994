"""Intents that wait for a failure, and delays that count from the end of the dependencies."""

from __future__ import annotations

from duetime.kernel.history import entries_of
from duetime.kernel.invariants import check
from duetime.kernel.reasons import why
from duetime.protocol.command import Cancel
from duetime.protocol.intent import Status, Ties, member_id
from duetime.protocol.outcome import Rejected
from duetime.protocol.terms import AfterOn
from tests.unit.kernel.bench import T0, Bench, delivered, terms

ON_END = terms(after_on=AfterOn.END)
ON_FAILURE = terms(after_on=AfterOn.FAILURE)
BAD = Rejected("bad", "no")


def why_of(bench, id):
    check(bench.state)
    return why(bench.state, bench.intent(id), T0 + bench.ms)


def last_note(bench, id):
    return entries_of(bench.intent(id))[-1].note


# A failure.


def test_a_failed_parent_releases_it_at_once():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", on=ON_FAILURE, after=("p", "q"))
    assert why_of(bench, "c").sentence.startswith("It waits for one of 2 other intents to fail: 'p' (DISP")
    assert delivered(bench.settle("p", BAD)) == ["c"]
    assert entries_of(bench.intent("c"))[1].note == "'p' ended as DEAD_LETTERED"
    assert delivered(bench.settle("q", BAD)) == [], "once is enough"
    check(bench.state)


def test_a_branch_is_not_needed_if_all_succeed():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", on=ON_FAILURE, after=("p", "q"))
    bench.done("p")
    assert why_of(bench, "c").sentence == "It waits for 1 other intent to fail: 'q' (DISPATCHING)."
    assert delivered(bench.done("q")) == []
    found = why_of(bench, "c")
    assert bench.status("c") is Status.CANCELED and found.code == "not-needed"
    assert found.sentence == "It was cancelled 0 ms ago, not needed: everything it waited for succeeded."
    assert last_note(bench, "c") == "not needed: everything it waited for succeeded"


def test_the_steps_of_an_unneeded_branch_are_not_needed_either():
    bench = Bench()
    bench.submit("p")
    bench.submit("handler", on=ON_FAILURE, after=("p",))
    bench.submit("next", after=("handler",))
    bench.submit("also", on=ON_FAILURE, after=("next",))
    bench.submit("last", on=ON_END, after=("next",))
    assert delivered(bench.done("p")) == ["last"]
    assert bench.statuses("handler", "next", "also") == ["CANCELED"] * 3
    assert last_note(bench, "next") == "not needed: 'handler' was not needed"
    check(bench.state)


def test_a_dependency_that_was_not_needed_is_no_failure():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("handler", on=ON_FAILURE, after=("p",))
    bench.submit("c", on=ON_FAILURE, after=("handler", "q"))
    bench.done("p")
    assert bench.statuses("handler", "c") == ["CANCELED", "BLOCKED"]
    check(bench.state)
    bench.submit("late", on=ON_FAILURE, after=("handler", "q"))
    assert delivered(bench.settle("q", BAD)) == ["c", "late"]


def test_parents_that_have_ended_decide_at_once():
    bench = Bench()
    bench.submit("bad", "good")
    bench.settle("bad", BAD)
    bench.done("good")
    bench.submit("waits", delay=9_000)
    assert delivered(bench.submit("c", on=ON_FAILURE, after=("waits", "bad"))) == ["c"]
    assert delivered(bench.submit("d", on=ON_FAILURE, after=("good",))) == []
    assert bench.status("d") is Status.CANCELED
    check(bench.state)


def test_a_cancelled_or_expired_parent_is_a_failure():
    bench = Bench()
    bench.submit("p", delay=9_000)
    bench.submit("q", delay=9_000, deadline=9_000)
    bench.submit("c", on=ON_FAILURE, after=("p",))
    bench.submit("d", on=ON_FAILURE, after=("q",))
    assert delivered(bench.cancel("p")) == ["c"]
    assert delivered(bench.at(9_000)) == ["d"]


def test_a_branch_is_cancelled_with_the_tree():
    bench = Bench()
    bench.submit("p", delay=9_000)
    bench.submit("c", on=ON_FAILURE, after=("p",))
    assert delivered(bench.do(Cancel("p", tree=True))) == []
    assert bench.status("c") is Status.CANCELED


def test_a_callback_for_the_first_failed_member():
    bench = Bench()
    bench.submit("g", on=ON_FAILURE, ties=Ties(members=3))
    for number in range(3):
        bench.submit(member_id("g", number), ties=Ties(group="g"))
    assert why_of(bench, "g").sentence == "It waits for one of its 3 members to fail."
    bench.done("g.0")
    assert delivered(bench.settle("g.1", BAD)) == ["g"]
    bench.done("g.2")
    check(bench.state)


def test_a_callback_for_a_failure_that_did_not_come():
    bench = Bench()
    bench.submit("g", on=ON_FAILURE, ties=Ties(members=1))
    bench.submit("g.0", ties=Ties(group="g"))
    bench.done("g.0")
    assert bench.status("g") is Status.CANCELED


# A delay.


def test_a_delay_counts_from_the_end_of_the_dependencies():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=Ties(delay_ms=60_000))
    assert why_of(bench, "c").sentence.endswith("'p' (DISPATCHING); it runs 1 min after that.")
    bench.at(30_000)
    assert delivered(bench.done("p")) == []
    found = why_of(bench, "c")
    assert found.sentence == "It runs 1 min after the end of what it waited for; it is due in 1 min."
    assert found.data["delay_ms"] == 60_000
    notes = [entry.note for entry in entries_of(bench.intent("c"))]
    assert notes == ["", "everything it waited for is acknowledged; it runs 1 min later"]
    assert bench.intent("c").execute_at_ms == T0 + 90_000
    assert delivered(bench.at(89_999)) == [] and delivered(bench.at(90_000)) == ["c"]
    assert bench.intent("c").late_ms == 0


def test_a_later_time_of_its_own_counts_too():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), delay=120_000, ties=Ties(delay_ms=60_000))
    bench.done("p")
    assert bench.intent("c").execute_at_ms == T0 + 120_000
    assert why_of(bench, "c").sentence == "Its time has not come; it is due in 2 min."


def test_a_step_expires_if_its_deadline_comes_before_the_end_of_the_delay():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), deadline=10_000, ties=Ties(delay_ms=60_000))
    bench.done("p")
    check(bench.state)
    bench.at(10_000)
    assert bench.status("c") is Status.EXPIRED


def test_a_relative_deadline_counts_from_the_end_of_the_delay():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", on=terms(expires_ms=5_000), after=("p",), ties=Ties(delay_ms=60_000))
    bench.done("p")
    assert bench.intent("c").deadline_ms == T0 + 65_000


def test_the_callback_of_a_group_may_have_a_delay():
    bench = Bench()
    bench.submit("g", ties=Ties(members=1, delay_ms=60_000))
    bench.submit("g.0", ties=Ties(group="g"))
    assert delivered(bench.done("g.0")) == []
    assert delivered(bench.at(60_000)) == ["g"]


def test_a_step_can_be_fired_before_its_delay_is_over():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=Ties(delay_ms=60_000))
    bench.done("p")
    assert delivered(bench.fire("c")) == ["c"]
