"""Unique keys keep others away; collapse keys are given to the next one."""

from __future__ import annotations

import pytest

from duetime.kernel import invariants, query
from duetime.kernel.history import entries_of
from duetime.limits import DAY_MS, HOUR_MS
from duetime.protocol.command import Submit
from duetime.protocol.intent import Intent, Status, Ties
from duetime.protocol.outcome import Rejected, Snoozed
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.terms import Claim, ExpiredAction, OnDuplicate, Until
from tests.unit.kernel.bench import (
    T0,
    Bench,
    delivered,
    deliveries,
    entity,
    error,
    errors,
    queue,
    replies,
    stream,
    terms,
)

START, END, TIME, DEBOUNCE, THROTTLE = Until


def tie(until: Until, key: str = "k", for_ms: int = 0) -> Ties:
    return Ties(Claim(key, until, for_ms))


def submit(bench, id, until, *, for_ms=0, key="k", **more):
    """What a submit with a claim came to: the id of the intent, or the name of the error."""
    (reply,) = replies(bench.submit(id, ties=tie(until, key, for_ms), **more))
    invariants.check(bench.state)
    if isinstance(reply, Refusal):
        return reply.reason.value
    assert isinstance(reply, Existing | Intent)
    return reply.intent.id if isinstance(reply, Existing) else reply.id


# Unique.


def test_until_its_end_others_get_the_holder():
    bench = Bench()
    assert submit(bench, "a", END, delay=100) == "a"
    assert submit(bench, "b", END) == "a"
    bench.at(100)
    assert bench.status("a") is Status.DISPATCHING
    assert submit(bench, "b", END) == "a"
    bench.fail("a")
    assert submit(bench, "b", END) == "a"
    bench.later(1_000)
    bench.done("a")
    assert submit(bench, "b", END) == "b"


def test_until_its_start_others_get_the_holder():
    bench = Bench()
    bench.submit("a", on=stream(), ties=tie(START))
    assert bench.status("a") is Status.DUE
    assert submit(bench, "b", START) == "a"
    bench.demand("w", "stream:s")
    assert submit(bench, "b", START, delay=9) == "b"


@pytest.mark.parametrize("outcome", [Snoozed(50), None])
def test_a_started_intent_that_waits_again_does_not_block_its_key(outcome):
    bench = Bench()
    submit(bench, "a", START)
    bench.fail("a") if outcome is None else bench.settle("a", outcome)
    assert bench.status("a") is Status.SCHEDULED
    assert submit(bench, "b", START, delay=9) == "b"


def test_a_timed_claim_holds_after_its_intent_has_ended():
    bench = Bench()
    assert submit(bench, "a", TIME, for_ms=5_000) == "a"
    bench.done("a")
    bench.at(4_999)
    assert submit(bench, "b", TIME, for_ms=5_000) == "a"
    bench.at(5_000)
    assert submit(bench, "b", TIME, for_ms=5_000) == "b"
    assert submit(bench, "c", END) == "b"


def test_a_claim_for_a_time_outlives_retention():
    bench = Bench(retention_ms=0, retention_count=0)
    submit(bench, "a", TIME, for_ms=HOUR_MS)
    bench.done("a")
    bench.submit("other")
    bench.done("other")
    bench.at(HOUR_MS - 1)
    assert bench.store.get("other") is None
    assert submit(bench, "b", TIME, for_ms=HOUR_MS) == "a"
    bench.at(HOUR_MS)
    assert submit(bench, "b", TIME, for_ms=HOUR_MS) == "b"
    bench.at(DAY_MS + 60_000)
    assert bench.store.get("a") is None


def test_a_time_longer_than_keys_are_kept_is_refused():
    bench = Bench(key_window_ms=HOUR_MS)
    (reply,) = replies(bench.submit("a", ties=tie(TIME, for_ms=HOUR_MS + 1)))
    assert isinstance(reply, Refusal) and reply.reason.value == "InvalidField"
    assert "keys are remembered for 1 h" in reply.message
    assert submit(bench, "a", TIME, for_ms=HOUR_MS) == "a"


