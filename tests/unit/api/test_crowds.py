"""Messages of very many parts: refused before they are parsed."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from duetime.api.grpc.message_parts import check_parts
from duetime.api.grpc.reading import read
from duetime.errors import NotJson, TooLarge
from duetime.v1 import deliveries_pb2, intents_pb2

PARTS = b"\x0a\x00" * 1_000_000


def inside(kind: type[Message], field: str, parts: bytes) -> bytes:
    """A message in which another one has these parts."""
    made = kind()
    getattr(made, field).SetInParent()
    tag = made.SerializeToString()[:1]
    size, length = len(parts), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return tag + length + bytes([size]) + parts


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (intents_pb2.CreateBatchRequest, PARTS),
        (deliveries_pb2.ClientMessage, inside(deliveries_pb2.ClientMessage, "acks", PARTS)),
        (intents_pb2.CreateRequest, inside(intents_pb2.CreateRequest, "intent", PARTS)),
    ],
)
def test_too_many_parts_are_refused_before_they_are_parsed(kind, body):
    with pytest.raises(TooLarge, match="more than 10100 parts"):
        read(kind, body)


def test_a_message_within_the_limits_is_parsed():
    new = intents_pb2.NewIntent(
        delay_ms=1, stream=intents_pb2.Stream(name="s"), payload=b"[" + b"1," * 50_000
    )
    batch = intents_pb2.CreateBatchRequest(intents=[new] * 20).SerializeToString()
    assert len(read(intents_pb2.CreateBatchRequest, batch).intents) == 20
    small = intents_pb2.NewIntent(delay_ms=1, stream=intents_pb2.Stream(name="s" * 40))
    batch = intents_pb2.CreateBatchRequest(intents=[small] * 10_000).SerializeToString()
    assert len(read(intents_pb2.CreateBatchRequest, batch).intents) == 10_000


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"\x0b",
        b"\x08" + b"\xff" * 300_000,
        b"\x0a\xff\xff\xff\x7f",
        b"\x08\x80\x01\x09" + b"x" * 8 + b"\x0d" + b"x" * 4,
    ],
)
def test_an_invalid_message_is_reported_by_the_parser(start):
    body = start + b"\xff" * 300_000
    check_parts(intents_pb2.CreateBatchRequest.DESCRIPTOR, body)
    with pytest.raises(NotJson):
        read(intents_pb2.CreateBatchRequest, body)
