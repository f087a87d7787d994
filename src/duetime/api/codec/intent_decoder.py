"""Converts requests into the types of the engine: terms, items, commands. Checks rules that a Struct cannot
express.

Terms are created once for all requests with the same values (a batch on the log shares them), and cached for
a while.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from operator import attrgetter
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from duetime.api.access.auth import check_target, own_lanes
from duetime.api.codec import times
from duetime.bounded_cache import BoundedCache
from duetime.channels.webhook.addresses import problem_with
from duetime.channels.webhook.calls import BODILESS
from duetime.client.app.ids import Ids
from duetime.errors import BadTarget, BadUrl, InvalidField, TimeMissing, TooLarge, UnknownTier
from duetime.json_types import Json
from duetime.limits import PAYLOAD_BYTES_MAX, TERMS_KEPT, TERMS_KEPT_BYTES_MAX, TIME_MS_MAX
from duetime.protocol import bounds
from duetime.protocol import terms as stored
from duetime.protocol.command import Patch, Revive
from duetime.protocol.first_argument import FirstArgument
from duetime.protocol.intent import Item, Ties
from duetime.protocol.terms import (
    ACK_BY_TIER,
    AckLevel,
    Callback,
    Entity,
    ExpiredAction,
    Guarantee,
    OnDuplicate,
    OnInterrupt,
    Stream,
    Target,
    Task,
    Terms,
    Tier,
    lane_of,
)
from duetime.wire import claims, rates
from duetime.wire import terms as wire_terms
from duetime.wire.intent import (
    CallbackIn,
    NewIntent,
    PatchIntent,
    PlannedIntent,
    Redelivery,
    ReviveIntent,
)
from duetime.wire.slo import choose

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# Headers that define where a message ends; callers cannot set them.
_FRAMING: Final = frozenset(
    {"content-length", "transfer-encoding", "connection", "host", "upgrade", "te", "trailer"}
)
_LIVE: Final = OnDuplicate.LIVE
_NO_ARGUMENT: Final = FirstArgument.NONE
_TERMS: Final = [name for name in NewIntent.__struct_fields__ if name not in wire_terms.OWN_SENT]
said_terms: Final = attrgetter(*_TERMS)
"""The values of a request that decide its terms: equal values have equal terms."""
_UNHASHABLE: Final = frozenset({"callback", "task", "entity", "stream", "tags", "limits"})
_hashable_terms: Final = attrgetter(*(name for name in _TERMS if name not in _UNHASHABLE))

_plain_callback: Final = attrgetter(
    *(name for name in CallbackIn.__struct_fields__ if name not in ("headers", "body"))
)


class Defaults(Struct, frozen=True, kw_only=True):
    """Defaults of an intent."""

    tier: Tier = Tier.STANDARD
    payload_bytes_max: int = PAYLOAD_BYTES_MAX


class Composer:
    """Converts requests into terms and items."""

    def __init__(self, defaults: Defaults, priority_of: Callable[[str], int] = lambda lane: 0) -> None:
        """`priority_of` returns the default priority of a lane. It may change at any time."""
        self._defaults = defaults
        self._priority_of = priority_of
        self._terms = BoundedCache[tuple[object, ...], Terms](TERMS_KEPT, TERMS_KEPT_BYTES_MAX)
        self._ids = Ids()

    def item(self, new: NewIntent, terms: int, now_ms: int, request: str | None = None) -> Item:
        """The item of a new intent. `terms` is the index of its terms; `request` is the request id, so that
        the request can be repeated."""
        both = new.execute_at is not None
        if both == (new.delay_ms is not None) and (both or new.after_delay_ms is None):
            text = (
                "Both executeAt and delayMs are given." if both else "There is no executeAt and no delayMs."
            )
            raise TimeMissing(text, hint="Give exactly one of executeAt and delayMs.", path="$")
        relative = new.execute_at is None
        execute_at_ms = (
            now_ms + (new.delay_ms or 0)
            if new.execute_at is None
            else times.read(new.execute_at, "$.executeAt")
        )
        if execute_at_ms > TIME_MS_MAX:
            raise InvalidField("The time is out of range, at $.delayMs.", path="$.delayMs")
        if new.deadline is not None and new.expires_ms is not None:
            raise InvalidField(
                "Both deadline and expiresMs are given.", hint="Give one of them.", path="$.expiresMs"
            )
        payload = self._payload(new.payload)
        ties = _ties(new)
        # Positional arguments: this runs for every intent, and keywords would take a third of the time.
        item = Item(
            new.intent_id or self.id_for(now_ms, request),
            terms,
            execute_at_ms,
            payload,
            times.read(new.deadline, "$.deadline") if new.deadline is not None else 0,
            new.idempotency_key,
            _fingerprint(new, payload) if new.idempotency_key or request or new.group or new.members else 0,
            _LIVE if new.on_duplicate is None else OnDuplicate[new.on_duplicate.upper()],
            tuple(new.after) if new.after else (),
            new.traceparent,
            new.intent_id is None and request is None,
            relative,
            request,
            ties,
            0,
            new.headers or None,
        )
        bound = new.group is not None or new.members is not None
        bound |= new.after_delay_ms is not None or new.first_argument is not None
        problem = bounds.item(item) if bound else None
        if problem is not None:
            raise InvalidField(problem, path="$")
        return item

    def id_for(self, now_ms: int, request: str | None) -> str:
        """An id derived from the request id, so that a repeated request gives the same; or a new id."""
        return self._ids.new(now_ms) if request is None else _id_for(request)

    def planned(self, planned: PlannedIntent) -> tuple[Terms, bytes]:
        """The terms and the payload of a schedule's intents."""
        said = {name: getattr(planned, name) for name in planned.__struct_fields__}
        return self.terms(NewIntent(**said)), self._payload(planned.payload)

    def patch(self, id: str, patch: PatchIntent, revision: int, request: str | None = None) -> Patch:
        return Patch(
            id=id,
            revision=revision,
            execute_at_ms=None if patch.execute_at is UNSET else times.read(patch.execute_at, "$.executeAt"),
            deadline_ms=_deadline(patch.deadline),
            expired_action=None if patch.expired_action is UNSET else ExpiredAction[patch.expired_action],
            redelivery=None if patch.redelivery is UNSET else _retries(patch.redelivery),
            tags=None if patch.tags is UNSET else patch.tags,
            priority=None if patch.priority is UNSET else wire_terms.priority(patch.priority),
            payload=None if patch.payload is UNSET else self._payload(patch.payload),
            request=request,
        )

    def revive(self, id: str, revive: ReviveIntent, revision: int, request: str | None = None) -> Revive:
        return Revive(
            id=id,
            revision=revision,
            execute_at_ms=0 if revive.execute_at is None else times.read(revive.execute_at, "$.executeAt"),
            deadline_ms=_deadline(revive.deadline),
            target=None if revive.callback is None else _callback(revive.callback),
            redelivery=None if revive.redelivery is None else _retries(revive.redelivery),
            payload=None if revive.payload is UNSET else self._payload(revive.payload),
            request=request,
        )

    def _payload(self, payload: Raw | msgspec.UnsetType) -> bytes:
        if payload is UNSET:
            return b""
        body = bytes(payload)
        if len(body) > self._defaults.payload_bytes_max:
            raise TooLarge(
                f"The payload has {len(body)} bytes; {self._defaults.payload_bytes_max} are allowed.",
                path="$.payload",
            )
        return b"" if body == b"null" else body

    def terms(self, new: NewIntent) -> Terms:
        """The terms of this request: the same object for the same values."""
        key = (
            _target_key(new),
            tuple(sorted(new.tags.items())) if new.tags else None,
            tuple(new.limits) if new.limits else None,
            _hashable_terms(new),
        )
        terms = self._terms.get(key)
        if terms is None:
            terms = self._make_terms(new)
            size = len(terms.target.body or b"") if type(terms.target) is Callback else 0
            self._terms.keep(key, terms, size)
        check_target(terms.target)
        if new.priority is None and (priority := self._priority_of(terms.lane)):
            return replace(terms, priority=priority)
        return terms

    def _make_terms(self, new: NewIntent) -> Terms:
        target = _target(new)
        entity = type(target) is Entity
        guarantee = _guarantee(new, entity)
        tier, slo_ms = self._tier(new, guarantee)
        ack = ACK_BY_TIER[tier] if new.ack_level is None else AckLevel[new.ack_level]
        if ack is AckLevel.REPLICATED:
            raise InvalidField(bounds.NOT_REPLICATED, path="$.ackLevel")
        _check_fairness(new, entity)
        said = wire_terms.said(new)
        if new.redelivery is not None:
            said["redelivery"] = _retries(new.redelivery)
        if new.priority is not None:
            said["priority"] = wire_terms.priority(new.priority)
        if new.limits:
            said["limits"] = tuple(
                rates.stored(limit, f"$.limits[{number}].rate") for number, limit in enumerate(new.limits)
            )
        terms = Terms(
            target=target,
            lane=lane_of(target),
            tier=tier,
            ack=ack,
            guarantee=guarantee,
            on_interrupt=OnInterrupt.DEAD_LETTER
            if guarantee is Guarantee.AT_MOST_ONCE
            else OnInterrupt.RETRY,
            slo_ms=slo_ms,
            **said,
        )
        problem = bounds.terms(terms)
        if problem is not None:
            raise InvalidField(problem)
        return terms

    def _tier(self, new: NewIntent, guarantee: Guarantee) -> tuple[Tier, int]:
        if new.slo is not None:
            if new.precision_tier is not None:
                raise InvalidField(
                    "Both precisionTier and slo are given, at $.slo.", hint="Give one of them."
                )
            return choose(new.slo.max_tardiness_ms, guarantee)[0], new.slo.max_tardiness_ms
        if new.precision_tier is None:
            return self._defaults.tier, 0
        return tier_named(new.precision_tier, "$.precisionTier"), 0


