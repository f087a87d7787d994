"""Converts deliveries into messages of `Deliveries`, and messages into outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from duetime.api.deliveries import outcomes
from duetime.api.functions.registry import Announced
from duetime.bounded_cache import BoundedCache
from duetime.channels.pull import Dropped
from duetime.errors import InvalidField
from duetime.limits import (
    CONNECTION_TERMS_KEPT,
    CREDITS_MAX,
    ERROR_CHARS_MAX,
    NAME_CHARS_MAX,
    NOTE_CHARS_MAX,
    PROGRESS_MAX,
    SOURCES_MAX,
)
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Lost, Outcome, Settlement
from duetime.protocol.terms import Entity, Stream, Target, Task, Terms, Tier, lane_of, type_lane
from duetime.protocol.view import Progress
from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2

_TIERS: dict[Tier, Any] = {
    tier: intents_pb2.PrecisionTier.Value(f"PRECISION_TIER_{tier.name}") for tier in Tier
}


class Packer:
    """Converts deliveries into messages. The part that comes from the terms is cached."""

    def __init__(self) -> None:
        self._parts = BoundedCache[int, tuple[Terms, pb.Delivery]](CONNECTION_TERMS_KEPT)

    def pack(self, deliveries: Iterable[Deliver]) -> pb.ServerMessage:
        message = pb.ServerMessage()
        add = message.deliveries.deliveries.add
        for delivery in deliveries:
            packed = add()
            packed.CopyFrom(self._part(delivery.terms))
            packed.intent_id = delivery.id
            packed.delivery = delivery.delivery
            packed.attempt = delivery.attempt
            packed.execute_at_ms = delivery.execute_at_ms
            packed.late_ms = delivery.late_ms
            packed.payload = delivery.payload
            if delivery.deadline_ms:
                packed.deadline_ms = delivery.deadline_ms
            if delivery.traceparent is not None:
                packed.traceparent = delivery.traceparent
            if delivery.headers is not None:
                packed.headers.update(delivery.headers)
        return message

    def _part(self, terms: Terms) -> pb.Delivery:
        kept = self._parts.get(id(terms))
        if kept is not None:
            return kept[1]
        part = pb.Delivery(
            precision_tier=_TIERS[terms.tier],
            tags=terms.tags,
            lease_ms=terms.lease_ms,
            timeout_ms=terms.timeout_ms,
            max_attempts=terms.redelivery.max_attempts,
        )
        target = terms.target
        if isinstance(target, Stream):
            part.stream.name = target.name
        elif isinstance(target, Task):
            part.task.CopyFrom(intents_pb2.Task(name=target.name, queue=target.queue))
        elif isinstance(target, Entity):
            part.entity.CopyFrom(intents_pb2.Entity(type=target.kind, id=target.id, message=target.message))
        self._parts.keep(id(terms), (terms, part))
        return part


def aborts(dropped: Iterable[Dropped]) -> pb.ServerMessage:
    return pb.ServerMessage(
        aborts=pb.Aborts(
            aborts=[
                pb.Aborts.Abort(intent_id=each.id, delivery=each.delivery, reason=each.reason)
                for each in dropped
            ]
        )
    )


def results(number: int, settlements: list[Settlement], counted: list[bool]) -> pb.ServerMessage:
    """The results of acks."""
    stale = [
        pb.AckResults.Stale(intent_id=each.id, delivery=each.delivery)
        for each, counts in zip(settlements, counted, strict=True)
        if not counts
    ]
    return pb.ServerMessage(
        ack_results=pb.AckResults(number=number, counted=len(settlements) - len(stale), stale=stale)
    )


def credits_of(given: Iterable[pb.Credit]) -> dict[str, int]:
    """Credits by lane."""
    found: dict[str, int] = {}
    for credit in given:
        lane = _lane(credit.source)
        found[lane] = found.get(lane, 0) + credit.credits
    if len(found) > SOURCES_MAX:
        raise InvalidField(f"{len(found)} streams and queues are named; {SOURCES_MAX} are allowed.")
    return found


def check_credits(wanted: int) -> None:
    if wanted > CREDITS_MAX:
        raise InvalidField(
            f"{wanted} credits and deliveries without outcome are too many; {CREDITS_MAX} are allowed.",
            hint="Grant credits as you send outcomes.",
        )


def _lane(source: pb.Source) -> str:
    kind = source.WhichOneof("kind")
    if kind is None:
        raise InvalidField("Credits must name a stream, a queue or an entity type.")
    name: str = getattr(source, kind)
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        raise InvalidField(f"The name of a {kind} has 1 to {NAME_CHARS_MAX} characters.")
    if kind == "entity":
        return type_lane(name)
    target: Target = Stream(name) if kind == "stream" else Task("", name)
    return lane_of(target)


def settlement(ack: pb.Ack, now_ms: int, result_bytes_max: int, consumer: str) -> Settlement:
    log = outcomes.attempt_log(ack.log) if ack.log else None
    outcome, waited_ms = _outcome(ack, now_ms, result_bytes_max), ack.waited_ms
    return Settlement(
        ack.intent_id, ack.delivery, outcome, log, consumer, waited_ms if waited_ms >= -1 else -1
    )


def functions(hello: pb.Hello) -> Iterator[Announced]:
    """The functions that a worker announces."""
    for each in hello.functions:
        place = each.WhichOneof("place")
        yield Announced(
            each.name,
            each.queue if place == "queue" else None,
            each.entity if place == "entity" else None,
            each.signature,
            each.schema,
        )


def words(report: pb.ProgressReport, now_ms: int) -> dict[tuple[str, int], Progress]:
    """The progress of deliveries."""
    if len(report.words) > PROGRESS_MAX:
        raise InvalidField(
            f"{len(report.words)} progress reports are in one message; {PROGRESS_MAX} are allowed."
        )
    return {
        (each.intent_id, each.delivery): Progress(
            plain(each.done),
            plain(each.total) if each.HasField("total") else None,
            each.note[:NOTE_CHARS_MAX],
            now_ms,
        )
        for each in report.words
        if math.isfinite(each.done) and math.isfinite(each.total)
    }


def plain(number: float) -> float:
    """A whole number as an integer."""
    return int(number) if number.is_integer() else number


def _outcome(ack: pb.Ack, now_ms: int, result_bytes_max: int) -> Outcome:
    match ack.WhichOneof("outcome"):
        case "done":
            return outcomes.done(ack.done.result, result_bytes_max)
        case "failed":
            failed = ack.failed
            delay_ms = failed.delay_ms if failed.HasField("delay_ms") else None
            return outcomes.failed(failed.kind, failed.message, delay_ms, failed.retry_after_ms, now_ms)
        case "snoozed":
            return outcomes.snoozed(ack.snoozed.delay_ms, ack.snoozed.reason)
        case "rejected":
            return outcomes.rejected(ack.rejected.kind, ack.rejected.message)
        case "lost":
            text = ack.lost.message[:ERROR_CHARS_MAX]
            return outcomes.returned(text) if ack.lost.returned else Lost(text)
    raise InvalidField(f"The ack of {ack.intent_id[:128]!r} has no outcome.")