def test_the_ways_of_being_unique_share_their_keys():
    bench = Bench()
    submit(bench, "a", START, delay=100)
    assert submit(bench, "b", END) == submit(bench, "b", TIME, for_ms=7) == "a"
    bench.cancel("a")
    submit(bench, "c", TIME, for_ms=1_000, delay=9)
    assert submit(bench, "d", END) == submit(bench, "d", START) == "c"
    bench.later(1_000)
    assert submit(bench, "d", END) == "d"
    assert submit(bench, "e", TIME, for_ms=7) == "d"


def test_a_refusal_names_the_holder():
    bench = Bench()
    submit(bench, "a", END, delay=100)
    (reply,) = replies(bench.submit("b", ties=tie(END), on_duplicate=OnDuplicate.REJECT))
    assert isinstance(reply, Refusal)
    assert (reply.reason.value, reply.details) == ("KeyHeld", {"intentId": "a"})
    assert reply.message == "The unique key 'k' belongs to 'a', which is SCHEDULED."
    assert bench.store.get("b") is None


def test_other_keys_and_collapse_keys_are_other_keys():
    bench = Bench()
    submit(bench, "a", END, delay=100)
    assert submit(bench, "b", END, key="other", delay=100) == "b"
    assert submit(bench, "c", DEBOUNCE, delay=100) == "c"
    assert bench.statuses("a", "b", "c") == ["SCHEDULED"] * 3


def test_several_in_one_record_are_one():
    bench = Bench()
    item = bench.item("a", ties=tie(END))
    applied = bench.do(Submit((terms(),), (item, bench.item("b", ties=tie(END)))))
    first, second = replies(applied)
    assert isinstance(first, Intent) and isinstance(second, Existing)
    assert second.intent is first and delivered(applied) == ["a"]


def test_ties_without_a_claim_are_like_none():
    bench = Bench()
    assert errors(bench.submit("a", "b", ties=Ties())) == ["", ""]


@pytest.mark.parametrize("until", [START, END])
def test_a_blocked_one_keeps_others_away_too(until):
    bench = Bench()
    bench.submit("parent", delay=100)
    assert submit(bench, "a", until, after=("parent",)) == "a"
    assert bench.status("a") is Status.BLOCKED
    assert submit(bench, "b", until) == "a"


def test_an_idempotency_key_is_asked_first():
    bench = Bench()
    submit(bench, "a", END, delay=100)
    bench.submit("x", key="order", delay=50)
    (reply,) = replies(bench.submit("y", key="order", ties=tie(END)))
    assert isinstance(reply, Existing) and reply.intent.id == "x"


# A dead letter that lives again.


def dead(bench, id, until, **more):
    submit(bench, id, until, **more)
    bench.settle(id, Rejected("no", "no", 0))
    assert bench.status(id) is Status.DEAD_LETTERED


def test_a_revived_one_has_its_key_again():
    bench = Bench()
    dead(bench, "a", END)
    assert submit(bench, "b", END) == "b"
    bench.done("b")
    assert error(bench.revive("a", execute_at_ms=T0 + 900)) == ""
    assert submit(bench, "c", END) == "a"


def test_a_dead_letter_is_not_revived_while_another_has_its_key():
    bench = Bench()
    dead(bench, "a", END)
    submit(bench, "b", END, delay=100)
    applied = bench.revive("a")
    assert isinstance(applied.answer, Refusal)
    assert (applied.answer.reason.value, applied.answer.details) == ("KeyHeld", {"intentId": "b"})
    assert bench.status("a") is Status.DEAD_LETTERED
    bench.cancel("b")
    assert error(bench.revive("a")) == ""


def test_a_started_intent_is_revived_without_its_claim():
    bench = Bench()
    dead(bench, "a", START)
    assert submit(bench, "b", START, delay=100) == "b"
    assert error(bench.revive("a", execute_at_ms=T0 + 900)) == ""
    invariants.check(bench.state)
    assert submit(bench, "c", START, delay=100) == "b"


