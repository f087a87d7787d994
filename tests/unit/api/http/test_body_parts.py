"""Bodies of very many parts: refused before they become objects of hundreds of bytes each."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest
from msgspec import Raw

from duetime.api.http.body_parts import check_lines, check_parts, counters
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Head
from duetime.errors import DuetimeError, TooLarge
from duetime.limits import BATCH_CREATE_MAX
from duetime.wire.group import MoreMembers, NewGroup
from duetime.wire.intent import NewIntent

MANY = 200_000
INTENT = b'{"delayMs":0,"stream":{"name":"s"}'
BODIES = {
    "a batch": (list[NewIntent], b"[" + b"{}," * MANY + b"{}]"),
    "a batch behind spaces": (list[Raw], b" \n" * 100 + b"[" + b"1," * MANY + b"1]"),
    "no intents": (list[Raw], b"[" + b"1," * MANY + b"1]"),
    "members": (MoreMembers, b'{"first":0,"members":[' + b"{}," * MANY + b"{}]}"),
    "a group": (NewGroup, b'{"then":{"delayMs":0},"members":[' + b"{}," * MANY + b"{}]}"),
    "after": (NewIntent, INTENT + b',"after":[' + b'"a",' * MANY + b'"a"]}'),
}


def call(body: bytes) -> Call:
    return Call(Head("POST", "/", b"", []), body)


@pytest.mark.parametrize("name", BODIES)
def test_too_many_parts_are_refused_before_they_are_made(name):
    kind, body = BODIES[name]
    counters()  # made once, and not counted below
    decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder(kind)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match=f"more than {BATCH_CREATE_MAX} parts"):
            call(body).read(decoder)
        assert tracemalloc.get_traced_memory()[1] < len(body) + 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b",".join([INTENT + b"}"] * BATCH_CREATE_MAX) + b"]",
        INTENT + b',"payload":[' + b"1," * 100_000 + b"1]}",
        b"[" + INTENT + b',"payload":[' + b"1," * 100_000 + b"1]}]",
        b'{"members":[' + b",".join([INTENT + b"}"] * BATCH_CREATE_MAX) + b"]}",
    ],
)
def test_a_body_within_the_limits_is_read(body):
    check_parts(body)
    check_parts(Raw(body))


@pytest.mark.parametrize("body", [b"[" * 5_000 + b"1," * 30_000, b"," * 30_000, b"[]" + b"," * 30_000])
def test_invalid_json_is_reported_by_the_decoder(body):
    check_parts(body)
    with pytest.raises(DuetimeError, match="not JSON"):
        call(body).read(msgspec.json.Decoder(list[Raw]))


def test_lines():
    check_lines(b"{}\n" * BATCH_CREATE_MAX + b"\n" * BATCH_CREATE_MAX)
    with pytest.raises(TooLarge, match="lines"):
        check_lines(b"1\n" * (10 * BATCH_CREATE_MAX + 1))
