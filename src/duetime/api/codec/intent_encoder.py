"""An intent as the API shows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from duetime.api.access.auth import sees_headers
from duetime.api.codec import rates
from duetime.api.codec.brief import BriefIntentOut
from duetime.insight.advisor import choose
from duetime.protocol.intent import ACKED, SCHEDULED, Error, Intent, Rare, Ties
from duetime.protocol.terms import Callback, Entity, Redelivery, Stream, Task, Terms
from duetime.protocol.view import Progress, View, limited_ms, view_of
from duetime.timefmt import iso, iso_or_none
from duetime.wire import claims
from duetime.wire.claims import UniqueOut
from duetime.wire.intent import (
    CallbackOut,
    EntityOut,
    ErrorOut,
    IntentOut,
    LimitOut,
    RedeliveryOut,
    SloOut,
    StreamOut,
    TaskOut,
)
from duetime.wire.progress import ProgressOut

_KEPT = 4_096
_TEXT_MAX = 4_096
_HIDDEN = "***"

_encode = msgspec.json.Encoder().encode
_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(IntentOut)}
_NO_RARE = Rare()
_NO_GROUP = (None, None, None, None)


class _Own(Struct, frozen=True, rename="camel", gc=False):
    """What an intent does not share with others: `IntentOut` without what comes from its terms."""

    intent_id: str
    status: str
    execute_at: str
    deadline: str | None
    payload: Raw | None
    after: tuple[str, ...]
    group: str | None
    members: int | None
    joined: int | None
    left: int | None
    idempotency_key: str | None
    collapse_key: str | None
    collapse: str | None
    unique: UniqueOut | None
    traceparent: str | None
    attempts: int
    delivery: int
    revision: int
    created_at: str
    updated_at: str
    due_at: str | None
    first_dispatch_at: str | None
    finished_at: str | None
    next_attempt_at: str | None
    late_ms: int | None
    limited_ms: int
    last_error: ErrorOut | None
    result: Raw | None
    result_gone: bool = False
    progress: None = None


_MADE = _Own(
    intent_id="%b",
    status=SCHEDULED.name,
    execute_at="%b",
    deadline=None,
    payload=Raw(b"%b"),
    after=(),
    group=None,
    members=None,
    joined=None,
    left=None,
    idempotency_key=None,
    collapse_key=None,
    collapse=None,
    unique=None,
    traceparent=None,
    attempts=0,
    delivery=0,
    revision=1,
    created_at="%b",
    updated_at="%b",
    due_at=None,
    first_dispatch_at=None,
    finished_at=None,
    next_attempt_at="%b",
    late_ms=None,
    limited_ms=0,
    last_error=None,
    result=None,
)
_FORM = _encode(_MADE)[:-1] + b",%b"


@lru_cache(maxsize=4096)
def _letters(at_ms: int) -> bytes:
    return iso(at_ms).encode()


class Shower:
    """Shows intents. What comes from the terms is made once for all intents that share them."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self._parts: dict[int, tuple[Terms, dict[str, Any]]] = {}
        self._texts: dict[int, tuple[Terms, bytes]] = {}

    def written(self, intent: Intent) -> Raw:
        """An intent as JSON at once: where thousands are shown, a third of the time of showing each."""
        status = intent.status
        if intent.rare is None and intent.revision == 1 and status is SCHEDULED and not intent.deadline_ms:
            return self._new(intent)
        if status is ACKED and intent.terms.result_ttl_ms:
            return Raw(_encode(self(view_of(intent, self._now_ms()))))
        rare = intent.rare if intent.rare is not None else _NO_RARE
        claim = claims.shown(rare.ties)
        own = _encode(
            _Own(
                intent.id,
                status.name,
                iso(intent.execute_at_ms),
                iso_or_none(intent.deadline_ms),
                Raw(intent.payload) if intent.payload else None,
                rare.after,
                *(_NO_GROUP if rare.ties is None else _group(rare, rare.ties)),
                rare.key,
                claim.collapse_key,
                claim.collapse,
                claim.unique,
                rare.traceparent,
                intent.attempt,
                intent.delivery,
                intent.revision,
                iso(intent.created_at_ms),
                iso(intent.updated_at_ms),
                iso_or_none(intent.due_at_ms),
                iso_or_none(intent.first_dispatch_at_ms),
                iso_or_none(intent.finished_at_ms),
                iso_or_none(intent.wake_at_ms) if status is SCHEDULED else None,
                intent.late_ms if intent.late_ms >= 0 else None,
                limited_ms(intent, self._now_ms()) if intent.limited_ms else 0,
                _error(rare.last_error),
                Raw(rare.result) if rare.result is not None else None,
            )
        )
        return Raw(b"%b,%b" % (own[:-1], self._text(intent.terms)))

    def _new(self, intent: Intent) -> Raw:
        """One that was just made and says nothing unusual, as most are: a form filled in."""
        created_at, execute_at = _letters(intent.created_at_ms), _letters(intent.execute_at_ms)
        return Raw(
            _FORM
            % (
                intent.id.encode(), execute_at, intent.payload or b"null", created_at, created_at, execute_at,
                self._text(intent.terms),
            )
        )  # fmt: skip

    @staticmethod
    def brief(intent: Intent) -> BriefIntentOut:
        """The least that is worth knowing of a new intent."""
        return BriefIntentOut(
            intent_id=intent.id,
            status=intent.status.name,  # type: ignore[arg-type]  # the names are those of the Literal, tested
            execute_at=iso(intent.execute_at_ms),
            revision=intent.revision,
        )

    def _text(self, terms: Terms) -> bytes:
        """What comes from the terms, as the end of a JSON object."""
        kept = self._texts.get(id(terms))
        if kept is not None and kept[0] is terms:
            return kept[1]
        text = _encode({_NAMES[name]: value for name, value in self._of_terms(terms).items()})[1:]
        # A callback's body is not worth the memory; and what is shown of headers depends on who asks.
        if len(text) <= _TEXT_MAX and not _has_headers(terms):
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            self._texts[id(terms)] = (terms, text)
        return text

    def __call__(self, view: View) -> IntentOut:
        claim = claims.Shown(view.claim)
        return IntentOut(
            intent_id=view.id,
            status=view.status.name,  # type: ignore[arg-type]  # the names are those of the Literal, tested
            execute_at=iso(view.execute_at_ms),
            deadline=iso_or_none(view.deadline_ms),
            payload=Raw(view.payload) if view.payload else None,
            after=view.after,
            group=view.group,
            members=view.members or None,
            joined=view.joined if view.members else None,
            left=view.left if view.members else None,
            idempotency_key=view.key,
            collapse_key=claim.collapse_key,
            collapse=claim.collapse,
            unique=claim.unique,
            traceparent=view.traceparent,
            attempts=view.attempts,
            delivery=view.delivery,
            revision=view.revision,
            created_at=iso(view.created_at_ms),
            updated_at=iso(view.updated_at_ms),
            due_at=iso_or_none(view.due_at_ms),
            first_dispatch_at=iso_or_none(view.first_dispatch_at_ms),
            finished_at=iso_or_none(view.finished_at_ms),
            next_attempt_at=iso_or_none(view.next_attempt_at_ms),
            late_ms=view.late_ms,
            limited_ms=view.limited_ms,
            last_error=_error(view.last_error),
            result=Raw(view.result) if view.result is not None else None,
            result_gone=view.result_gone,
            progress=_progress(view.progress),
            **self._of_terms(view.terms),
        )

    def _of_terms(self, terms: Terms) -> dict[str, Any]:
        part = self._part(terms)
        return {**part, "callback": _without_headers(part["callback"])} if _hides_headers(terms) else part

    def _part(self, terms: Terms) -> dict[str, Any]:
        kept = self._parts.get(id(terms))
        if kept is not None and kept[0] is terms:
            return kept[1]
        if len(self._parts) >= _KEPT:
            self._parts.clear()
        part = {**_of_terms(terms), "after_on": terms.after_on.name}
        self._parts[id(terms)] = (terms, part)
        return part


