"""Converts messages of `Deliveries` into deliveries, and outcomes into messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from duetime.bounded_cache import BoundedCache
from duetime.client.execution.reports import Word, words_of
from duetime.limits import CONNECTION_TERMS_KEPT, PROGRESS_MAX, WORKER_ACKS_BYTES_MAX, WORKER_ACKS_MAX
from duetime.protocol.effect import Deliver, DeliveryKey
from duetime.protocol.outcome import Done, Expired, Failed, Lost, Rejected, Returned, Settlement, Snoozed
from duetime.protocol.terms import Entity, Redelivery, Task, Terms, Tier, lane_of
from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2

_TIERS: dict[int, Tier] = {
    intents_pb2.PrecisionTier.Value(f"PRECISION_TIER_{tier.name}"): tier for tier in Tier
}


class Unpacker:
    """Converts messages into deliveries. Shared parts are cached."""

    def __init__(self) -> None:
        self.lease_ms = 0
        """The shortest lease so far; 0 before the first."""
        self._known = BoundedCache[tuple[object, ...], Terms](CONNECTION_TERMS_KEPT)

    def unpack(self, message: pb.Deliveries) -> list[Deliver]:
        known, found = self._known, []
        for each in message.deliveries:
            task = each.task
            name = task.name
            key = (
                name, task.queue if name else _entity(each.entity),
                each.timeout_ms, each.lease_ms, each.max_attempts, each.precision_tier,
                tuple(sorted(each.tags.items())) if each.tags else None,
            )  # fmt: skip
            terms = known.get(key) or self._terms(key)
            found.append(
                Deliver(
                    each.intent_id,
                    each.delivery,
                    each.attempt,
                    terms,
                    each.payload,
                    each.execute_at_ms,
                    each.late_ms,
                    each.deadline_ms,
                    each.traceparent if each.HasField("traceparent") else None,
                    "",
                    dict(each.headers) if each.headers else None,
                )
            )
        return found

    def _terms(self, key: tuple[Any, ...]) -> Terms:
        name, place, timeout_ms, lease_ms, attempts, tier, tags = key
        target = Task(name, place) if name else Entity(*place)
        terms = Terms(
            target,
            lane_of(target),
            _TIERS.get(tier, Tier.STANDARD),
            redelivery=Redelivery(max_attempts=attempts),
            timeout_ms=timeout_ms,
            lease_ms=lease_ms,
            tags=dict(tags) if tags else None,
        )
        self.lease_ms = min(self.lease_ms or lease_ms, lease_ms)
        self._known.keep(key, terms)
        return terms


def _entity(entity: intents_pb2.Entity) -> tuple[str, str, str]:
    return entity.type, entity.id, entity.message


def pack(settlements: Iterable[Settlement]) -> pb.ClientMessage:
    """A message with outcomes."""
    message = pb.ClientMessage()
    message.acks.SetInParent()
    add = message.acks.acks.add
    for each in settlements:
        ack, outcome = add(), each.outcome
        ack.intent_id = each.id
        ack.delivery = each.delivery
        if each.log is not None:
            ack.log = each.log
        if each.waited_ms:
            ack.waited_ms = each.waited_ms
        if type(outcome) is Done:
            if outcome.result is None:
                ack.done.SetInParent()
            else:
                ack.done.result = outcome.result
            continue
        match outcome:
            case Failed(kind, text):
                ack.failed.kind, ack.failed.message = kind, text
                if outcome.delay_ms >= 0:
                    ack.failed.delay_ms = outcome.delay_ms
            case Snoozed(delay_ms, reason):
                ack.snoozed.delay_ms, ack.snoozed.reason = delay_ms, reason
            case Rejected(kind, text):
                ack.rejected.kind, ack.rejected.message = kind, text
            case Lost(text) | Expired(text):  # no function returns Expired
                ack.lost.message = text
            case Returned(text):
                ack.lost.message, ack.lost.returned = text, True
    return message


def reports(words: dict[DeliveryKey, Word]) -> Iterator[pb.ClientMessage]:
    """Messages with the progress of deliveries."""
    items = list(words_of(words.items()).items())
    for start in range(0, len(items), PROGRESS_MAX):
        message = pb.ClientMessage()
        for (id, delivery), (done, total, note) in items[start : start + PROGRESS_MAX]:
            word = message.progress.words.add(intent_id=id, delivery=delivery, done=done, note=note)
            if total is not None:
                word.total = total
        yield message


def chunks(settlements: list[Settlement]) -> Iterator[list[Settlement]]:
    """The items in parts that each fit a message."""
    part: list[Settlement] = []
    size = 0
    for each in settlements:
        outcome = each.outcome
        more = len(outcome.result or b"") if type(outcome) is Done else 0
        if each.log is not None:
            more += 4 * len(each.log)
        if part and (len(part) >= WORKER_ACKS_MAX or size + more > WORKER_ACKS_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(each)
        size += more
    if part:
        yield part