def tier_named(name: str, place: str) -> Tier:
    """A tier by its name, in upper or lower case."""
    try:
        return Tier[name.upper()]
    except KeyError:
        raise UnknownTier(f"There is no tier {name[:32]!r}.", path=place) from None


def _id_for(request: str) -> str:
    """The id of an intent, derived from the request id: a repeated request gives the same, even after a
    restart."""
    return f"req-{blake2b(request.encode(), digest_size=16).hexdigest()}"


def _target_key(new: NewIntent) -> tuple[object, ...]:
    callback = new.callback
    if callback is None:
        return (new.task, new.entity, new.stream)
    body = None if callback.body is UNSET else bytes(callback.body)
    headers = tuple(callback.headers.items()) if callback.headers else None
    return (*_plain_callback(callback), headers, body, new.task, new.entity, new.stream)


def _target(new: NewIntent) -> Target:
    given = [each for each in (new.callback, new.task, new.entity, new.stream) if each is not None]
    if len(given) != 1:
        raise BadTarget(
            f"{len(given)} targets are given; an intent needs exactly one.",
            hint="Give one of callback, task, entity, stream.",
            path="$",
        )
    if new.callback is not None:
        return _callback(new.callback)
    if new.task is not None:
        return Task(new.task.name, new.task.queue)
    if new.entity is not None:
        return Entity(new.entity.type, new.entity.id, new.entity.message)
    assert new.stream is not None
    return Stream(new.stream.name)


