"""Requests of workers over HTTP: claim, settle and extend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from duetime.client.http.requests import path
from duetime.client.http.transport import Request
from duetime.errors import InvalidField
from duetime.wire.delivery import (
    ClaimDeliveries,
    ClaimedDelivery,
    DeliveryOutcome,
    ExtendDeliveries,
    HeldDelivery,
)


def source(queue: str | None, stream: str | None, entity: str | None) -> Sequence[str]:
    """The path of a queue, a stream or an entity type."""
    given = {"queues": queue, "streams": stream, "entities": entity}
    named = [(kind, name) for kind, name in given.items() if name is not None]
    if len(named) != 1:
        raise InvalidField("Deliveries come from one queue, one stream or one entity type: name one of them.")
    return named[0]


def claim(place: Sequence[str], consumer: str, most: int, wait_ms: int) -> Request:
    asked = ClaimDeliveries(consumer=consumer, max=most, wait_ms=wait_ms)
    # It has no request id: a repeated claim takes other deliveries, and the first ones come back.
    return Request("POST", path(*place, "claim"), body=msgspec.json.encode(asked), named=False)


def settle(place: Sequence[str], consumer: str, outcomes: Iterable[DeliveryOutcome]) -> Request:
    told = {"consumer": consumer, "outcomes": list(outcomes)}
    return Request("POST", path(*place, "settle"), body=msgspec.json.encode(told))


def extend(
    place: Sequence[str], consumer: str, deliveries: Iterable[ClaimedDelivery | HeldDelivery]
) -> Request:
    held = [
        each
        if isinstance(each, HeldDelivery)
        else HeldDelivery(intent_id=each.intent_id, delivery=each.delivery)
        for each in deliveries
    ]
    told = ExtendDeliveries(consumer=consumer, deliveries=held)
    return Request("POST", path(*place, "extend"), body=msgspec.json.encode(told), named=False)
