"""Converts the types of the protocol to the JSON of the API, for an `App` on a server."""

from __future__ import annotations

from msgspec import Raw

from duetime.errors import BadTarget, InvalidField
from duetime.json_types import Json
from duetime.protocol.command import LaneSettings, Patch, Revive
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Item, Ties
from duetime.protocol.terms import (
    ACK_BY_TIER,
    Callback,
    Claim,
    Entity,
    Guarantee,
    OnDuplicate,
    OnInterrupt,
    Redelivery,
    Stream,
    Target,
    Task,
    Terms,
)
from duetime.timefmt import iso, moment_of
from duetime.wire import rates
from duetime.wire import terms as wire_terms
from duetime.wire.names import camel


def terms_fields(terms: Terms) -> Json:
    """The fields of an intent's terms for the API."""
    if terms.guarantee is Guarantee.AT_LEAST_ONCE and terms.on_interrupt is not OnInterrupt.RETRY:
        raise InvalidField(
            "A server always retries an interrupted at-least-once intent.",
            hint="Use guarantee='AT_MOST_ONCE', or omit on_interrupt.",
        )
    fields: Json = {"precisionTier": terms.tier.name, **_target_fields(terms.target)}
    # Defaults are omitted from the request: a batch would repeat them for each intent.
    if terms.ack is not ACK_BY_TIER[terms.tier]:
        fields["ackLevel"] = terms.ack.name
    if terms.guarantee is not Guarantee.AT_LEAST_ONCE or isinstance(terms.target, Entity):
        fields["guarantee"] = terms.guarantee.name
    if terms.redelivery != Redelivery():
        fields["redelivery"] = wire_terms.retries_shown(terms.redelivery)
    if terms.priority:
        fields["priority"] = terms.priority
    if terms.limits:
        fields["limits"] = [rates.limit(each) for each in terms.limits]
    if terms.slo_ms:
        del fields["precisionTier"]
        fields["slo"] = {"maxTardinessMs": terms.slo_ms, "reliability": terms.guarantee.name}
    for field in wire_terms.PLAIN:
        value = getattr(terms, field.stored)
        if value != field.default:
            fields[camel(field.name)] = field.shown(value)
    return fields


def item_fields(item: Item, asked_ms: int) -> Json:
    """The fields of one intent for the API. A delay is sent as a delay, relative to the server's clock."""
    fields: Json = {}
    # A generated id makes the request safe to repeat, even if the server has forgotten the request id. With a
    # key the id is omitted: it would differ between two requests.
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
        fields |= _ties_fields(item.ties)
    if item.traceparent is not None:
        fields["traceparent"] = item.traceparent
    if item.headers is not None:
        fields["headers"] = item.headers
    return fields


def _ties_fields(ties: Ties) -> Json:
    return {
        "group": ties.group,
        "members": ties.members or None,
        "afterDelayMs": ties.delay_ms or None,
        "firstArgument": ties.first.name if ties.first else None,
    }


def _claim_fields(claim: Claim) -> Json:
    if claim.collapses:
        return {"collapseKey": claim.key, "collapse": claim.until.name}
    said: Json = {"key": claim.key, "until": claim.until.name}
    return {"unique": said | {"forMs": claim.for_ms} if claim.for_ms else said}


def patch_fields(patch: Patch) -> Json:
    """The changed fields; omitted fields are unchanged."""
    fields = _change_fields(patch)
    if patch.expired_action is not None:
        fields["expiredAction"] = patch.expired_action.name
    if patch.tags is not None:
        fields["tags"] = patch.tags
    if patch.priority is not None:
        fields["priority"] = patch.priority
    return fields


def revive_fields(revive: Revive) -> Json:
    """The changed fields of a revived intent."""
    fields = _change_fields(revive)
    if revive.target is not None:
        if not isinstance(revive.target, Callback):
            raise BadTarget("Only a callback can replace a target.", hint="Omit the target.")
        fields |= _target_fields(revive.target)
    return fields


def _change_fields(change: Patch | Revive) -> Json:
    fields: Json = {}
    if change.execute_at_ms:
        fields["executeAt"] = iso(change.execute_at_ms)
    if change.deadline_ms is not None:
        fields["deadline"] = iso(change.deadline_ms) if change.deadline_ms else None
    if change.redelivery is not None:
        fields["redelivery"] = wire_terms.retries_shown(change.redelivery)
    if change.payload is not None:
        fields["payload"] = Raw(change.payload) if change.payload else None
    return fields


def lane_fields(settings: LaneSettings) -> Json:
    """The settings of a lane for the API: all of them, because all are replaced."""
    return {
        "concurrency": settings.concurrency or None,
        "rate": rates.shown(settings.rate, settings.period_ms),
        "burst": settings.burst,
        "pendingMax": settings.pending_max or None,
        "priority": settings.priority,
        "order": settings.order.name,
    }


def _target_fields(target: Target) -> Json:
    match target:
        case Task(name, queue):
            return {"task": {"name": name, "queue": queue}}
        case Entity(kind, id, message):
            return {"entity": {"type": kind, "id": id, "message": message}}
        case Stream(name):
            return {"stream": {"name": name}}
        case Callback(url, method, headers, body, batch, parents, on_end):
            said: Json = {"url": url, "method": method, "headers": headers or {}, "batch": batch}
            if parents:
                said["parents"] = True
            if on_end:
                said["onEnd"] = on_end
            if body is not None:
                said["body"] = body.decode()
            return {"callback": said}
    raise BadTarget(
        "A bare intent has no target, and a server has no default handler for it.",
        hint="Schedule a task or a message to an entity; `Client.create` takes callbacks and streams too.",
    )


def filter_fields(filter: Filter) -> Json:
    """A filter with the names of the client's keywords."""
    fields: Json = {name: getattr(filter, name) for name in ("queue", "task", "entity")}
    if filter.statuses:
        fields["status"] = [status.name for status in filter.statuses]
    if filter.tier is not None:
        fields["tier"] = filter.tier.name
    if filter.tags:
        fields["tags"] = filter.tags
    for name, at_ms in (("since", filter.from_ms), ("until", filter.to_ms)):
        if at_ms is not None:
            fields[name] = moment_of(at_ms)
    return fields