def _callback(callback: CallbackIn) -> Callback:
    problem = problem_with(callback.url)
    if problem is not None:
        raise BadUrl(problem, path="$.callback.url")
    problem = problem_with(callback.on_end) if callback.on_end else None
    if problem is not None:
        raise BadUrl(problem, path="$.callback.onEnd")
    if callback.parents and (callback.body is not UNSET or callback.method in BODILESS):
        raise InvalidField(
            "The parents are part of the default body, and this callback does not send it.",
            hint="Omit body, and use a method with a body, such as POST.",
            path="$.callback.parents",
        )
    for name, value in callback.headers.items():
        if not _HEADER.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidField(f"The header {name[:64]!r} cannot be sent.", path="$.callback.headers")
        if name.lower() in _FRAMING:
            raise InvalidField(f"The header {name} is set by Duetime itself.", path="$.callback.headers")
    return Callback(
        url=callback.url,
        method=callback.method,
        headers=callback.headers or None,
        body=None if callback.body is UNSET else _body(bytes(callback.body)),
        batch=callback.batch,
        parents=callback.parents,
        on_end=callback.on_end or "",
    )


def _body(raw: bytes) -> bytes:
    """The body as bytes: a string as its text, any other value as JSON."""
    return msgspec.json.decode(raw, type=str).encode() if raw.startswith(b'"') else raw


def _guarantee(new: NewIntent, entity: bool) -> Guarantee:
    said = new.guarantee
    if new.slo is not None:
        if said is not None and said != new.slo.reliability:
            raise InvalidField(
                "guarantee and slo.reliability contradict each other.",
                hint="Omit one of them.",
                path="$.guarantee",
            )
        said = new.slo.reliability
    return Guarantee[said or ("AT_MOST_ONCE" if entity else "AT_LEAST_ONCE")]


def _retries(policy: Redelivery) -> stored.Redelivery:
    if not 1 <= policy.multiplier <= 1000:
        raise InvalidField("The multiplier must be from 1 to 1000.", path="$.redelivery.multiplier")
    if policy.max_delay_ms < policy.initial_delay_ms:
        raise InvalidField("maxDelayMs is shorter than initialDelayMs.", path="$.redelivery.maxDelayMs")
    return wire_terms.retries(policy)


