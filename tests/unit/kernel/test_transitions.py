"""The table of moves: every pair, allowed or not, and every verb in every status."""

from __future__ import annotations

import itertools

import pytest

from duetime.kernel.transitions import move
from duetime.protocol.intent import FINAL, Status
from duetime.protocol.outcome import Done, Rejected
from duetime.protocol.transitions import TRANSITIONS
from tests.unit.kernel.bench import Bench, error, stream

PAIRS = list(itertools.product(Status, Status))


def in_status(status: Status) -> Bench:
    """A bench with an intent `a` that came to this status by honest means."""
    bench = Bench()
    bench.submit("parent", delay=3_600_000)
    if status is Status.BLOCKED:
        bench.submit("a", after=("parent",))
    elif status is Status.DUE:
        bench.submit("a", on=stream())
    elif status is Status.EXPIRED:
        bench.submit("a", on=stream(), deadline=50)
        bench.later(50)
    else:
        bench.submit("a", delay=1_000)
        if status is Status.CANCELED:
            bench.cancel("a")
        elif status is not Status.SCHEDULED:
            bench.later(1_000)
            if status is Status.ACKED:
                bench.settle("a", Done(b"1"))
            elif status is Status.DEAD_LETTERED:
                bench.settle("a", Rejected("bad", "never"))
    assert bench.status("a") is status
    return bench


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=lambda status: status.name)
def test_only_moves_of_the_table_are_made(old, new):
    bench = in_status(old)
    intent = bench.intent("a")
    before = (intent.status, intent.revision, intent.delivery, list(bench.state.counts))
    bench.state.changes = []
    if new in TRANSITIONS[old]:
        move(bench.state, intent, new)
        assert intent.status is new
        assert intent.revision == before[1] + 1
        assert intent.delivery == before[2] + (new is Status.DISPATCHING)
        (change,) = bench.state.changes
        assert (change.id, change.old, change.new) == ("a", old, new)
        assert bench.state.counts[old] == before[3][old] - 1
    else:
        with pytest.raises(AssertionError, match=f"{old.name} -> {new.name} is not in the table"):
            move(bench.state, intent, new)
        assert (intent.status, intent.revision, intent.delivery, bench.state.counts) == before
        assert bench.state.changes == []


def test_every_status_is_reached_and_final_ones_are_left_only_by_revival():
    reached = {new for ways in TRANSITIONS.values() for new in ways}
    assert reached | {Status.BLOCKED} == set(Status), "an intent is made blocked, it never becomes so"
    ways_out = {(old, new) for old in FINAL for new in TRANSITIONS[old]}
    assert ways_out == {(Status.DEAD_LETTERED, Status.SCHEDULED)}


def test_every_move_of_the_table_says_when_it_happens():
    assert all(text for ways in TRANSITIONS.values() for text in ways.values())


VERBS = {
    "cancel": ("StateForbids", {Status.SCHEDULED, Status.DUE, Status.DISPATCHING, Status.BLOCKED}),
    "fire": ("StateForbids", {Status.SCHEDULED}),
    "patch": ("NotPatchable", {Status.SCHEDULED, Status.DUE, Status.BLOCKED}),
    "revive": ("NotDeadLettered", {Status.DEAD_LETTERED}),
}


@pytest.mark.parametrize("status", Status, ids=lambda status: status.name)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_refused_where_the_status_forbids_it(verb, status):
    bench = in_status(status)
    name, allowed = VERBS[verb]
    before = bench.intent("a").revision
    applied = getattr(bench, verb)("a")
    if status in allowed:
        assert error(applied) == ""
        assert bench.intent("a").revision > before
    else:
        assert error(applied) == name
        assert applied.answer.details == {"currentState": status.name}
        assert (applied.effects, applied.changes) == ([], [])
        assert bench.intent("a").revision == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_an_unknown_intent_is_refused(verb):
    assert error(getattr(Bench(), verb)("nobody")) == "NoSuchIntent"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_with_an_old_revision_changes_nothing(verb):
    status = Status.DEAD_LETTERED if verb == "revive" else Status.SCHEDULED
    bench = in_status(status)
    now = bench.intent("a").revision
    for wrong in (now - 1, now + 1):
        if wrong:
            applied = getattr(bench, verb)("a", revision=wrong)
            assert error(applied) == "RevisionMoved"
            assert applied.answer.details == {"revision": now}
            assert bench.intent("a").revision == now
    assert error(getattr(bench, verb)("a", revision=now)) == ""


@pytest.mark.parametrize("status", Status, ids=lambda status: status.name)
def test_an_outcome_counts_only_for_what_is_out(status):
    bench = in_status(status)
    number = bench.intent("a").delivery
    applied = bench.settle("a", Done(), number)
    assert applied.answer == [status is Status.DISPATCHING]
    assert bench.status("a") is (Status.ACKED if status is Status.DISPATCHING else status)
    assert bench.state.stale == (status is not Status.DISPATCHING)
