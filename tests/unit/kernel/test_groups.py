"""Groups: a callback goes when all of its members have ended, and counts each of them once."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.kernel import invariants, query, reasons
from duetime.protocol.command import Purge
from duetime.protocol.intent import Status, Ties
from duetime.protocol.outcome import Rejected
from duetime.protocol.reply import Existing
from duetime.protocol.terms import AfterOn, ExpiredAction
from duetime.protocol.view import view_of
from tests.unit.kernel.bench import T0, Bench, delivered, errors, queue, replies, stream

END = AfterOn.END


def group(bench, size=3, joined=None, id="g", on=None, member_on=None, **member):
    """A group with a callback, and some of its members."""
    bench.submit(id, on=on, ties=Ties(members=size), fingerprint=7)
    ids = [f"{id}.{n}" for n in range(size if joined is None else joined)]
    assert errors(bench.submit(*ids, on=member_on, ties=Ties(group=id), fingerprint=7, **member)) == [
        ""
    ] * len(ids)
    invariants.check(bench.state)
    return ids


def rare(bench, id="g"):
    found = bench.intent(id).rare
    assert found is not None
    return found


def left(bench, id="g"):
    invariants.check(bench.state)
    return rare(bench, id).waiting


def test_the_callback_goes_when_the_last_member_is_acknowledged():
    bench = Bench()
    group(bench)
    assert bench.status("g") is Status.BLOCKED
    assert delivered(bench.done("g.2")) == []
    assert delivered(bench.done("g.0")) == []
    assert left(bench) == 1
    revision = bench.intent("g").revision
    assert delivered(bench.done("g.1")) == ["g"]
    assert revision == 1, "counting is no change that a caller must have seen"


def test_members_may_come_later_and_the_callback_waits_for_them():
    bench = Bench()
    group(bench, 3, joined=1)
    bench.done("g.0")
    assert (left(bench), bench.status("g")) == (2, Status.BLOCKED)
    bench.submit("g.1", "g.2", ties=Ties(group="g"))
    bench.done("g.1")
    assert delivered(bench.done("g.2")) == ["g"]


@pytest.mark.parametrize("how", ["cancel", "reject", "expire"])
def test_a_member_that_ends_otherwise_ends_the_callback_with_the_reason(how):
    bench = Bench()
    group(bench, member_on=stream(), deadline=1_000)
    if how == "cancel":
        bench.cancel("g.1")
    elif how == "expire":
        bench.at(1_000)
    else:
        bench.demand("w", "stream:s", 2)
        bench.settle("g.1", Rejected("x", "y"))
    assert bench.status("g") is Status.DEAD_LETTERED
    assert "it waited for 'g." in rare(bench).last_error.message
    assert left(bench) == (0 if how == "expire" else 2), "it goes on counting, for those who look"


@pytest.mark.parametrize("action", list(ExpiredAction))
def test_on_end_any_end_counts(action):
    bench = Bench()
    lost = stream(expired_action=action)
    bench.submit("g", on=queue("q", after_on=END), ties=Ties(members=3))
    bench.submit("g.0", ties=Ties(group="g"))
    bench.submit("g.1", on=lost, ties=Ties(group="g"), deadline=100)
    bench.submit("g.2", ties=Ties(group="g"))
    bench.settle("g.0", Rejected("x", "y"))
    bench.at(100)
    assert left(bench) == 1
    assert delivered(bench.cancel("g.2")) == ["g"]
    notes = [entry.note for entry in rare(bench).history]
    assert notes == ["everything it waited for has ended"]


def test_a_revived_member_is_waited_for_again_and_counts_once():
    bench = Bench()
    group(bench, 2, on=queue("q", after_on=END))
    bench.settle("g.0", Rejected("x", "y"))
    assert left(bench) == 1
    bench.revive("g.0")
    assert left(bench) == 2
    assert delivered(bench.done("g.1")) == []
    assert delivered(bench.settle("g.0", Rejected("x", "y"))) == ["g"]
    bench.revive("g.0")
    bench.done("g")
    assert delivered(bench.done("g.0")) == [], "it has gone already"
    assert left(bench) == 0


def test_a_member_that_is_forgotten_early_does_not_matter():
    bench = Bench(retention_ms=0, dead_letter_retention_ms=0)
    group(bench, 2, on=queue("q", after_on=END))
    bench.settle("g.0", Rejected("x", "y"))
    bench.do(Purge(("g.0",)))
    bench.at(120_000)
    assert bench.store.get("g.0") is None
    assert left(bench) == 1
    assert delivered(bench.done("g.1")) == ["g"]


def test_a_checkpoint_keeps_the_count():
    bench = Bench()
    group(bench, 4, joined=3)
    bench.done("g.0")
    bench.save()
    other = bench.thawed()
    assert left(other) == 3
    other.submit("g.3", ties=Ties(group="g"))
    for each in ("g.1", "g.2"):
        other.done(each)
    assert delivered(other.done("g.3")) == ["g"]


def test_members_continue_when_their_callback_is_cancelled_or_expires():
    bench = Bench()
    bench.submit("g", ties=Ties(members=1), deadline=50)
    bench.submit("g.0", on=stream(), ties=Ties(group="g"))
    bench.at(50)
    assert bench.statuses("g", "g.0") == ["EXPIRED", "DUE"]
    bench.cancel("g.0")
    assert left(bench) == 0
    group(bench, 1, id="h", member_on=stream())
    bench.cancel("h")
    assert bench.status("h.0") is Status.DUE


def test_groups_nest():
    bench = Bench()
    bench.submit("g", ties=Ties(members=1))
    bench.submit("g.0", ties=Ties(group="g", members=1))
    bench.submit("g.0.0", ties=Ties(group="g.0"))
    assert delivered(bench.done("g.0.0")) == ["g.0"]
    assert delivered(bench.done("g.0")) == ["g"]


def test_members_may_wait_for_others():
    bench = Bench()
    bench.submit("p")
    bench.submit("g", ties=Ties(members=1))
    bench.submit("g.0", after=("p",), ties=Ties(group="g"))
    bench.settle("p", Rejected("x", "y"))
    assert bench.statuses("g.0", "g") == ["DEAD_LETTERED", "DEAD_LETTERED"]


def test_others_may_wait_for_a_callback():
    bench = Bench()
    group(bench, 1)
    bench.submit("next", after=("g",))
    bench.done("g.0")
    assert delivered(bench.done("g")) == ["next"]


# Who may join.


def test_members_that_cannot_join_a_group():
    bench = Bench()
    bench.submit("plain")
    group(bench, 3, joined=1)
    one = Ties(group="g")
    assert errors(bench.submit("nobody.0", ties=Ties(group="nobody"))) == ["InvalidField"]
    assert errors(bench.submit("plain.0", ties=Ties(group="plain"))) == ["InvalidField"]
    assert errors(bench.submit("g.2", ties=one)) == ["InvalidField"], "the next is g.1"
    assert errors(bench.submit("other", ties=one)) == ["InvalidField"]
    assert errors(bench.submit("g.0", ties=one, fingerprint=8)) == ["IdExists"], "with another body"
    assert errors(bench.submit("g.1", "g.2", "g.3", ties=one)) == ["", "", "InvalidField"]
    group(bench, 2, joined=1, id="h")
    bench.cancel("h")
    assert errors(bench.submit("h.1", ties=Ties(group="h"))) == ["StateForbids"]
    assert rare(bench).joined == 3


def test_an_existing_group_is_returned():
    bench = Bench()
    ids = group(bench, 2)
    again = replies(bench.submit("g", ties=Ties(members=2), fingerprint=7))
    again += replies(bench.submit(*ids, ties=Ties(group="g"), fingerprint=7))
    assert all(isinstance(reply, Existing) for reply in again)
    assert rare(bench).joined == 2
    assert errors(bench.submit("g", ties=Ties(members=3), fingerprint=7)) == ["IdExists"]
    assert errors(bench.submit("g", ties=Ties(members=2), fingerprint=8)) == ["IdExists"]
    assert errors(bench.submit("g")) == ["IdExists"]
    assert errors(bench.submit("n", ties=Ties())) == [""], "tied to nothing"


def test_the_members_of_an_earlier_namesake_do_not_count():
    bench = Bench(retention_ms=0)
    bench.submit("g", on=stream(), ties=Ties(members=2))
    bench.submit("g.0", "g.1", ties=Ties(group="g"), on=stream())
    bench.cancel("g")
    bench.at(120_000)
    assert bench.store.get("g") is None
    bench.submit("g", ties=Ties(members=1))
    assert errors(bench.submit("g.0", "g.1", ties=Ties(group="g"))) == ["IdExists", "IdExists"]
    assert errors(bench.submit("g", ties=Ties(members=2), fresh=False)) == ["IdExists"]
    bench.demand("w", "stream:s", 2)
    bench.done("g.1")
    assert rare(bench).waiting == 1
    assert bench.status("g") is Status.BLOCKED


def test_a_revived_member_of_a_forgotten_group_counts_nowhere():
    bench = Bench(retention_ms=0)
    group(bench, 1)
    bench.settle("g.0", Rejected("x", "y"))
    bench.do(Purge(("g",)))
    bench.revive("g.0")
    assert bench.status("g.0") is Status.DISPATCHING
    bench.done("g.0")


def test_a_member_cannot_wait_for_what_waits_for_its_group():
    """Else nobody would ever go."""
    bench = Bench()
    bench.submit("before", on=stream())
    bench.submit("g", ties=Ties(members=4))
    bench.submit("g.0", ties=Ties(group="g"), after=("before",))
    bench.submit("g.1", ties=Ties(group="g", members=2), after=())
    bench.submit("x", after=("g",))
    bench.submit("ended", on=queue("q"))
    bench.done("ended")
    for parent in ("g", "x", "g.1"):
        assert errors(bench.submit("g.2", ties=Ties(group="g"), after=(parent,))) == ["InvalidField"]
        assert errors(bench.submit("g.1.0", ties=Ties(group="g.1"), after=(parent,))) == ["InvalidField"]
    assert errors(bench.submit("g.1.0", ties=Ties(group="g.1"), after=("g.0",))) == ["InvalidField"]
    assert errors(bench.submit("g.1.0", ties=Ties(group="g.1"), after=("before", "nobody"))) == [
        "InvalidField"
    ]
    assert errors(bench.submit("g.2", ties=Ties(group="g"), after=("before", "g.0", "ended"))) == [""]
    invariants.check(bench.state)


# Why.


def test_why_says_how_many_members_are_left():
    bench = Bench()
    group(bench, 40, joined=38)
    for n in range(5):
        bench.done(f"g.{n}")
    answer = reasons.why(bench.state, bench.intent("g"), T0)
    assert answer.sentence == (
        "It waits for 35 of its 40 members to be acknowledged; 2 have not been submitted yet."
    )
    assert (answer.code, answer.data) == ("blocked", {"members": 40, "joined": 38, "left": 35})
    group(bench, 1, id="h", on=queue("q", after_on=END))
    answer = reasons.why(bench.state, bench.intent("h"), T0)
    assert answer.sentence == "It waits for 1 of its 1 member to end."


# After, on any end.


def test_after_on_end_counts_any_end():
    bench = Bench()
    bench.submit("p", "q", "r", "s")
    bench.cancel("s")
    bench.submit("c", on=queue("x", after_on=END), after=("p", "q", "r", "s"))
    assert (
        "It waits for 3 other intents to end: 'p'" in reasons.why(bench.state, bench.intent("c"), T0).sentence
    )
    bench.settle("p", Rejected("x", "y"))
    bench.revive("p")
    invariants.check(bench.state)
    bench.cancel("q")
    assert bench.status("c") is Status.BLOCKED
    assert delivered(bench.done("r")) == ["c"], "p has ended once"


def test_after_on_end_of_ended_parents_goes_at_once():
    bench = Bench()
    bench.submit("p")
    bench.cancel("p")
    assert delivered(bench.submit("c", on=queue("x", after_on=END), after=("p",))) == ["c"]


# Their results, for those who came after.


def parents(bench, id, first=0, limit=10, bytes_max=100):
    found = query.parents(bench.state, bench.intent(id), first, limit, bytes_max, T0 + bench.ms)
    return [(each.id, each.status.name if each.status else None, each.result) for each in found]


def test_the_results_of_members_are_there_for_the_callback():
    bench = Bench(retention_ms=0)
    group(bench, 4, joined=3)
    bench.done("g.0", b"1")
    bench.done("g.1")
    assert parents(bench, "g") == [
        ("g.0", "ACKED", b"1"), ("g.1", "ACKED", None), ("g.2", "DISPATCHING", None)
    ]  # fmt: skip
    assert parents(bench, "g", 1, 1) == [("g.1", "ACKED", None)]
    bench.at(120_000)
    assert parents(bench, "g", 0, 1) == [("g.0", None, None)], "forgotten"


def test_the_results_of_its_parents():
    bench = Bench()
    bench.submit("p", "q", on=queue("d", result_ttl_ms=5))
    bench.submit("c", after=("p", "q"))
    bench.done("p", b"[1]")
    assert parents(bench, "c") == [("p", "ACKED", b"[1]"), ("q", "DISPATCHING", None)]
    assert parents(bench, "c", bytes_max=2) == [("p", "ACKED", b"[1]")], "no more than fits"
    bench.at(5)
    assert parents(bench, "c", limit=1) == [("p", "ACKED", None)], "its time is over"
    assert parents(bench, "p") == []


def test_a_view_says_how_far_a_group_is():
    bench = Bench()
    group(bench, 2, joined=1)
    view = view_of(bench.intent("g"))
    assert (view.group, view.members, view.joined, view.left) == (None, 2, 1, 2)
    view = view_of(bench.intent("g.0"))
    assert (view.group, view.members, view.left) == ("g", 0, 0)


def test_joining_a_group_needs_the_right_to_its_callback():
    bench = Bench()
    bench.submit("g", on=queue("theirs"), ties=Ties(members=2), fingerprint=7)
    bound: dict[str, Any] = {"on": queue("mine"), "fingerprint": 7}
    assert errors(bench.submit("g.0", ties=Ties(group="g", within=("task:mine",)), **bound)) == ["Forbidden"]
    both = Ties(group="g", within=("task:mine", "task:theirs"))
    assert errors(bench.submit("g.0", ties=both, **bound)) == [""]
    (again,) = replies(bench.submit("g.0", ties=both, **bound))
    assert isinstance(again, Existing)
    assert left(bench) == 2
