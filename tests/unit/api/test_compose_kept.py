"""What the composer keeps of requests it has seen: bounded, and right."""

from __future__ import annotations

import msgspec
import pytest

from duetime.api.codec.intent_decoder import Composer, Defaults
from duetime.limits import TERMS_KEPT_BYTES_MAX
from duetime.protocol.terms import Terms
from duetime.wire.intent import CallbackIn, NewIntent
from duetime.wire.names import camel

NOW_MS = 1_800_000_000_000


def new(**fields: object) -> NewIntent:
    said = {"delayMs": 5, "callback": {"url": "http://h/"}, **fields}
    return msgspec.json.decode(msgspec.json.encode(said), type=NewIntent)


def test_the_same_words_make_the_same_terms():
    composer = Composer(Defaults())
    first = composer.terms(new())
    assert composer.terms(new(payload=1)) is first
    assert composer.terms(new(priority=1)) is not first


OTHER_CALLBACKS = {
    "url": "http://h/other",
    "method": "PUT",
    "headers": {"a": "b"},
    "body": {"a": 1},
    "batch": True,
    "parents": True,
    "on_end": "http://h/end",
}


@pytest.mark.parametrize("field", CallbackIn.__struct_fields__)
def test_callbacks_that_differ_in_one_field_have_terms_of_their_own(field):
    composer = Composer(Defaults())
    first = composer.terms(new())
    other = composer.terms(new(callback={"url": "http://h/", camel(field): OTHER_CALLBACKS[field]}))
    assert other != first and composer.terms(new()) is first


def test_large_bodies_do_not_pile_up():
    composer = Composer(Defaults())

    def terms(number: int) -> Terms:
        return composer.terms(new(callback={"url": "http://h/", "body": f"{number}" + "x" * 50_000}))

    first = terms(0)
    assert terms(0) is first
    for number in range(1, TERMS_KEPT_BYTES_MAX // 50_000 + 1):
        terms(number)
    assert terms(0) is not first, "the cache was emptied"


@pytest.mark.parametrize("payload", [b"1e400", b"-1e999", b"9" * 5_000, b'{"a":[1e400]}'])
def test_numbers_that_nothing_can_hold(payload):
    """They are JSON, and are handed on as they are; a key's fingerprint must not fail on them."""
    body = b'{"delayMs":5,"stream":{"name":"n"},"idempotencyKey":"k","payload":%b}'
    first, other = (msgspec.json.decode(body % each, type=NewIntent) for each in (payload, b"1e401"))
    composer = Composer(Defaults())
    prints = [composer.item(each, 0, NOW_MS).fingerprint for each in (first, first, other)]
    assert prints[0] == prints[1] != prints[2]


def test_a_fingerprint_does_not_change_with_the_version():
    """It is stored: a caller that repeats its request after an upgrade gets the same intent."""
    said = new(
        idempotencyKey="k",
        callback={"url": "http://h/", "headers": {"a": "b"}},
        limits=[{"key": "a", "rate": "1/s"}],
        tags={"t": "v"},
        redelivery={},
    )
    composer = Composer(Defaults())
    assert composer.item(said, 0, NOW_MS).fingerprint == 136_271_622_720_261
    plain, more = new(idempotencyKey="k"), new(idempotencyKey="k", headers={"a": "b"})
    first, other = (composer.item(each, 0, NOW_MS).fingerprint for each in (plain, more))
    assert first != other, "a field that was added later counts if it is given"