def _group(rare: Rare, ties: Ties) -> tuple[str | None, int | None, int | None, int | None]:
    """What is shown of an intent's group."""
    if not ties.members:
        return ties.group, None, None, None
    return ties.group, ties.members, rare.joined, rare.waiting


def of_terms(terms: Terms) -> dict[str, Any]:
    """What is shown of an intent's terms to whoever asks just now."""
    part = _of_terms(terms)
    return part | {"callback": _without_headers(part["callback"])} if _hides_headers(terms) else part


def _hides_headers(terms: Terms) -> bool:
    """Whether these terms have headers that whoever asks just now may not see: they may hold secrets."""
    return _has_headers(terms) and not sees_headers()


def _has_headers(terms: Terms) -> bool:
    return type(terms.target) is Callback and bool(terms.target.headers)


def _without_headers(callback: CallbackOut) -> CallbackOut:
    """Their names, and nothing of their values."""
    return replace(callback, headers=dict.fromkeys(callback.headers, _HIDDEN))


def _of_terms(terms: Terms) -> dict[str, Any]:
    target = terms.target
    slo = None
    if terms.slo_ms:
        tier, reason = choose(terms.slo_ms, terms.guarantee)
        slo = SloOut(
            max_tardiness_ms=terms.slo_ms, reliability=terms.guarantee.name, tier=tier.name, reason=reason
        )
    return {
        "expired_action": terms.expired_action.name,
        "precision_tier": terms.tier.name,
        "slo": slo,
        "ack_level": terms.ack.name,
        "guarantee": terms.guarantee.name,
        "callback": _callback(target) if isinstance(target, Callback) else None,
        "task": TaskOut(name=target.name, queue=target.queue) if isinstance(target, Task) else None,
        "entity": (
            EntityOut(type=target.kind, id=target.id, message=target.message)
            if isinstance(target, Entity)
            else None
        ),
        "stream": StreamOut(name=target.name) if isinstance(target, Stream) else None,
        "priority": terms.priority,
        "redelivery": _redelivery(terms.redelivery),
        "timeout_ms": terms.timeout_ms,
        "lease_ms": terms.lease_ms,
        "result_ttl_ms": terms.result_ttl_ms or None,
        "tags": terms.tags or {},
        "limits": [
            LimitOut(
                key=limit.key,
                rate=rates.shown(limit.rate, limit.period_ms),
                burst=limit.burst,
                concurrency=limit.concurrency or None,
            )
            for limit in terms.limits or ()
        ],
        "fairness_key": terms.fairness_key,
        "fairness_weight": terms.fairness_weight,
        "shard_key": terms.shard_key,
    }


def _callback(callback: Callback) -> CallbackOut:
    return CallbackOut(
        url=callback.url,
        method=callback.method,
        headers=callback.headers or {},
        body=_body(callback.body),
        batch=callback.batch,
    )


def _body(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")
    except RecursionError:  # as deep as it could be read when it came, from a place less deep than this
        pass
    return Raw(body)


def _redelivery(policy: Redelivery) -> RedeliveryOut:
    return RedeliveryOut(
        max_attempts=policy.max_attempts,
        backoff=policy.backoff.name.lower(),
        initial_delay_ms=policy.initial_delay_ms,
        max_delay_ms=policy.max_delay_ms,
        multiplier=policy.multiplier_percent / 100,
        jitter=policy.jitter,
    )


def _error(error: Error | None) -> ErrorOut | None:
    if error is None:
        return None
    return ErrorOut(
        at=iso(error.at_ms),
        delivery=error.delivery,
        kind=error.kind,
        message=error.message,
        http_status=error.http_status or None,
    )


def _progress(progress: Progress | None) -> ProgressOut | None:
    if progress is None:
        return None
    return ProgressOut(done=progress.done, total=progress.total, note=progress.note, at=iso(progress.at_ms))
