"""What a worker says is what the server hears, and the other way round."""

from __future__ import annotations

import pytest

from duetime.api.grpc.delivery_codec import Packer, settlement
from duetime.client.worker.delivery_codec import Unpacker, chunks, pack
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Lost, Rejected, Settlement, Snoozed
from duetime.protocol.terms import Redelivery, Task, Terms, Tier
from duetime.v1 import deliveries_pb2 as pb

OUTCOMES = [
    Done(),
    Done(b'{"a":1}'),
    Failed("ValueError", "no"),
    Failed("retry-after", "later", delay_ms=0),
    Failed("retry-after", "later", delay_ms=5_000),
    Snoozed(100, "busy"),
    Rejected("rejected", "never"),
    Lost("gone"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_an_outcome_arrives_as_it_was(outcome):
    sent = pb.ClientMessage.FromString(pack([Settlement("a", 3, outcome)]).SerializeToString())
    assert settlement(sent.acks.acks[0], 0, 1_000, "me") == Settlement("a", 3, outcome, consumer="me")


@pytest.mark.parametrize("tags", [None, {"b": "2", "a": "1"}])
@pytest.mark.parametrize("traceparent", [None, "00-1-2-01"])
def test_a_delivery_arrives_as_it_was(tags, traceparent):
    terms = Terms(
        Task("send", "mail"), "task:mail", Tier.FAST, redelivery=Redelivery(max_attempts=9), timeout_ms=7,
        lease_ms=8, tags=tags,
    )  # fmt: skip
    delivery = Deliver("a", 3, 2, terms, b"[[1]]", 1_000, 5, 2_000, traceparent, "")
    message = pb.ServerMessage.FromString(Packer().pack([delivery, delivery]).SerializeToString())
    unpacker = Unpacker()
    first, second = unpacker.unpack(message.deliveries)
    assert first == second == delivery
    assert first.terms is second.terms, "what they share is made once"
    assert unpacker.lease_ms == 8


def test_results_are_sent_in_parts():
    large = [Settlement(str(n), 1, Done(b"x" * 400_000)) for n in range(5)]
    small = [Settlement(str(n), 1, Done()) for n in range(2_500)]
    assert [len(part) for part in chunks(large)] == [2, 2, 1]
    assert [len(part) for part in chunks(small)] == [1_000, 1_000, 500]
    assert [each for part in chunks(small) for each in part] == small
