"""An intent is written as it is shown."""

from __future__ import annotations

import sys

import msgspec
import pytest

from duetime.api.codec.intent_encoder import IntentEncoder
from duetime.limits import TERMS_KEPT
from duetime.protocol.command import Cancel, Submit
from duetime.protocol.intent import Intent, Item
from duetime.protocol.outcome import Done, Failed, Outcome, Rejected
from duetime.protocol.terms import Callback, Entity, Limit, Stream, Terms, Tier
from duetime.protocol.view import view_of
from duetime.wire import intent as wire
from tests.unit.kernel.bench import T0, Bench, terms

TERMS = [
    terms(Callback("http://x/y", "PUT", {"a": "b"}, b'{"k": [1]}', True), tier=Tier.ULTRA, tags={"t": "v"}),
    terms(Callback("http://x/y", body=b"plain text")),
    terms(Callback("http://x/y", body=b'"' + b"x" * 10_000 + b'"')),
    terms(Entity("cart", "1", "add"), slo_ms=2_000),
    terms(
        Stream("s"),
        limits=(Limit("k", 5, 2_000, 3, 4),),
        shard_key="shard",
        fairness_key="k",
        fairness_weight=2,
    ),
    terms(),
]


def lives(its: Terms) -> list[Intent]:
    """Intents in many states."""
    bench = Bench(pushed=("bare", "callback", "entity", "stream", "task"))
    bench.submit("waits", on=its, delay=1_000_000, deadline=2_000_000, payload=b'{"a":1}')
    keyed = Item("keyed", 0, T0, b"[1]", key="k", fingerprint=1, traceparent="00-a", request="r")
    bench.do(Submit((its,), (keyed,)))
    bench.submit("after", on=its, after=("waits",))
    bench.submit("done", "failed", "dead", "gone", on=its)
    ends: dict[str, Outcome] = {
        "done": Done(b'{"r":1}'),
        "failed": Failed("http", "no", 502),
        "dead": Rejected("x", "y"),
    }
    for id, outcome in ends.items():
        if bench.status(id).name == "DISPATCHING":
            bench.settle(id, outcome)
    bench.do(Cancel("gone"))
    return [bench.intent(id) for id in ("waits", "keyed", "after", "done", "failed", "dead", "gone")]


@pytest.mark.parametrize("its", TERMS)
def test_written_and_shown_are_the_same(its):
    encoder = IntentEncoder()
    for intent in lives(its) * 2:
        shown = msgspec.json.decode(encoder.view(view_of(intent)))
        assert msgspec.json.decode(encoder.intent(intent)) == shown
        assert shown.keys() == {field.encode_name for field in msgspec.structs.fields(wire.Intent)}


def test_the_cache_of_terms_is_bounded():
    encoder = IntentEncoder()
    bench = Bench()

    def encode(number: int) -> Intent:
        bench.submit(f"i{number}", on=terms(Stream(f"s{number}")), delay=1_000)
        encoder.intent(bench.intent(f"i{number}"))
        return bench.intent(f"i{number}")

    first = encode(0).terms  # held by the bench, here and by the cache
    held = sys.getrefcount(first)
    for number in range(1, TERMS_KEPT + 1):
        encode(number)
    assert sys.getrefcount(first) < held, "the cache has dropped it"
