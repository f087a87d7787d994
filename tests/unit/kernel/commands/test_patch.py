"""Changing an intent before it goes out."""

from __future__ import annotations

import pytest

from duetime.protocol.command import Resize
from duetime.protocol.intent import Status
from duetime.protocol.terms import Backoff, ExpiredAction, Redelivery
from tests.unit.kernel.bench import T0, Bench, delivered, entity, error, queue, stream


def test_a_new_time_holds_and_the_old_one_does_not():
    bench = Bench()
    bench.submit("a", delay=1_000)
    bench.patch("a", execute_at_ms=T0 + 3_000)
    assert delivered(bench.at(1_000)) == []
    assert delivered(bench.at(2_999)) == []
    assert delivered(bench.at(3_000)) == ["a"]
    assert bench.intent("a").late_ms == 0


def test_an_earlier_time_holds():
    bench = Bench()
    bench.submit("a", delay=3_600_000)
    bench.patch("a", execute_at_ms=T0 + 500)
    assert bench.next() == 500
    assert delivered(bench.at(500)) == ["a"]


def test_a_time_of_now_makes_it_due_at_once():
    bench = Bench()
    bench.submit("a", delay=1_000)
    assert delivered(bench.patch("a", execute_at_ms=T0)) == ["a"]


def test_a_due_intent_can_be_put_off():
    bench = Bench()
    bench.submit("a", on=stream())
    assert bench.status("a") is Status.DUE
    bench.patch("a", execute_at_ms=T0 + 1_000)
    assert bench.status("a") is Status.SCHEDULED
    assert delivered(bench.demand("w", "stream:s")) == []
    assert delivered(bench.at(1_000)) == ["a"]


def test_omitted_fields_are_unchanged():
    bench = Bench()
    bench.submit("a", delay=1_000, deadline=5_000, payload=b"1", on=queue("q", tags={"x": "y"}, priority=3))
    before = bench.intent("a").terms
    bench.patch("a", payload=b"2")
    intent = bench.intent("a")
    assert (intent.terms, intent.payload) == (before, b"2")
    assert (intent.execute_at_ms, intent.deadline_ms) == (T0 + 1_000, T0 + 5_000)


def test_every_field_that_may_change_changes():
    bench = Bench()
    bench.submit("a", delay=1_000)
    policy = Redelivery(2, Backoff.FIXED, 7, 9, 100, False)
    bench.patch(
        "a",
        deadline_ms=T0 + 9_000,
        expired_action=ExpiredAction.DEAD_LETTER,
        redelivery=policy,
        tags={"k": "v"},
        priority=5,
        payload=b"[]",
    )
    intent = bench.intent("a")
    terms = intent.terms
    assert (terms.expired_action, terms.redelivery) == (ExpiredAction.DEAD_LETTER, policy)
    assert (terms.tags, terms.priority) == ({"k": "v"}, 5)
    assert (intent.deadline_ms, intent.payload, intent.revision) == (T0 + 9_000, b"[]", 2)


def test_terms_that_are_shared_are_not_changed_for_others():
    bench = Bench()
    bench.submit("a", "b", delay=1_000)
    bench.patch("a", priority=9)
    assert bench.intent("b").terms.priority == 0


@pytest.mark.parametrize(("ms", "name"), [(-5_000, ""), (-5_001, "InThePast")])
def test_a_new_time_may_be_a_little_in_the_past(ms, name):
    bench = Bench()
    bench.submit("a", delay=1_000)
    assert error(bench.patch("a", execute_at_ms=T0 + ms)) == name


@pytest.mark.parametrize(
    "changes",
    [
        {"deadline_ms": T0 + 999},
        {"execute_at_ms": T0 + 5_001},
        {"execute_at_ms": T0 + 6_000, "deadline_ms": T0 + 5_999},
    ],
)
def test_the_deadline_stays_behind_the_time(changes):
    bench = Bench()
    bench.submit("a", delay=1_000, deadline=5_000)
    assert error(bench.patch("a", **changes)) == "DeadlineTooEarly"
    assert bench.intent("a").revision == 1


