"""The words of the protocol as the JSON of the API, and back: how an `App` speaks with a server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from duetime.client.app import limit
from duetime.client.app.times import moment_ms
from duetime.client.http import models
from duetime.errors import BadTarget, InvalidField
from duetime.protocol.command import LaneSettings, Patch, Revive
from duetime.protocol.effect import Change
from duetime.protocol.intent import Entry, Error, Item, Status
from duetime.protocol.terms import (
    ACK_BY_TIER,
    AckLevel,
    AfterOn,
    Backoff,
    Bare,
    Callback,
    Claim,
    Entity,
    ExpiredAction,
    Guarantee,
    OnDuplicate,
    OnInterrupt,
    Redelivery,
    Stream,
    Target,
    Task,
    Terms,
    Tier,
    Until,
    lane_of,
)
from duetime.protocol.view import Parent, Progress, View
from duetime.timefmt import iso


class RawCallback(models.Callback, frozen=True):
    """A webhook whose body is left as it was written."""

    body: Raw = Raw()


class RawIntent(models.Intent, frozen=True, kw_only=True):
    """An intent whose payload and result are left as they were written."""

    callback: RawCallback | None = None
    payload: Raw = Raw()
    result: Raw = Raw()


class RawPlanned(models.Planned, frozen=True):
    """What a schedule makes, its payload left as it was written."""

    callback: RawCallback | None = None
    payload: Raw = Raw()


class RawPage(msgspec.Struct, rename="camel"):
    """A page of them."""

    items: list[RawIntent]
    next_cursor: str | None = None


class RawParent(msgspec.Struct, rename="camel"):
    """One of those an intent came after, its result left as it was written."""

    intent_id: str
    status: str | None = None
    result: Raw = Raw()


class RawParents(msgspec.Struct, rename="camel"):
    """A page of them."""

    items: list[RawParent]


_USUAL = Terms(Bare(), "bare:")

# Out.


def terms_fields(terms: Terms) -> dict[str, Any]:
    """What the API is told of an intent's terms."""
    if terms.guarantee is Guarantee.AT_LEAST_ONCE and terms.on_interrupt is not OnInterrupt.RETRY:
        raise InvalidField(
            "A server always retries an interrupted at-least-once intent.",
            hint="Use guarantee='AT_MOST_ONCE', or omit on_interrupt.",
        )
    fields: dict[str, Any] = {"precisionTier": terms.tier.name, **_target_fields(terms.target)}
    # Defaults are omitted from the request: a batch would repeat them for each intent.
    if terms.ack is not ACK_BY_TIER[terms.tier]:
        fields["ackLevel"] = terms.ack.name
    if terms.guarantee is not _USUAL.guarantee or isinstance(terms.target, Entity):
        fields["guarantee"] = terms.guarantee.name
    if terms.redelivery != _USUAL.redelivery:
        fields["redelivery"] = _redelivery_fields(terms.redelivery)
    if terms.timeout_ms != _USUAL.timeout_ms:
        fields["timeoutMs"] = terms.timeout_ms
    if terms.lease_ms != _USUAL.lease_ms:
        fields["leaseMs"] = terms.lease_ms
    if terms.expired_action is not _USUAL.expired_action:
        fields["expiredAction"] = terms.expired_action.name
    if terms.result_ttl_ms:
        fields["resultTtlMs"] = terms.result_ttl_ms
    if terms.after_on is AfterOn.END:
        fields["afterOn"] = "END"
    if terms.priority:
        fields["priority"] = terms.priority
    if terms.tags:
        fields["tags"] = terms.tags
    if terms.fairness_key is not None:
        fields |= {"fairnessKey": terms.fairness_key, "fairnessWeight": terms.fairness_weight}
    if terms.shard_key is not None:
        fields["shardKey"] = terms.shard_key
    if terms.limits:
        fields["limits"] = limit.fields(terms.limits)
    return fields


