"""Idempotency keys: one intent within the window, whatever happened to it."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.limits import DAY_MS
from duetime.protocol.intent import Status
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.terms import OnDuplicate, Redelivery
from tests.unit.kernel.bench import Bench, error, errors, replies, terms

LIVE, RETURN, REJECT = OnDuplicate


def twin(bench: Bench, id: str = "b", **more):
    """A second submit with the same key; the id of the intent it was answered with, or the error."""
    more.setdefault("key", "k")
    (reply,) = replies(bench.submit(id, **more))
    assert reply is not None
    if isinstance(reply, Refusal):
        return reply.reason.value
    return f"existing {reply.intent.id}" if isinstance(reply, Existing) else f"new {reply.id}"


def end(bench: Bench, id: str, how: Status) -> None:
    if how is Status.ACKED:
        bench.done(id)
    elif how is Status.CANCELED:
        bench.cancel(id)
    elif how is Status.DEAD_LETTERED:
        bench.fail(id)
    else:
        bench.later(1_000)
    assert bench.status(id) is how


LIVES: dict[Status, dict[str, Any]] = {
    Status.SCHEDULED: {"delay": 100},
    Status.DISPATCHING: {},
    Status.BLOCKED: {"after": ("parent",)},
}
ONCE = terms(redelivery=Redelivery(max_attempts=1))


@pytest.mark.parametrize("status", LIVES, ids=lambda status: status.name)
@pytest.mark.parametrize(
    ("choice", "answer"), [(LIVE, "existing a"), (RETURN, "existing a"), (REJECT, "KeyFinished")]
)
def test_a_live_twin_is_given_back_or_rejected(status, choice, answer):
    bench = Bench()
    bench.submit("parent", delay=1_000)
    bench.submit("a", key="k", **LIVES[status])
    assert bench.status("a") is status
    assert twin(bench, on_duplicate=choice) == answer
    assert bench.store.get("b") is None


@pytest.mark.parametrize("how", [Status.ACKED, Status.CANCELED, Status.DEAD_LETTERED, Status.EXPIRED])
@pytest.mark.parametrize(
    ("choice", "answer"), [(LIVE, "KeyFinished"), (RETURN, "existing a"), (REJECT, "KeyFinished")]
)
def test_a_finished_twin_is_refused_unless_it_is_asked_for(how, choice, answer):
    bench = Bench()
    if how is Status.EXPIRED:
        bench.configure(pushed=())
        bench.submit("a", key="k", deadline=500)
    else:
        bench.submit("a", key="k", on=ONCE)
    end(bench, "a", how)
    assert twin(bench, on_duplicate=choice) == answer
    assert bench.store.get("b") is None


def test_a_revived_twin_lives_again():
    bench = Bench()
    bench.submit("a", key="k", on=ONCE)
    bench.fail("a")
    assert twin(bench) == "KeyFinished"
    bench.revive("a")
    assert twin(bench) == "existing a"


@pytest.mark.parametrize("choice", OnDuplicate)
def test_the_same_key_with_another_body_is_refused_always(choice):
    bench = Bench()
    bench.submit("a", key="k", fingerprint=1, delay=9)
    (reply,) = replies(bench.submit("b", key="k", fingerprint=2, on_duplicate=choice))
    assert isinstance(reply, Refusal)
    assert (reply.reason.value, reply.details) == ("KeyReused", {"intentId": "a"})


def test_another_key_is_another_intent():
    bench = Bench()
    bench.submit("a", key="k")
    assert twin(bench, key="l") == "new b"


@pytest.mark.parametrize(("ms", "answer"), [(DAY_MS - 1, "existing a"), (DAY_MS, "new b")])
def test_the_window_ends_to_the_millisecond(ms, answer):
    bench = Bench()
    bench.submit("a", key="k", delay=2 * DAY_MS)
    bench.ms = ms
    assert twin(bench) == answer


def test_after_the_window_the_key_names_the_newest():
    bench = Bench()
    bench.submit("a", key="k", delay=9 * DAY_MS)
    bench.ms = DAY_MS
    assert twin(bench, "b", delay=DAY_MS) == "new b"
    assert twin(bench, "c") == "existing b"
    bench.ms += DAY_MS - 1
    assert twin(bench, "c") == "existing b"


def test_the_window_is_a_setting():
    bench = Bench(key_window_ms=10)
    bench.submit("a", key="k", delay=99)
    bench.ms = 9
    assert twin(bench) == "existing a"
    bench.ms = 10
    assert twin(bench) == "new b"


def test_twins_in_one_batch_are_one_intent():
    bench = Bench()
    first, second = replies(bench.submit("a", "b", key="k", delay=9))
    assert isinstance(second, Existing) and second.intent is first


def test_a_refused_intent_does_not_take_its_key():
    bench = Bench()
    assert errors(bench.submit("a", key="k", delay=-9_000)) == ["InThePast"]
    assert twin(bench) == "new b"


def test_a_known_key_is_answered_even_when_the_engine_is_full():
    bench = Bench(pending_max=1)
    bench.submit("a", key="k", delay=9)
    assert errors(bench.submit("x", delay=9)) == ["Busy"]
    assert twin(bench) == "existing a"


def test_a_twin_is_not_changed_by_being_found():
    bench = Bench()
    bench.submit("a", key="k", delay=9)
    revision = bench.intent("a").revision
    twin(bench)
    assert bench.intent("a").revision == revision
    assert error(bench.cancel("a", revision)) == ""