@pytest.mark.parametrize(("until", "rest"), [(START, ""), (DEBOUNCE, "collapse")])
def test_a_revived_intent_that_never_started_waits_for_its_key(until, rest):
    bench = Bench()
    late = terms(expired_action=ExpiredAction.DEAD_LETTER)
    bench.submit("a", on=late, ties=tie(until), delay=50, deadline=50)
    bench.at(50)
    assert bench.status("a") is Status.DEAD_LETTERED
    submit(bench, "b", until, delay=100)
    applied = bench.revive("a")
    assert isinstance(applied.answer, Refusal) and rest in applied.answer.message
    bench.cancel("b")
    assert error(bench.revive("a", execute_at_ms=T0 + 900)) == ""
    invariants.check(bench.state)
    assert submit(bench, "c", until, delay=100) == ("a" if until is START else "c")


def test_a_claim_for_a_time_does_not_care_about_revival():
    bench = Bench()
    dead(bench, "a", TIME, for_ms=1_000)
    bench.later(1_000)
    submit(bench, "b", END, delay=100)
    assert error(bench.revive("a")) == ""
    assert submit(bench, "c", TIME, for_ms=5) == "b"


# Collapse.


def test_debounce_the_newest_takes_the_place_and_its_own_time():
    bench = Bench()
    submit(bench, "a", DEBOUNCE, delay=100, payload=b"1")
    bench.at(50)
    assert submit(bench, "b", DEBOUNCE, delay=100, payload=b"2") == "b"
    assert bench.statuses("a", "b") == ["CANCELED", "SCHEDULED"]
    assert delivered(bench.at(100)) == []
    (out,) = deliveries(bench.at(150))
    assert (out.id, out.payload) == ("b", b"2")


def test_throttle_the_newest_takes_the_place_at_the_time_of_the_first():
    bench = Bench()
    submit(bench, "a", THROTTLE, delay=100, payload=b"1")
    bench.at(60)
    assert submit(bench, "b", THROTTLE, delay=100, payload=b"2") == "b"
    submit(bench, "c", THROTTLE, delay=-9_000, payload=b"3")
    assert bench.intent("c").execute_at_ms == T0 + 100
    (out,) = deliveries(bench.at(100))
    assert (out.id, out.payload) == ("c", b"3")


def test_a_started_intent_is_not_replaced():
    bench = Bench()
    submit(bench, "a", DEBOUNCE)
    assert bench.status("a") is Status.DISPATCHING
    assert submit(bench, "b", DEBOUNCE, delay=100) == "b"
    bench.fail("a")
    assert submit(bench, "c", DEBOUNCE, delay=100) == "c"
    assert bench.statuses("a", "b", "c") == ["SCHEDULED", "CANCELED", "SCHEDULED"]


def test_a_due_one_is_replaced_and_keeps_its_place_when_throttled():
    bench = Bench()
    bench.submit("a", on=stream(), ties=tie(THROTTLE))
    bench.at(9_000)
    bench.submit("x", on=stream())
    bench.submit("b", on=stream(), ties=tie(THROTTLE), delay=500)
    assert bench.statuses("a", "b") == ["CANCELED", "DUE"]
    assert delivered(bench.demand("w", "stream:s", 2)) == ["b", "x"]


def test_a_blocked_one_is_replaced_and_its_dependents_end():
    bench = Bench()
    bench.submit("parent", delay=100)
    submit(bench, "a", DEBOUNCE, after=("parent",))
    bench.submit("child", after=("a",))
    submit(bench, "b", DEBOUNCE, delay=100)
    assert bench.statuses("a", "b", "child") == ["CANCELED", "SCHEDULED", "DEAD_LETTERED"]


def test_the_place_of_a_blocked_one_is_taken_by_another_that_waits():
    bench = Bench()
    bench.submit("parent", delay=100)
    submit(bench, "a", DEBOUNCE, after=("parent",))
    submit(bench, "b", DEBOUNCE, after=("parent",))
    assert bench.statuses("a", "b") == ["CANCELED", "BLOCKED"]
    bench.at(100)
    bench.done("parent")
    assert bench.status("b") is Status.DISPATCHING


