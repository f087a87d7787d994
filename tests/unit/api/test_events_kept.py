"""What the ring of events keeps alive of the intents it tells about."""

from __future__ import annotations

from duetime.api.events import _shown, _slim
from duetime.protocol.effect import Change
from duetime.protocol.intent import Error, Intent, Rare, Status
from duetime.protocol.terms import Callback, Task, Terms, Tier
from duetime.store.archive import Filter


def intent(target: Callback | Task) -> Intent:
    terms = Terms(target, "lane", Tier.HIGH, tags={"a": "b"})
    made = Intent(7, "i", terms, bytes(100_000), Status.DUE, 50, 0, 1, 1)
    made.rare = Rare(result=bytes(100_000))
    return made


def test_payloads_results_and_bodies_are_not_kept():
    slim = _slim(intent(Callback("http://h/", body=bytes(60_000), headers={"a": "b" * 1_000})))
    assert slim.payload == b"" and slim.rare is None
    assert isinstance(slim.terms.target, Callback) and slim.terms.target.body is None


def test_filters_find_what_they_look_for():
    slim = _slim(intent(Task("t", "q")))
    assert slim.id == "i"
    for filter, found in (
        (Filter(queue="q", task="t", tier=Tier.HIGH, tags={"a": "b"}, from_ms=50, to_ms=51), True),
        (Filter(queue="other"), False),
        (Filter(tags={"a": "c"}), False),
        (Filter(from_ms=51), False),
    ):
        assert filter.matches(slim) is found


def test_an_error_is_told_with_the_transition_that_it_caused_and_no_other():
    made = intent(Task("t"))
    made.rare = Rare(last_error=Error(100, 1, "http", "HTTP 500"))
    retried = Change("i", Status.DISPATCHING, Status.SCHEDULED, 100, 1)
    assert _shown(retried, made).error == "HTTP 500"
    for old, new, at_ms, delivery in (
        (Status.SCHEDULED, Status.DUE, 100, 1),
        (Status.DUE, Status.DISPATCHING, 200, 2),
        (Status.DISPATCHING, Status.ACKED, 300, 2),
        (Status.DISPATCHING, Status.SCHEDULED, 300, 2),  # a snooze
        (Status.DEAD_LETTERED, Status.SCHEDULED, 100, 1),  # revived
    ):
        assert _shown(Change("i", old, new, at_ms, delivery), made).error is None, (old, new)
