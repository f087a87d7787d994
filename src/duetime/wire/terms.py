"""Converts the terms of an intent between requests, storage and responses.

A field with the same name and meaning in `wire.intent.Planned` and in `protocol.terms.Terms` is copied by
name (`CARRIED`) and not mentioned here. The others are mapped by hand, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import FieldInfo

from duetime.protocol import terms as stored
from duetime.protocol.terms import Guarantee, Terms
from duetime.wire import rates, slo
from duetime.wire.intent import (
    ACK_MEANINGS,
    PRIORITIES,
    Callback,
    ChosenSlo,
    EntityTarget,
    Intent,
    NewIntent,
    PlannedIntent,
    Redelivery,
    StreamTarget,
    TaskTarget,
)

# Names that differ.
STORED_NAMES: Final = {"precision_tier": "tier", "ack_level": "ack"}
_BY_HAND: Final = frozenset({"target", "lane", "redelivery", "limits", "priority"})
_DEFAULTS: Final = Terms(stored.Bare(), "bare:")


class Carried(Struct, frozen=True):
    """A field that is copied by name."""

    name: str
    """On the network."""
    stored: str
    """In `Terms`."""
    enum: type[IntEnum] | None
    default: Any
    """The stored value if the caller gives none."""
    empty: Any
    """The shown value if the stored one is None or 0. NODEFAULT: it is shown as it is."""

    def shown(self, value: Any) -> Any:
        """A stored value in the form of the API."""
        if self.enum is not None:
            return self.enum(value).name
        return value if value or self.empty is NODEFAULT else self.empty


def _empty(field: FieldInfo) -> Any:
    """What an answer has where there is nothing: null or an empty object, as its declaration says."""
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return None if field.default is None else NODEFAULT


def _carried() -> tuple[Carried, ...]:
    kinds = get_type_hints(Terms)
    empty = {field.name: _empty(field) for field in msgspec.structs.fields(Intent)}
    found: list[Carried] = []
    for name in NewIntent.__struct_fields__:
        at = STORED_NAMES.get(name, name)
        if at not in Terms.__struct_fields__ or at in _BY_HAND:
            continue
        kind, default = kinds[at], getattr(_DEFAULTS, at)
        enum = kind if isinstance(kind, type) and issubclass(kind, IntEnum) else None
        found.append(Carried(name, at, enum, default, empty[name]))
    return tuple(found)


CARRIED: Final = _carried()
# Fields that depend on other fields are set by the code that creates the terms.
_DECIDED: Final = frozenset({"tier", "ack", "guarantee"})
PLAIN: Final = tuple(field for field in CARRIED if field.stored not in _DECIDED)
OWN_SENT: Final = tuple(
    name
    for name in NewIntent.__struct_fields__
    if name == "payload"
    or (name not in PlannedIntent.__struct_fields__ and name not in {field.name for field in CARRIED})
)
"""The fields of a request that are not terms but belong to one intent."""


def said(new: Any) -> dict[str, Any]:
    """The fields of `Terms` in a request, by name."""
    found: dict[str, Any] = {}
    for field in PLAIN:
        value = getattr(new, field.name, None)
        if value is not None and value != {}:
            found[field.stored] = value if field.enum is None else field.enum[value]
    return found


def priority(given: int | str) -> int:
    """The head start in seconds."""
    return PRIORITIES[given] if isinstance(given, str) else given


def retries(policy: Redelivery) -> stored.Redelivery:
    """A retry policy in the stored form. The caller checks its bounds."""
    return stored.Redelivery(
        max_attempts=policy.max_attempts,
        backoff=stored.Backoff[policy.backoff.upper()],
        initial_delay_ms=policy.initial_delay_ms,
        max_delay_ms=policy.max_delay_ms,
        multiplier_percent=round(100 * policy.multiplier),
        jitter=policy.jitter,
    )


def retries_shown(policy: stored.Redelivery) -> Redelivery:
    """A stored retry policy in the form of the API."""
    backoff: Any = policy.backoff.name.lower()
    return Redelivery(
        max_attempts=policy.max_attempts,
        backoff=backoff,
        initial_delay_ms=policy.initial_delay_ms,
        max_delay_ms=policy.max_delay_ms,
        multiplier=policy.multiplier_percent / 100,
        jitter=policy.jitter,
    )


def shown(terms: Terms, document: Callable[[bytes], Any]) -> dict[str, Any]:
    """The fields of an `Intent` that come from its terms. `document` decodes JSON, or keeps it encoded."""
    target = terms.target
    fields: dict[str, Any] = {
        "callback": _callback(target, document) if isinstance(target, stored.Callback) else None,
        "task": TaskTarget(name=target.name, queue=target.queue) if isinstance(target, stored.Task) else None,
        "entity": (
            EntityTarget(type=target.kind, id=target.id, message=target.message)
            if isinstance(target, stored.Entity)
            else None
        ),
        "stream": StreamTarget(name=target.name) if isinstance(target, stored.Stream) else None,
        "slo": _slo(terms.slo_ms, terms.guarantee) if terms.slo_ms else None,
        "priority": terms.priority,
        "redelivery": retries_shown(terms.redelivery),
        "limits": [rates.limit(each) for each in terms.limits or ()],
    }
    for field in CARRIED:
        fields[field.name] = field.shown(getattr(terms, field.stored))
    fields["ack_meaning"] = ACK_MEANINGS[fields["ack_level"]]
    return fields


def _callback(callback: stored.Callback, document: Callable[[bytes], Any]) -> Callback:
    method: Any = callback.method
    return Callback(
        url=callback.url,
        method=method,
        headers=callback.headers or {},
        body=_body(callback.body, document),
        batch=callback.batch,
        parents=callback.parents,
        on_end=callback.on_end or None,
    )


def _body(body: bytes | None, document: Callable[[bytes], Any]) -> Any:
    if body is None:
        return None
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")
    except RecursionError:  # as deep as it could be read when it came, from a place less deep than this
        return Raw(body)
    return document(body)


def _slo(max_tardiness_ms: int, guarantee: Guarantee) -> ChosenSlo:
    tier, reason = slo.choose(max_tardiness_ms, guarantee)
    reliability: Any = guarantee.name
    return ChosenSlo(
        max_tardiness_ms=max_tardiness_ms, reliability=reliability, tier=tier.name, reason=reason
    )
