"""Cancelling a tree: an intent with all that waits, or waited, for it."""

from __future__ import annotations

from duetime.kernel import invariants
from duetime.protocol.command import Cancel, Revive
from duetime.protocol.intent import Status
from duetime.protocol.outcome import Rejected
from duetime.protocol.reply import Existing
from duetime.protocol.terms import AfterOn
from tests.unit.kernel.bench import Bench, aborted, entity, error, errors, queue, stream
from tests.unit.kernel.test_groups import group, left

END = AfterOn.END


def test_a_tree_is_cancelled_with_all_that_waits_for_it():
    bench = Bench()
    bench.submit("a", "z")
    bench.submit("b", after=("a",))
    bench.submit("c", "d", after=("b", "z"))
    bench.submit("e", on=queue("q", after_on=END), after=("d", "a"))
    applied = bench.do(Cancel("a", tree=True))
    assert bench.statuses(*"abcde") == ["CANCELED"] * 5
    assert aborted(applied) == [("a", 1)]
    assert bench.status("z") is Status.DISPATCHING
    bench.done("z")
    invariants.check(bench.state)


def test_a_tree_is_cancelled_from_a_root_that_has_ended():
    bench = Bench()
    bench.submit("a")
    bench.submit("b", "side", after=("a",))
    bench.submit("c", after=("b",))
    bench.submit("d", after=("c",))
    bench.submit("later", after=("a", "c"))
    bench.done("a")
    assert bench.statuses("b", "side", "c") == ["DISPATCHING", "DISPATCHING", "BLOCKED"]
    bench.done("b")
    bench.done("side")
    invariants.check(bench.state)
    assert error(bench.do(Cancel("a"))) == "StateForbids"
    applied = bench.do(Cancel("a", tree=True, request="r"))
    assert error(applied) == "" and aborted(applied) == [("c", 1)]
    assert bench.statuses("a", "b", "side") == ["ACKED"] * 3
    assert bench.statuses("c", "d", "later") == ["CANCELED"] * 3
    assert isinstance(bench.do(Cancel("a", tree=True, request="r")).answer, Existing)
    assert error(bench.do(Cancel("a", tree=True))) == "StateForbids"
    invariants.check(bench.state)


def test_older_rules_forget_the_dependents_of_an_ended_intent():
    bench = Bench()
    bench.state.rules = 1
    bench.submit("a")
    bench.submit("b", after=("a",))
    bench.done("a")
    assert error(bench.do(Cancel("a", tree=True))) == "StateForbids"
    assert bench.status("b") is Status.DISPATCHING


def test_one_that_ended_takes_any_number_of_dependents(monkeypatch):
    monkeypatch.setattr("duetime.kernel.dependents.DEPENDENTS_MAX", 1)
    bench = Bench()
    bench.submit("a")
    assert errors(bench.submit("b", after=("a",))) == [""]
    assert errors(bench.submit("c", after=("a",))) == ["InvalidField"]
    bench.done("a")
    assert errors(bench.submit("c", after=("a",))) == [""]


def test_a_revived_intent_does_not_release_earlier_dependents_twice():
    bench = Bench()
    bench.submit("a", "z")
    bench.submit("c", on=queue("q", after_on=END), after=("a", "z"))
    bench.settle("a", Rejected("x", "y"))
    assert bench.status("c") is Status.BLOCKED
    invariants.check(bench.state)
    bench.do(Revive("a"))
    invariants.check(bench.state)
    bench.done("a")
    assert bench.status("c") is Status.BLOCKED
    invariants.check(bench.state)
    bench.done("z")
    assert bench.status("c") is Status.DISPATCHING


def test_a_tree_from_a_callback_has_its_members_and_those_that_wait_for_them():
    bench = Bench()
    group(bench, 3, joined=2, member_on=stream())
    bench.submit("child", after=("g.0",))
    bench.submit("next", after=("g",))
    bench.demand("w", "stream:s", 1)
    applied = bench.do(Cancel("g", tree=True))
    assert bench.statuses("g", "g.0", "g.1", "child", "next") == ["CANCELED"] * 5
    assert aborted(applied) == [("g.0", 1)]
    assert left(bench) == 1


def test_a_tree_from_a_member_leaves_its_callback_to_its_own_rule():
    bench = Bench()
    group(bench, 2, on=queue("q", after_on=END))
    bench.do(Cancel("g.0", tree=True))
    assert bench.statuses("g", "g.1") == ["BLOCKED", "DISPATCHING"]


def test_remaining_members_can_be_cancelled_after_the_callback_has_ended():
    bench = Bench()
    group(bench, 2)
    bench.settle("g.0", Rejected("x", "y"))
    assert bench.status("g") is Status.DEAD_LETTERED
    assert error(bench.do(Cancel("g"))) == "StateForbids"
    assert error(bench.do(Cancel("g", tree=True, request="r"))) == ""
    assert isinstance(bench.do(Cancel("g", tree=True, request="r")).answer, Existing)
    assert bench.statuses("g.0", "g.1", "g") == ["DEAD_LETTERED", "CANCELED", "DEAD_LETTERED"]
    assert error(bench.do(Cancel("g", tree=True))) == "StateForbids"


def test_a_tree_that_is_too_large_is_left_alone(monkeypatch):
    monkeypatch.setattr("duetime.kernel.commands.cancel.TREE_MAX", 3)
    bench = Bench()
    group(bench, 4)
    bench.submit("child", after=("g.0",))
    assert error(bench.do(Cancel("g", tree=True))) == "InvalidField"
    assert bench.status("g") is Status.BLOCKED
    assert bench.status("child") is Status.BLOCKED


def test_a_namesake_of_one_that_waited_is_not_in_the_tree():
    bench = Bench(retention_ms=0)
    bench.submit("p")
    bench.submit("c", after=("p",))
    bench.cancel("c")
    bench.at(120_000)
    bench.submit("q", on=stream())
    bench.submit("c", after=("q",))
    bench.do(Cancel("p", tree=True))
    assert bench.statuses("p", "c") == ["CANCELED", "BLOCKED"]
    invariants.check(bench.state)


def test_a_tree_that_reaches_outside_of_what_its_canceller_may_use_is_left_alone():
    bench = Bench()
    bench.submit("a", on=queue("mine"))
    bench.submit("b", on=entity("1"), after=("a",))
    bench.submit("c", on=queue("theirs"), after=("b",))
    mine = ("task:mine", "entities:cart")
    refused = bench.do(Cancel("a", tree=True, within=mine))
    assert error(refused) == "Forbidden"
    assert bench.statuses(*"abc") == ["DISPATCHING", "BLOCKED", "BLOCKED"]
    bench.cancel("c")
    assert error(bench.do(Cancel("a", tree=True, within=mine))) == "", "what has ended is not touched"
    assert bench.statuses(*"abc") == ["CANCELED"] * 3
    invariants.check(bench.state)
