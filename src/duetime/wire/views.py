"""Converts the engine's intents and schedules into the form that users see.

All readers get the same fields. `At` decides the form of times: text in JSON (`shapes.written`), datetimes in
Python, milliseconds in gRPC. `document` does the same for JSON: encoded or decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from duetime.protocol import intent as kernel
from duetime.protocol import view as protocol
from duetime.protocol.effect import Change
from duetime.protocol.schedule import Timetable
from duetime.protocol.terms import Task, title_of
from duetime.wire import claims
from duetime.wire import terms as wire_terms
from duetime.wire.history import Entry
from duetime.wire.intent import Intent, LastError, Planned, Status
from duetime.wire.progress import Progress
from duetime.wire.schedule import Schedule
from duetime.wire.shapes import At

Document = Callable[[bytes], Any]

# Transitions that an error may have caused.
_WITH_ERROR = frozenset((kernel.SCHEDULED, kernel.DEAD_LETTERED, kernel.EXPIRED))
STATUSES: Final = {status: Status[status.name] for status in kernel.Status}


class Ended(Struct, frozen=True):
    """The end of an intent. Most callers need only the result."""

    status: Status
    result: bytes | None
    """The undecoded result, to be decoded as the return type of the function."""
    result_gone: bool
    show: Callable[[], Intent]
    """Creates the whole intent."""


def decoded(document: bytes) -> Any:
    """A JSON document as Python values. A document that is nested too deeply stays encoded."""
    try:
        return msgspec.json.decode(document)
    except RecursionError:
        return Raw(document)


def intent(view: protocol.View, at: At, document: Document, shared: dict[str, Any] | None = None) -> Intent:
    """An intent with all fields. `shared`: the fields of its terms, if they were created before."""
    if shared is None:
        shared = wire_terms.shown(view.terms, document)
    return Intent(**own(view, at, document), **shared)


def own(view: protocol.View, at: At, document: Document) -> dict[str, Any]:
    """The fields that an intent shares with no other."""
    group = view.members > 0
    return {
        "intent_id": view.id,
        "status": STATUSES[view.status],
        "execute_at": at(view.execute_at_ms),
        "deadline": _or_none(at, view.deadline_ms),
        "payload": document(view.payload) if view.payload else None,
        "after": view.after,
        "after_delay_ms": view.after_delay_ms or None,
        "first_argument": view.first_argument,
        "group": view.group,
        "members": view.members if group else None,
        "joined": view.joined if group else None,
        "left": view.left if group else None,
        "idempotency_key": view.key,
        **claims.shown(view.claim),
        "traceparent": view.traceparent,
        "headers": view.headers or {},
        "attempts": view.attempts,
        "delivery": view.delivery,
        "revision": view.revision,
        "created_at": at(view.created_at_ms),
        "updated_at": at(view.updated_at_ms),
        "due_at": _or_none(at, view.due_at_ms),
        "first_dispatch_at": _or_none(at, view.first_dispatch_at_ms),
        "finished_at": _or_none(at, view.finished_at_ms),
        "next_attempt_at": _or_none(at, view.next_attempt_at_ms),
        "late_ms": view.late_ms,
        "limited_ms": view.limited_ms,
        "last_error": last_error(view.last_error, at),
        "result": document(view.result) if view.result is not None else None,
        "result_gone": view.result_gone,
        "progress": _progress(view.progress, at),
    }


def last_error(error: kernel.Error | None, at: At) -> LastError | None:
    """The last error of an intent."""
    if error is None:
        return None
    return LastError(
        at=at(error.at_ms),
        delivery=error.delivery,
        kind=error.kind,
        message=error.message,
        http_status=error.http_status or None,
    )


def entry(step: kernel.Entry, at: At) -> Entry:
    """One state transition of an intent's history."""
    return Entry(at=at(step.at_ms), status=STATUSES[step.status], delivery=step.delivery, note=step.note)


def transition(change: Change, intent: kernel.Intent | None, at: At) -> dict[str, Any]:
    """The fields of a transition, for `EventBody` and `Transition`. `intent`: None if it no longer exists."""
    fields: dict[str, Any] = {
        "intent_id": change.id,
        "status": STATUSES[change.new],
        "previous_status": None if change.old is None else STATUSES[change.old],
        "at": at(change.at_ms),
        "delivery": change.delivery,
    }
    if intent is None:
        return fields
    error, terms = _error_of(change, intent), intent.terms
    target = terms.target
    return {
        **fields,
        "attempts": intent.attempt,
        "precision_tier": terms.tier.name,
        "lane": terms.lane,
        "late_ms": intent.late_ms if intent.late_ms >= 0 else None,
        "limited_ms": protocol.limited_ms(intent, change.at_ms) if intent.limited_ms else 0,
        "error": error.message if error is not None else None,
        "error_kind": error.kind if error is not None else None,
        "task": title_of(target),
        "queue": target.queue if isinstance(target, Task) else "",
        "tags": terms.tags or {},
    }


def _error_of(change: Change, intent: kernel.Intent) -> kernel.Error | None:
    """The error that caused this transition. The error of an earlier attempt belongs to an earlier event."""
    error = intent.rare.last_error if intent.rare is not None else None
    if error is None or change.old is kernel.DEAD_LETTERED or change.new not in _WITH_ERROR:
        return None
    return error if (error.at_ms, error.delivery) == (change.at_ms, change.delivery) else None


def schedule(table: Timetable, at: At, document: Document, shared: dict[str, Any] | None = None) -> Schedule:
    """The current state of a schedule. `shared`: the fields of its terms, if they were created before."""
    rule = table.schedule
    fields = dict(wire_terms.shown(rule.terms, document) if shared is None else shared)
    del fields["after_on"]
    names: Any = {"overlap": rule.overlap.name, "misfire": rule.misfire.name}
    return Schedule(
        id=table.id,
        cron=rule.cron or None,
        every_ms=rule.every_ms or None,
        zone=rule.zone,
        jitter_ms=rule.jitter_ms,
        start=_or_none(at, rule.start_ms),
        end=_or_none(at, rule.end_ms),
        **names,
        catch_up=rule.catch_up,
        source=rule.source,
        skip=list(rule.skip),
        orphan=rule.orphan,
        intent=Planned(payload=document(rule.payload) if rule.payload else None, **fields),
        paused=table.paused,
        next_at=None if table.paused else _or_none(at, table.next_ms),
        last_at=_or_none(at, table.newest_ms),
        last_intent_id=table.last_id or None,
        queued_at=_or_none(at, table.queued_ms),
        made=table.made,
        skipped=table.skipped,
        missed=table.missed,
        refused=table.refused or None,
        revision=table.revision,
        created_at=at(table.created_at_ms),
        updated_at=at(table.updated_at_ms),
    )


def _progress(progress: protocol.Progress | None, at: At) -> Progress | None:
    if progress is None:
        return None
    return Progress(done=progress.done, total=progress.total, note=progress.note, at=at(progress.at_ms))


def _or_none(at: At, at_ms: int) -> datetime | None:
    return at(at_ms) if at_ms else None