def item_fields(item: Item, asked_ms: int) -> dict[str, Any]:
    """What the API is told of one intent. A delay is sent as such: it is counted by the server's clock."""
    fields: dict[str, Any] = {}
    # An id of our own makes it safe to send again, even to a server that has forgotten the request. A key
    # does that too, and then the id must not differ from one asking to the next.
    if not (item.fresh and item.key is not None):
        fields["intentId"] = item.id
    if item.relative:
        fields["delayMs"] = max(0, item.execute_at_ms - asked_ms)
    else:
        fields["executeAt"] = iso(item.execute_at_ms)
    if item.deadline_ms:
        fields["deadline"] = iso(item.deadline_ms)
    if item.payload:
        fields["payload"] = Raw(item.payload)
    if item.key is not None:
        fields["idempotencyKey"] = item.key
    if item.on_duplicate is not OnDuplicate.LIVE:
        fields["onDuplicate"] = item.on_duplicate.name.lower()
    if item.ties is not None and item.ties.claim is not None:
        fields |= _claim_fields(item.ties.claim)
    if item.after:
        fields["after"] = item.after
    if item.ties is not None:
        fields |= {"group": item.ties.group, "members": item.ties.members or None}
    if item.traceparent is not None:
        fields["traceparent"] = item.traceparent
    return fields


def _claim_fields(claim: Claim) -> dict[str, Any]:
    if claim.collapses:
        return {"collapseKey": claim.key, "collapse": claim.until.name}
    said: dict[str, Any] = {"key": claim.key, "until": claim.until.name}
    return {"unique": said | {"forMs": claim.for_ms} if claim.for_ms else said}


def patch_fields(patch: Patch) -> dict[str, Any]:
    """What is to be changed; what is not named stays as it is."""
    fields = _change_fields(patch)
    if patch.expired_action is not None:
        fields["expiredAction"] = patch.expired_action.name
    if patch.tags is not None:
        fields["tags"] = patch.tags
    if patch.priority is not None:
        fields["priority"] = patch.priority
    return fields


def revive_fields(revive: Revive) -> dict[str, Any]:
    """What is to be different when it is tried again."""
    fields = _change_fields(revive)
    if revive.target is not None:
        if not isinstance(revive.target, Callback):
            raise BadTarget("Only a callback can replace a target.", hint="Omit the target.")
        fields |= _target_fields(revive.target)
    return fields


def _change_fields(change: Patch | Revive) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if change.execute_at_ms:
        fields["executeAt"] = iso(change.execute_at_ms)
    if change.deadline_ms is not None:
        fields["deadline"] = iso(change.deadline_ms) if change.deadline_ms else None
    if change.redelivery is not None:
        fields["redelivery"] = _redelivery_fields(change.redelivery)
    if change.payload is not None:
        fields["payload"] = Raw(change.payload) if change.payload else None
    return fields


def lane_fields(settings: LaneSettings) -> dict[str, Any]:
    """What the API is told of a lane's settings: all of them, for none is left as it was."""
    return {
        "concurrency": settings.concurrency or None,
        "rate": f"{settings.rate}/{settings.period_ms}ms" if settings.rate else None,
        "burst": settings.burst,
        "pendingMax": settings.pending_max or None,
        "priority": settings.priority,
        "order": settings.order.name,
    }


def _redelivery_fields(policy: Redelivery) -> dict[str, Any]:
    return {
        "maxAttempts": policy.max_attempts,
        "backoff": policy.backoff.name.lower(),
        "initialDelayMs": policy.initial_delay_ms,
        "maxDelayMs": policy.max_delay_ms,
        "multiplier": policy.multiplier_percent / 100,
        "jitter": policy.jitter,
    }


def _target_fields(target: Target) -> dict[str, Any]:
    match target:
        case Task(name, queue):
            return {"task": {"name": name, "queue": queue}}
        case Entity(kind, id, message):
            return {"entity": {"type": kind, "id": id, "message": message}}
        case Stream(name):
            return {"stream": {"name": name}}
        case Callback(url, method, headers, body, batch):
            said: dict[str, Any] = {"url": url, "method": method, "headers": headers or {}, "batch": batch}
            if body is not None:
                said["body"] = body.decode()
            return {"callback": said}
    raise BadTarget(
        "A bare intent has no target, and a server has no default handler for it.",
        hint="Schedule a task or a message to an entity; `Client.create` takes callbacks and streams too.",
    )


# Back.