def test_a_deadline_can_be_taken_away():
    bench = Bench()
    bench.submit("a", on=stream(), deadline=500)
    bench.patch("a", deadline_ms=0)
    bench.at(10_000)
    assert bench.status("a") is Status.DUE
    assert delivered(bench.demand("w", "stream:s")) == ["a"]


def test_a_due_intent_can_be_given_a_deadline():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.patch("a", deadline_ms=T0 + 500)
    bench.at(500)
    assert bench.status("a") is Status.EXPIRED


def test_a_deadline_that_has_passed_ends_it():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.ms = 100
    bench.patch("a", deadline_ms=T0 + 50)
    assert bench.status("a") is Status.EXPIRED


def test_a_retry_keeps_its_time_unless_a_new_one_is_given():
    bench = Bench()
    bench.submit("a")
    bench.fail("a")
    bench.patch("a", payload=b"1")
    assert delivered(bench.at(999)) == []
    assert delivered(bench.at(1_000)) == ["a"]


def test_a_retry_does_not_outlive_a_new_deadline():
    bench = Bench()
    bench.submit("a")
    bench.fail("a")
    bench.patch("a", deadline_ms=T0 + 500)
    assert delivered(bench.at(500)) == []
    assert bench.status("a") is Status.EXPIRED


def test_a_new_priority_is_a_new_place_in_the_lane():
    bench = Bench()
    bench.submit("a", "b", on=stream())
    bench.patch("b", priority=1)
    assert delivered(bench.demand("w", "stream:s", 2)) == ["b", "a"]


def test_a_lower_priority_lets_others_pass():
    bench = Bench()
    bench.submit("a", "b", on=stream())
    bench.patch("a", priority=-1)
    assert delivered(bench.demand("w", "stream:s", 2)) == ["b", "a"]


def test_a_blocked_intent_stays_blocked():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",))
    bench.patch("c", execute_at_ms=T0 + 2_000, deadline_ms=T0 + 4_000)
    assert bench.status("c") is Status.BLOCKED
    bench.done("p")
    assert delivered(bench.at(1_999)) == []
    assert delivered(bench.at(2_000)) == ["c"]


def test_a_blocked_intent_obeys_its_new_deadline():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), deadline=500)
    bench.patch("c", deadline_ms=T0 + 1_000)
    bench.at(500)
    assert bench.status("c") is Status.BLOCKED
    bench.at(1_000)
    assert bench.status("c") is Status.EXPIRED


@pytest.mark.parametrize("tier", [0, 3])
def test_a_message_is_patched_while_its_tier_has_no_permit(tier):
    """Its lane is dropped and made anew in one record: two tracks of one place meet in the tier's heap."""
    bench = Bench()
    for number in range(5):
        bench.do(Resize(number, 1))
    bench.submit("busy", on=queue("q", tier=tier))
    for number in range(tier + 1, 5):
        bench.submit(f"busy{number}", on=queue("q", tier=number))
    for n in range(20):
        bench.submit(f"m{n}", on=entity(f"e{n}", tier=tier))
    for n in range(20):
        assert error(bench.patch(f"m{n}", payload=b"1")) == ""
        assert bench.status(f"m{n}") is Status.DUE
    order = []
    running = "busy"
    for _ in range(20):
        (running,) = delivered(bench.done(running))
        order.append(running)
    assert order == [f"m{n}" for n in range(20)]


def test_patching_a_lane_s_only_message_does_not_lose_a_paused_lane():
    bench = Bench(pushed=("entity",))
    bench.submit("a", on=entity())
    bench.submit("b", on=entity())
    bench.patch("b", payload=b"1", execute_at_ms=T0 + 100)
    bench.done("a")
    assert bench.state.entities == 0
    assert delivered(bench.at(100)) == ["b"]


def test_a_postponed_intent_is_shown_as_never_due():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.patch("a", execute_at_ms=T0 + 1_000)
    assert bench.intent("a").due_at_ms == 0
