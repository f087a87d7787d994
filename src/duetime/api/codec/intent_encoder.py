"""Intents as the JSON of the API.

The part from the terms is encoded once for all intents that share them. Lists and batches, with thousands of
intents, are encoded directly from the kernel's intents, without a view.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw, defstruct
from msgspec.structs import replace

from duetime.api.access.auth import sees_headers
from duetime.bounded_cache import BoundedCache
from duetime.json_types import Json
from duetime.limits import TERMS_JSON_BYTES_MAX, TERMS_KEPT
from duetime.protocol.intent import ACKED, SCHEDULED, Intent, Rare, Ties
from duetime.protocol.terms import Callback, Terms
from duetime.protocol.view import View, limited_ms, view_of
from duetime.timefmt import iso, iso_or_none
from duetime.wire import claims, terms, views
from duetime.wire.intent import OWN, BriefIntent
from duetime.wire.names import camel
from duetime.wire.shapes import written

_HIDDEN: Final = "***"
_NO_RARE: Final = Rare()
_NO_TIES: Final = (None, None, None, None, None, None)
_NO_HEADERS: Final[dict[str, str]] = {}

_encode = msgspec.json.Encoder().encode
# The fields of an intent that do not come from its terms, in their order.
_Own: Any = defstruct("_Own", [(name, Any) for name in OWN], frozen=True, rename="camel", gc=False)
# A template for new intents without unusual fields, which most are.
_NEW: Final = {
    "intent_id": "%b", "status": SCHEDULED.name, "execute_at": "%b", "payload": Raw(b"%b"), "after": (),
    "headers": {}, "attempts": 0, "delivery": 0, "revision": 1, "created_at": "%b", "updated_at": "%b",
    "next_attempt_at": "%b", "limited_ms": 0, "result_gone": False,
}  # fmt: skip
_FORM: Final = _encode(_Own(**(dict.fromkeys(OWN) | _NEW)))[:-1] + b",%b"


@lru_cache(maxsize=4096)
def _letters(at_ms: int) -> bytes:
    return iso(at_ms).encode()


class IntentEncoder:
    """Encodes intents, and caches the JSON of their terms."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self._fields = BoundedCache[int, tuple[Terms, Json]](TERMS_KEPT)
        self._texts = BoundedCache[int, tuple[Terms, bytes]](TERMS_KEPT)

    def view(self, view: View) -> Raw:
        """The JSON of an intent, from its view."""
        own = _encode(_Own(**views.own(view, written, Raw)))
        return Raw(b"%b,%b" % (own[:-1], self._text(view.terms)))

    def intent(self, intent: Intent) -> Raw:
        """The same from the kernel's intent, in a third of the time."""
        status = intent.status
        if intent.rare is None and intent.revision == 1 and status is SCHEDULED and not intent.deadline_ms:
            return self._new(intent)
        if status is ACKED and intent.terms.result_ttl_ms:
            return self.view(view_of(intent, self._now_ms()))
        rare = intent.rare if intent.rare is not None else _NO_RARE
        claim = claims.shown(None if rare.ties is None else rare.ties.claim)
        # Positional arguments in the order of OWN: keywords would take a third of the time.
        own = _encode(
            _Own(
                intent.id,
                status.name,
                iso(intent.execute_at_ms),
                iso_or_none(intent.deadline_ms),
                Raw(intent.payload) if intent.payload else None,
                rare.after,
                *(_NO_TIES if rare.ties is None else _ties(rare, rare.ties)),
                rare.key,
                claim["collapse_key"],
                claim["collapse"],
                claim["unique"],
                rare.traceparent,
                rare.headers or _NO_HEADERS,
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
                views.last_error(rare.last_error, written),
                Raw(rare.result) if rare.result is not None else None,
                False,
                None,
            )
        )
        return Raw(b"%b,%b" % (own[:-1], self._text(intent.terms)))

    def _new(self, intent: Intent) -> Raw:
        created_at, execute_at = _letters(intent.created_at_ms), _letters(intent.execute_at_ms)
        return Raw(
            _FORM
            % (
                intent.id.encode(), execute_at, intent.payload or b"null", created_at, created_at, execute_at,
                self._text(intent.terms),
            )
        )  # fmt: skip

    @staticmethod
    def brief(intent: Intent) -> BriefIntent:
        """The JSON of an intent for a request with `Prefer: return=minimal`."""
        return BriefIntent(
            intent_id=intent.id,
            status=views.STATUSES[intent.status],
            execute_at=written(intent.execute_at_ms),
            revision=intent.revision,
        )

    def terms(self, of: Terms) -> Json:
        """The fields that come from these terms, for the current caller."""
        fields = self._of_terms(of)
        if not _has_headers(of) or sees_headers():
            return fields
        callback = fields["callback"]
        hidden = dict.fromkeys(callback.headers, _HIDDEN)  # they may contain secrets
        return {**fields, "callback": replace(callback, headers=hidden)}

    def _text(self, of: Terms) -> bytes:
        """The same fields as the end of a JSON object."""
        kept = self._texts.get(id(of))
        if kept is not None:
            return kept[1]
        text = _encode({camel(name): value for name, value in self.terms(of).items()})[1:]
        # Not cached with a callback: its body is large, and its headers depend on the caller.
        if len(text) <= TERMS_JSON_BYTES_MAX and not _has_headers(of):
            self._texts.keep(id(of), (of, text))
        return text

    def _of_terms(self, of: Terms) -> Json:
        kept = self._fields.get(id(of))
        if kept is not None:
            return kept[1]
        fields = terms.shown(of, Raw)
        self._fields.keep(id(of), (of, fields))
        return fields


def _ties(
    rare: Rare, ties: Ties
) -> tuple[int | None, str | None, str | None, int | None, int | None, int | None]:
    """The delay after its dependencies, the argument from them, the group of an intent, its size, and the
    numbers of joined and of unfinished members."""
    delay_ms, first = ties.delay_ms or None, ties.first.name if ties.first else None
    if not ties.members:
        return delay_ms, first, ties.group, None, None, None
    return delay_ms, first, ties.group, ties.members, rare.joined, rare.waiting


def _has_headers(of: Terms) -> bool:
    return type(of.target) is Callback and bool(of.target.headers)