def view_of(shown: RawIntent) -> View:
    """An intent as an App shows it."""
    error = shown.last_error
    return View(
        seq=0,
        id=shown.intent_id,
        status=Status[shown.status],
        terms=_terms_of(shown),
        payload=_body(shown.payload) or b"",
        execute_at_ms=moment_ms(shown.execute_at),
        deadline_ms=_millis(shown.deadline),
        created_at_ms=_millis(shown.created_at),
        updated_at_ms=_millis(shown.updated_at),
        attempts=shown.attempts,
        delivery=shown.delivery,
        revision=shown.revision,
        due_at_ms=_millis(shown.due_at),
        first_dispatch_at_ms=_millis(shown.first_dispatch_at),
        finished_at_ms=_millis(shown.finished_at),
        next_attempt_at_ms=_millis(shown.next_attempt_at),
        late_ms=shown.late_ms,
        limited_ms=shown.limited_ms,
        last_error=None
        if error is None
        else Error(moment_ms(error.at), error.delivery, error.kind, error.message, error.http_status or 0),
        result=_body(shown.result),
        key=shown.idempotency_key,
        after=tuple(shown.after or ()),
        traceparent=shown.traceparent,
        progress=_progress(shown.progress),
        result_gone=shown.result_gone,
        claim=_claim_of(shown),
        group=shown.group,
        members=shown.members or 0,
        joined=shown.joined or 0,
        left=shown.left or 0,
    )


def _progress(said: models.Progress | None) -> Progress | None:
    return None if said is None else Progress(said.done, said.total, said.note, moment_ms(said.at))


def _claim_of(shown: RawIntent) -> Claim | None:
    if shown.collapse_key is not None:
        return Claim(shown.collapse_key, Until[shown.collapse or "DEBOUNCE"])
    unique = shown.unique
    return None if unique is None else Claim(unique.key, Until[unique.until], unique.for_ms or 0)


def parents_of(shown: RawParents) -> list[Parent]:
    return [
        Parent(each.intent_id, None if each.status is None else Status[each.status], _body(each.result))
        for each in shown.items
    ]


def entry_of(entry: models.Entry) -> Entry:
    return Entry(moment_ms(entry.at), Status[entry.status], entry.delivery, entry.note or "")


def change_of(transition: models.Transition) -> Change:
    """A transition as observers of an App see it."""
    old = transition.previous_status
    return Change(
        transition.intent_id,
        None if old is None else Status[old],
        Status[transition.status],
        _millis(transition.at),
        transition.delivery,
    )


def planned_of(shown: RawPlanned) -> tuple[Terms, bytes]:
    """The terms and the payload of what a schedule makes."""
    return _terms_of(shown), _body(shown.payload) or b""


def _terms_of(shown: RawIntent | RawPlanned) -> Terms:
    target, policy = _target_of(shown), shown.redelivery
    once = shown.guarantee == "AT_MOST_ONCE"
    return Terms(
        target=target,
        lane=lane_of(target),
        tier=Tier[shown.precision_tier],
        ack=AckLevel[shown.ack_level],
        guarantee=Guarantee[shown.guarantee],
        on_interrupt=OnInterrupt.DEAD_LETTER if once else OnInterrupt.RETRY,
        redelivery=Redelivery(
            policy.max_attempts,
            Backoff[policy.backoff.upper()],
            policy.initial_delay_ms,
            policy.max_delay_ms,
            round(100 * policy.multiplier),
            policy.jitter,
        ),
        priority=shown.priority,
        timeout_ms=shown.timeout_ms,
        lease_ms=shown.lease_ms,
        result_ttl_ms=shown.result_ttl_ms or 0,
        expired_action=ExpiredAction[shown.expired_action],
        tags=shown.tags or None,
        shard_key=shown.shard_key,
        after_on=AfterOn[shown.after_on],
        fairness_key=shown.fairness_key,
        fairness_weight=shown.fairness_weight,
        limits=limit.kept(shown.limits or ()),
    )


def _target_of(shown: RawIntent | RawPlanned) -> Target:
    if shown.task is not None:
        return Task(shown.task.name, shown.task.queue)
    if shown.entity is not None:
        return Entity(shown.entity.type, shown.entity.id, shown.entity.message)
    if shown.stream is not None:
        return Stream(shown.stream.name)
    if shown.callback is None:
        raise InvalidField("The server shows an intent without a target this version knows.")
    hook = shown.callback
    body = _body(hook.body)
    if body is not None and body.startswith(b'"'):
        body = msgspec.json.decode(body, type=str).encode()  # text is sent as it is, not as JSON
    return Callback(hook.url, hook.method, hook.headers or None, body, hook.batch)


def _body(raw: Raw) -> bytes | None:
    """What was written; nothing and null are the same."""
    written = bytes(raw)
    return None if written in (b"", b"null") else written


def _millis(moment: datetime | None) -> int:
    return 0 if moment is None else moment_ms(moment)
