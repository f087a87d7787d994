"""What the ring of events keeps alive of the intents it tells about."""

from __future__ import annotations

from duetime.api.events import _slim
from duetime.protocol.intent import Intent, Rare, Status
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
