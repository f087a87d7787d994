"""Routes of deliveries: workers claim, settle and extend them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from msgspec import Raw

from duetime import errors as e
from duetime.api.access.auth import Role
from duetime.api.deliveries import outcomes
from duetime.api.deliveries.claims import Claims
from duetime.api.http.endpoint import Call, Handler
from duetime.api.http.exchange import Answer
from duetime.api.http.router import Route
from duetime.api.resources.routes import REQUEST_ID
from duetime.errors import InvalidField
from duetime.limits import NAME_CHARS_MAX, NOTE_CHARS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Outcome, Settlement
from duetime.protocol.terms import Entity, Stream, Task, lane_of, type_lane
from duetime.protocol.view import Progress
from duetime.wire.delivery import (
    ClaimDeliveries,
    ClaimedDeliveries,
    ClaimedDelivery,
    DoneOutcome,
    ExtendDeliveries,
    ExtendedDeliveries,
    ExtendedDelivery,
    FailedOutcome,
    OneOutcome,
    RejectedOutcome,
    ReturnedOutcome,
    SettledDeliveries,
    SettledDelivery,
    SettleDeliveries,
    SnoozedOutcome,
)
from duetime.wire.intent import EntityTarget, StreamTarget, TaskTarget
from duetime.wire.shapes import written, written_or_none

_encode = msgspec.json.Encoder().encode
_claim = msgspec.json.Decoder(ClaimDeliveries)
_settle = msgspec.json.Decoder(SettleDeliveries)
_extend = msgspec.json.Decoder(ExtendDeliveries)

_Handler = Callable[[str, Call], Awaitable[Answer]]


class DeliveryRoutes:
    """Handlers of deliveries."""

    def __init__(self, claims: Claims, result_bytes_max: int) -> None:
        self._claims = claims
        self._result_bytes_max = result_bytes_max

    async def claim(self, lane: str, call: Call) -> Answer:
        wanted = call.read(_claim)
        exchange = call.exchange
        assert exchange is not None, "a claim needs a connection"
        claim = await self._claims.claim(lane, wanted.consumer, wanted.max, wanted.wait_ms, exchange.closed)
        found = ClaimedDeliveries(deliveries=list(map(_shown, claim.deliveries)))
        return Answer(_encode(found), ended=claim.answered)

    async def settle(self, lane: str, call: Call) -> Answer:
        told = _read_outcomes(call)
        now_ms = self._claims.service.running.now_ms()
        settlements = [
            Settlement(
                each.intent_id,
                each.delivery,
                self._outcome(each, now_ms),
                outcomes.attempt_log(each.log) if each.log else None,
            )
            for each in told.outcomes
        ]
        counted = await self._claims.settle(lane, told.consumer, settlements)
        results = [
            SettledDelivery(intent_id=each.intent_id, delivery=each.delivery, counted=counts)
            for each, counts in zip(told.outcomes, counted, strict=True)
        ]
        number = sum(counted)
        return Answer(
            _encode(SettledDeliveries(results=results, counted=number, stale=len(results) - number))
        )

    async def extend(self, lane: str, call: Call) -> Answer:
        told = call.read(_extend)
        now_ms = self._claims.service.running.now_ms()
        keys = [(each.intent_id, each.delivery) for each in told.deliveries]
        reports = {
            key: Progress(each.done, each.total, each.note[:NOTE_CHARS_MAX], now_ms)
            for key, delivery in zip(keys, told.deliveries, strict=True)
            if (each := delivery.progress) is not None
        }
        held = await self._claims.extend(lane, told.consumer, keys, reports)
        results = [
            ExtendedDelivery(intent_id=id, delivery=delivery, held=holds)
            for (id, delivery), holds in zip(keys, held, strict=True)
        ]
        return Answer(_encode(ExtendedDeliveries(results=results)))

    def _outcome(self, told: OneOutcome, now_ms: int) -> Outcome:
        match told:
            case DoneOutcome():
                result = bytes(told.result) if isinstance(told.result, Raw) else b""
                return outcomes.done(result, self._result_bytes_max)
            case FailedOutcome():
                return outcomes.failed(told.kind, told.message, told.delay_ms, told.retry_after_ms, now_ms)
            case RejectedOutcome():
                return outcomes.rejected(told.kind, told.message)
            case SnoozedOutcome():
                return outcomes.snoozed(told.delay_ms, told.reason)
            case ReturnedOutcome():
                return outcomes.returned(told.message)


def _read_outcomes(call: Call) -> SettleDeliveries:
    try:
        return call.read(_settle)
    except InvalidField as error:
        if str(error.details["path"]).endswith(".outcome"):
            error.hint = "An outcome is done, failed, rejected, snoozed or returned."
        raise


def _shown(delivery: Deliver) -> ClaimedDelivery:
    terms = delivery.terms
    target = terms.target
    return ClaimedDelivery(
        intent_id=delivery.id,
        delivery=delivery.delivery,
        attempt=delivery.attempt,
        max_attempts=terms.redelivery.max_attempts,
        task=TaskTarget(name=target.name, queue=target.queue) if isinstance(target, Task) else None,
        entity=EntityTarget(type=target.kind, id=target.id, message=target.message)
        if isinstance(target, Entity)
        else None,
        stream=StreamTarget(name=target.name) if isinstance(target, Stream) else None,
        payload=Raw(delivery.payload) if delivery.payload else None,
        headers=delivery.headers or {},
        tags=terms.tags or {},
        traceparent=delivery.traceparent,
        execute_at=written(delivery.execute_at_ms),
        deadline=written_or_none(delivery.deadline_ms),
        late_ms=delivery.late_ms,
        precision_tier=terms.tier.name,
        timeout_ms=terms.timeout_ms,
        lease_ms=terms.lease_ms,
    )


# By path: the parameter, the name in operation ids, and the lane.
_SOURCES: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    ("/v1/queues/{queue}", "queue", "Queue", lambda name: lane_of(Task("", name))),
    ("/v1/streams/{stream}", "stream", "Stream", lambda name: lane_of(Stream(name))),
    ("/v1/entities/{type}", "type", "EntityType", type_lane),
)
_ERRORS = (e.NotJson, e.InvalidField, e.NotReady, e.LogUnavailable)


def delivery_routes(handlers: DeliveryRoutes) -> list[Route]:
    """The routes for queues, streams and entity types."""
    found: list[Route] = []
    for path, parameter, noun, lane in _SOURCES:
        one = partial(Route, method="POST", role=Role.worker, tag="Deliveries", errors=_ERRORS)
        name = {"queue": "a queue", "stream": "a stream", "type": "an entity type"}[parameter]

        def of(handler: _Handler, parameter: str = parameter, lane: Callable[[str], str] = lane) -> Handler:
            async def handle(call: Call) -> Answer:
                named = call.params[parameter]
                if len(named) > NAME_CHARS_MAX:
                    raise InvalidField(
                        f"The {parameter} in the path has more than {NAME_CHARS_MAX} characters."
                    )
                return await handler(lane(named), call)

            return handle

        found += [
            one(
                path=f"{path}/claim", handler=of(handlers.claim), name=f"claimFrom{noun}",
                summary=f"Take deliveries of {name}; wait for the first one", body=ClaimDeliveries,
                answers={200: ClaimedDeliveries}, waits=True,
            ),
            one(
                path=f"{path}/settle", handler=of(handlers.settle), name=f"settleFor{noun}",
                summary=f"Report outcomes of deliveries of {name}", body=SettleDeliveries, bulk=True,
                answers={200: SettledDeliveries}, parameters=(REQUEST_ID,), write=True,
            ),
            one(
                path=f"{path}/extend", handler=of(handlers.extend), name=f"extendFor{noun}",
                summary=f"Renew leases of deliveries of {name}", body=ExtendDeliveries,
                answers={200: ExtendedDeliveries},
            ),
        ]  # fmt: skip
    return found
