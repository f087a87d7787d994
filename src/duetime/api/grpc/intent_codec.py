"""Between the messages of gRPC and the Structs of the API: the one place that knows both.

What comes in is made into the JSON that the HTTP API takes and read by the same decoders, so that the same
rules hold with the same codes. Errors name places as JSON does (`$.executeAt`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from msgspec import Raw

from duetime.api.grpc import claims, intent_parts
from duetime.api.grpc.intent_parts import ms as _ms
from duetime.api.grpc.intent_parts import written as _bytes
from duetime.api.http import problems
from duetime.errors import BadRevision, DuetimeError, NotJson
from duetime.limits import TIME_MS_MAX
from duetime.timefmt import iso
from duetime.v1 import intents_pb2 as pb
from duetime.wire.intent import ErrorOut, IntentOut, LimitOut, NewIntent, PatchIntent, ReviveIntent
from duetime.wire.names import camel

T = TypeVar("T")

_new = msgspec.json.Decoder(NewIntent)
_patch = msgspec.json.Decoder(PatchIntent)
_revive = msgspec.json.Decoder(ReviveIntent)


# What comes in.


def new_intent(new: pb.NewIntent, prefix: str = "$") -> NewIntent:
    said = _said(
        new,
        (
            "intent_id",
            "delay_ms",
            "priority",
            "timeout_ms",
            "lease_ms",
            "idempotency_key",
            "shard_key",
            "fairness_key",
            "fairness_weight",
            "result_ttl_ms",
            "group",
            "members",
        ),
    )
    _times(said, new, ("execute_at", "deadline"))
    _enums(
        said,
        expired_action=(pb.ExpiredAction, new.expired_action),
        precision_tier=(pb.PrecisionTier, new.precision_tier),
        ack_level=(pb.AckLevel, new.ack_level),
        guarantee=(pb.Guarantee, new.guarantee),
        after_on=(pb.AfterOn, new.after_on),
    )
    if new.on_duplicate:
        said["onDuplicate"] = name_of(pb.OnDuplicate, new.on_duplicate).lower()
    if new.HasField("slo"):
        said["slo"] = {"maxTardinessMs": new.slo.max_tardiness_ms}
        _enums(said["slo"], reliability=(pb.Guarantee, new.slo.reliability))
    said |= claims.said(new)
    _target(said, new, prefix)
    _payload(said, new, prefix)
    if new.HasField("redelivery"):
        said["redelivery"] = _redelivery(new.redelivery)
    if new.limits:
        said["limits"] = [_limit(limit) for limit in new.limits]
    if new.after:
        said["after"] = list(new.after)
    if new.tags:
        said["tags"] = dict(new.tags)
    if new.HasField("traceparent"):
        said["traceparent"] = new.traceparent
    return _read(_new, said, prefix)


def new_intents(news: Iterable[pb.NewIntent]) -> list[NewIntent | DuetimeError]:
    """The intents of a batch; what cannot be read is the error that says why."""
    found: list[NewIntent | DuetimeError] = []
    for number, new in enumerate(news):
        try:
            found.append(new_intent(new, f"$[{number}]"))
        except DuetimeError as error:
            found.append(error)
    return found


def patch_intent(patch: pb.PatchRequest) -> PatchIntent:
    said = _said(patch, ("priority",))
    _times(said, patch, ("execute_at",))
    _deadline(said, patch)
    _enums(said, expired_action=(pb.ExpiredAction, patch.expired_action))
    if patch.HasField("redelivery"):
        said["redelivery"] = _redelivery(patch.redelivery)
    if patch.HasField("tags"):
        said["tags"] = dict(patch.tags.values)
    _payload(said, patch, "$")
    return _read(_patch, said, "$")


def revive_intent(revive: pb.ReviveRequest) -> ReviveIntent:
    said: dict[str, Any] = {}
    _times(said, revive, ("execute_at",))
    _deadline(said, revive)
    if revive.HasField("callback"):
        said["callback"] = _callback(revive.callback, "$")
    if revive.HasField("redelivery"):
        said["redelivery"] = _redelivery(revive.redelivery)
    _payload(said, revive, "$")
    return _read(_revive, said, "$")


def revision(message: Any) -> int:
    """The revision that the caller has seen; 0 when it does not say."""
    if not message.HasField("expected_revision"):
        return 0
    expected: int = message.expected_revision
    if expected <= 0:
        raise BadRevision(f"{expected} is not a revision.")
    return expected


def query(message: Any) -> dict[str, str]:
    """The filters of a request, named as in the query of a route."""
    found = {name: getattr(message, name) for name in ("queue", "task") if message.HasField(name)}
    if message.statuses:
        found["status"] = ",".join(name_of(pb.Status, each) for each in message.statuses)
    if message.tier:
        found["tier"] = name_of(pb.PrecisionTier, message.tier)
    if message.HasField("entity_type"):
        found["entity"] = message.entity_type
        if message.HasField("entity_id"):
            found["entity"] += f"/{message.entity_id}"
    return found


def list_query(request: pb.ListRequest) -> dict[str, str]:
    """A request for a list as the query of `GET /v1/intents`."""
    found = query(request)
    for name, value in request.tags.items():
        found[f"tag.{name}"] = value
    if request.HasField("from_ms"):
        found["from"] = str(_moment(request.from_ms))
    if request.HasField("to_ms"):
        found["to"] = str(_moment(request.to_ms))
    if request.by_due_time:
        found["order"] = "due"
    if request.HasField("limit"):
        found["limit"] = str(request.limit)
    if request.HasField("cursor"):
        found["cursor"] = request.cursor
    return found


def json_of(body: bytes, place: str) -> Raw:
    """Bytes that are one JSON document, so that they can stand inside another."""
    try:
        if not body.isascii():
            body.decode()
        return msgspec.json.decode(body, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson(
            f"{place} is not JSON: {error}.", hint="Send JSON in UTF-8, or nothing.", path=place
        ) from None


def _read(decoder: msgspec.json.Decoder[T], said: dict[str, Any], prefix: str) -> T:
    try:
        return decoder.decode(msgspec.json.encode(said))
    except msgspec.ValidationError as error:
        raise problems.invalid(str(error), prefix, decoder.type) from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise problems.unreadable(error) from None


def _said(message: Any, names: Iterable[str]) -> dict[str, Any]:
    return {camel(name): getattr(message, name) for name in names if message.HasField(name)}


def _moment(at_ms: int) -> str | float:
    """A time as the API reads it; one out of range as a number, which it refuses."""
    return iso(at_ms) if 0 < at_ms <= TIME_MS_MAX else at_ms / 1000


def _times(said: dict[str, Any], message: Any, names: Iterable[str]) -> None:
    for name in names:
        if message.HasField(f"{name}_ms"):
            said[camel(name)] = _moment(getattr(message, f"{name}_ms"))


def _deadline(said: dict[str, Any], message: Any) -> None:
    if message.HasField("deadline_ms"):
        said["deadline"] = None if message.deadline_ms == 0 else _moment(message.deadline_ms)


def _enums(said: dict[str, Any], **values: tuple[EnumTypeWrapper, int]) -> None:
    for name, (enum, number) in values.items():
        if number:
            said[camel(name)] = name_of(enum, number)


def name_of(enum: EnumTypeWrapper, number: int) -> str:
    """The name in our own words: without the prefix that enums of Protocol Buffers need."""
    found = enum.DESCRIPTOR.values_by_number.get(number)
    if found is None:
        return str(number)
    prefix = str(enum.DESCRIPTOR.values_by_number[0].name).removesuffix("UNSPECIFIED")
    return str(found.name).removeprefix(prefix)


def _payload(said: dict[str, Any], message: Any, prefix: str) -> None:
    if message.HasField("payload") and message.payload:
        said["payload"] = json_of(message.payload, f"{prefix}.payload")


def _target(said: dict[str, Any], new: pb.NewIntent, prefix: str) -> None:
    match new.WhichOneof("target"):
        case "callback":
            said["callback"] = _callback(new.callback, prefix)
        case "task":
            said["task"] = {"name": new.task.name}
            if new.task.queue:
                said["task"]["queue"] = new.task.queue
        case "entity":
            said["entity"] = {"type": new.entity.type, "id": new.entity.id, "message": new.entity.message}
        case "stream":
            said["stream"] = {"name": new.stream.name}


def _callback(callback: pb.Callback, prefix: str) -> dict[str, Any]:
    said: dict[str, Any] = {"url": callback.url, "headers": dict(callback.headers), "batch": callback.batch}
    if callback.method:
        said["method"] = callback.method
    if callback.HasField("body"):
        try:
            said["body"] = callback.body.decode()  # a text is sent as it is
        except UnicodeDecodeError as error:
            place = f"{prefix}.callback.body"
            raise NotJson(f"{place} is not UTF-8: {error}.", hint="Send text.", path=place) from None
    return said


def _limit(limit: pb.Limit) -> dict[str, Any]:
    said: dict[str, Any] = {"key": limit.key}
    for name in ("rate", "burst", "concurrency"):
        if limit.HasField(name):
            said[name] = getattr(limit, name)
    return said


def _redelivery(policy: pb.Redelivery) -> dict[str, Any]:
    said = _said(policy, ("max_attempts", "initial_delay_ms", "max_delay_ms", "multiplier", "jitter"))
    if policy.backoff:
        said["backoff"] = name_of(pb.Backoff, policy.backoff).lower()
    return said


# What goes out.


def _numbers(enum: EnumTypeWrapper) -> dict[str | None, Any]:
    """Numbers by our own names."""
    return {name_of(enum, number): number for number in enum.values()} | {None: 0}


STATUSES = _numbers(pb.Status)
TIERS = _numbers(pb.PrecisionTier)
_ACTIONS = _numbers(pb.ExpiredAction)
_ACKS = _numbers(pb.AckLevel)
_GUARANTEES = _numbers(pb.Guarantee)
_AFTER_ON = _numbers(pb.AfterOn)


def _limit_out(limit: LimitOut) -> pb.Limit:
    return pb.Limit(key=limit.key, rate=limit.rate, burst=limit.burst, concurrency=limit.concurrency)


def _group(shown: IntentOut) -> dict[str, Any]:
    found = {name: getattr(shown, name) for name in ("group", "members", "joined", "left")}
    return {"after_on": _AFTER_ON[shown.after_on], **found}


def intent(shown: IntentOut) -> pb.Intent:
    message = pb.Intent(
        intent_id=shown.intent_id,
        status=STATUSES[shown.status],
        execute_at_ms=_ms(shown.execute_at),
        deadline_ms=_ms(shown.deadline),
        expired_action=_ACTIONS[shown.expired_action],
        precision_tier=TIERS[shown.precision_tier],
        ack_level=_ACKS[shown.ack_level],
        guarantee=_GUARANTEES[shown.guarantee],
        payload=_bytes(shown.payload),
        priority=shown.priority,
        redelivery=intent_parts.redelivery(shown.redelivery),
        timeout_ms=shown.timeout_ms,
        lease_ms=shown.lease_ms,
        after=shown.after,
        **_group(shown),
        idempotency_key=shown.idempotency_key,
        tags=shown.tags,
        limits=[_limit_out(limit) for limit in shown.limits],
        shard_key=shown.shard_key,
        fairness_key=shown.fairness_key,
        fairness_weight=shown.fairness_weight,
        traceparent=shown.traceparent,
        attempts=shown.attempts,
        delivery=shown.delivery,
        revision=shown.revision,
        created_at_ms=_ms(shown.created_at),
        updated_at_ms=_ms(shown.updated_at),
        due_at_ms=_ms(shown.due_at),
        first_dispatch_at_ms=_ms(shown.first_dispatch_at),
        finished_at_ms=_ms(shown.finished_at),
        next_attempt_at_ms=_ms(shown.next_attempt_at),
        late_ms=shown.late_ms,
        limited_ms=shown.limited_ms,
        result=_bytes(shown.result),
        result_ttl_ms=shown.result_ttl_ms,
        result_gone=shown.result_gone,
        progress=intent_parts.progress(shown.progress),
    )
    if shown.callback is not None:
        message.callback.CopyFrom(intent_parts.callback(shown.callback))
    elif shown.task is not None:
        message.task.CopyFrom(pb.Task(name=shown.task.name, queue=shown.task.queue))
    elif shown.entity is not None:
        entity = shown.entity
        message.entity.CopyFrom(pb.Entity(type=entity.type, id=entity.id, message=entity.message))
    elif shown.stream is not None:
        message.stream.CopyFrom(pb.Stream(name=shown.stream.name))
    if shown.slo is not None:
        message.slo.CopyFrom(
            pb.Slo(
                max_tardiness_ms=shown.slo.max_tardiness_ms,
                reliability=_GUARANTEES[shown.slo.reliability],
                tier=TIERS[shown.slo.tier],
                reason=shown.slo.reason,
            )
        )
    if shown.last_error is not None:
        message.last_error.CopyFrom(_last_error(shown.last_error))
    claims.show(message, shown)
    return message


def _last_error(error: ErrorOut) -> pb.LastError:
    return pb.LastError(
        at_ms=_ms(error.at),
        delivery=error.delivery,
        kind=error.kind,
        message=error.message,
        http_status=error.http_status,
    )