def test_messages_of_an_entity_collapse_too():
    bench = Bench()
    bench.submit("first", on=entity())
    bench.submit("a", on=entity(), ties=tie(DEBOUNCE))
    bench.submit("b", on=entity(), ties=tie(DEBOUNCE))
    invariants.check(bench.state)
    assert bench.statuses("first", "a", "b") == ["DISPATCHING", "CANCELED", "DUE"]


def test_a_refused_intent_replaces_no_other():
    bench = Bench()
    submit(bench, "a", DEBOUNCE, delay=100)
    assert submit(bench, "b", DEBOUNCE, delay=-6_000) == "InThePast"
    assert submit(bench, "b", THROTTLE, deadline=50) == "DeadlineTooEarly"
    assert submit(bench, "a", DEBOUNCE) == "IdExists"
    assert bench.status("a") is Status.SCHEDULED


def test_many_in_one_record_leave_the_last():
    bench = Bench()
    items = tuple(bench.item(id, delay=9, ties=tie(DEBOUNCE)) for id in ("a", "b", "c"))
    assert errors(bench.do(Submit((terms(),), items))) == ["", "", ""]
    assert bench.statuses("a", "b", "c") == ["CANCELED", "CANCELED", "SCHEDULED"]


def test_history_and_why_tell_what_happened():
    bench = Bench()
    bench.submit("a", on=stream(), ties=tie(DEBOUNCE))
    bench.at(40)
    bench.submit("b", on=stream(), ties=tie(DEBOUNCE), delay=5)
    assert [(entry.at_ms - T0, entry.status.name, entry.note) for entry in entries_of(bench.intent("a"))] == [
        (0, "SCHEDULED", ""), (0, "DUE", ""), (40, "CANCELED", "replaced by b"),
    ]  # fmt: skip
    assert [(entry.status.name, entry.note) for entry in entries_of(bench.intent("b"))] == [
        ("SCHEDULED", ""), ("SCHEDULED", "in the place of a"),
    ]  # fmt: skip
    why = query.why(bench.state, bench.intent("a"), T0 + 1_040)
    assert (why.code, why.data["replaced_by"]) == ("replaced", "b")
    assert why.sentence == "'b' replaced it 1 s ago, before it ran: both have the same collapse key."


def test_a_patched_one_that_is_cancelled_was_not_replaced():
    bench = Bench()
    submit(bench, "a", DEBOUNCE, delay=100)
    bench.patch("a", priority=3)
    bench.cancel("a")
    assert [entry.note for entry in entries_of(bench.intent("a"))] == ["", "patched", ""]
    assert query.why(bench.state, bench.intent("a"), T0).code == "canceled"


# Restarts.


@pytest.mark.parametrize("until", [START, END, TIME, DEBOUNCE])
def test_claims_hold_through_a_restart(until):
    bench = Bench()
    submit(bench, "a", until, delay=30 * DAY_MS, for_ms=HOUR_MS if until is TIME else 0)
    bench.save()
    again = bench.thawed()
    found = submit(again, "b", until, delay=100, for_ms=HOUR_MS if until is TIME else 0)
    assert found == ("b" if until is DEBOUNCE else "a")
    assert again.status("a") is (Status.CANCELED if until is DEBOUNCE else Status.SCHEDULED)


def test_no_place_is_taken_in_a_queue_that_the_caller_may_not_use():
    bench = Bench()
    ties = Ties(Claim("k", DEBOUNCE), within=("task:mine",))
    bench.submit("theirs", on=queue("theirs"), ties=tie(DEBOUNCE), delay=100)
    assert errors(bench.submit("a", on=queue("mine"), ties=ties, delay=100)) == ["Forbidden"]
    assert bench.statuses("theirs") == ["SCHEDULED"]
    bench.cancel("theirs")
    assert errors(bench.submit("a", "b", on=queue("mine"), ties=ties, delay=100)) == ["", ""]
    assert bench.statuses("a", "b") == ["CANCELED", "SCHEDULED"]
    kept = bench.intent("b").rare
    assert kept is not None and kept.ties == tie(DEBOUNCE), "what the caller may use is not kept"
    invariants.check(bench.state)