def _check_fairness(new: NewIntent, entity: bool) -> None:
    if new.fairness_weight is not None and new.fairness_key is None:
        raise InvalidField(
            "fairnessWeight is given without fairnessKey, at $.fairnessWeight.", path="$.fairnessWeight"
        )
    if new.fairness_key is not None and entity:
        raise InvalidField(
            "An entity runs one at a time, in order; its messages have no fairness key, at $.fairnessKey.",
            path="$.fairnessKey",
        )


def _ties(new: NewIntent) -> Ties | None:
    """The relations of an intent to others."""
    claim = None
    if new.unique is not None or new.collapse_key is not None or new.collapse is not None:
        claim = claims.read(new.collapse_key, new.collapse, new.unique)
    first = _NO_ARGUMENT if new.first_argument is None else _first_argument(new, new.first_argument)
    delay_ms = new.after_delay_ms or 0
    if claim is None and new.group is None and new.members is None and not delay_ms and not first:
        return None
    return Ties(claim, new.group, new.members or 0, own_lanes(), delay_ms, first)


def _first_argument(new: NewIntent, name: str) -> FirstArgument:
    if new.task is None and new.entity is None:
        raise InvalidField(
            "Only a function has arguments, at $.firstArgument.",
            hint="For a webhook, set callback.parents.",
            path="$.firstArgument",
        )
    return FirstArgument[name]


def _deadline(deadline: str | int | float | msgspec.UnsetType | None) -> int | None:
    """The deadline of a patch: None keeps it, 0 removes it."""
    if deadline is UNSET:
        return None
    return 0 if deadline is None else times.read(deadline, "$.deadline")


# Fingerprints are stored, so a field that is added later must not change those of requests without it: it
# counts only if it is given. The fields of the first version always count.
_FIRST_FIELDS: Final = frozenset(
    (
        "callback",
        "task",
        "entity",
        "stream",
        "payload",
        "precisionTier",
        "slo",
        "ackLevel",
        "guarantee",
        "expiredAction",
        "priority",
        "redelivery",
        "timeoutMs",
        "leaseMs",
        "resultTtlMs",
        "tags",
        "limits",
        "fairnessKey",
        "fairnessWeight",
        "shardKey",
        "intentId",
        "executeAt",
        "delayMs",
        "deadline",
        "after",
        "afterOn",
        "group",
        "members",
        "idempotencyKey",
        "collapseKey",
        "collapse",
        "unique",
        "traceparent",
    )
)
_FIRST_PARTS: Final = frozenset(
    (
        "url",
        "method",
        "headers",
        "body",
        "batch",
        "name",
        "queue",
        "type",
        "id",
        "message",
        "maxTardinessMs",
        "reliability",
        "maxAttempts",
        "backoff",
        "initialDelayMs",
        "maxDelayMs",
        "multiplier",
        "jitter",
        "key",
        "rate",
        "burst",
        "concurrency",
        "until",
        "forMs",
    )
)
_PARTS: Final = ("callback", "task", "entity", "stream", "slo", "redelivery", "unique")


def _counted(fields: Json, first: frozenset[str]) -> Json:
    return {name: value for name, value in fields.items() if name in first or value}


def _fields(new: NewIntent) -> Json:
    """The fields of a request that its fingerprint covers."""
    said: Json = _counted(msgspec.to_builtins(new, builtin_types=(Raw,)), _FIRST_FIELDS)
    said.pop("onDuplicate", None)
    for name in _PARTS:
        if said[name] is not None:
            said[name] = _counted(said[name], _FIRST_PARTS)
    if said["limits"] is not None:
        said["limits"] = [_counted(each, _FIRST_PARTS) for each in said["limits"]]
    return said


def _fingerprint(new: NewIntent, payload: bytes) -> int:
    """A fingerprint that is the same for equal JSON, regardless of its notation."""
    said = _fields(new)
    meant = dict(said)
    try:
        if payload:
            meant["payload"] = _meaning(payload)
        if new.callback is not None and new.callback.body is not UNSET:
            meant["callback"] = {**said["callback"], "body": _meaning(new.callback.body)}
        body = msgspec.json.encode(meant, order="deterministic")
    except RecursionError:  # nested too deeply to be decoded: compare its bytes
        body = msgspec.json.encode(said, order="deterministic")
    return int.from_bytes(blake2b(body, digest_size=6).digest(), "big")


def _meaning(raw: bytes | Raw) -> object:
    """Decode JSON. A number that is too large is kept as text."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return bytes(raw).decode()
