"""Errors as `application/problem+json`: one table from errors to problems."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from duetime import errors
from duetime.api.codec.fields import nearest
from duetime.errors import DuetimeError
from duetime.json_types import Json
from duetime.limits import RETRY_AFTER_DEFAULT_MS
from duetime.protocol.intent import Status
from duetime.protocol.transitions import TRANSITIONS
from duetime.wire.patterns import FORMS
from duetime.wire.problem import HintOut, Problem

MEDIA_TYPE: Final = b"application/problem+json"

# The endpoint to use next, by the class of error.
ENDPOINTS: Final[Mapping[type[DuetimeError], str]] = {
    errors.NoSuchIntent: "GET /v1/intents",
    errors.NoSuchRoute: "GET /docs",
    errors.KeyFinished: 'POST /v1/intents with "onDuplicate": "return"',
    errors.KeyHeld: "GET /v1/intents/{intentId}",
    errors.KeyReused: "GET /v1/intents/{intentId}",
    errors.IdExists: "GET /v1/intents/{intentId}",
    errors.RevisionMoved: "GET /v1/intents/{intentId}",
    errors.StateForbids: "GET /v1/intents/{intentId}/why",
    errors.NotPatchable: "GET /v1/intents/{intentId}/why",
    errors.NotDeadLettered: "GET /v1/intents/{intentId}",
    errors.Busy: "GET /v1/admin/chronoscope",
    errors.LaneFull: "GET /v1/admin/lanes",
    errors.EntityFull: "GET /v1/admin/lanes",
    errors.NotReady: "GET /health/ready",
    errors.LogUnavailable: "GET /health",
    errors.NoSpace: "GET /health",
    errors.Exhausted: "GET /health",
}
_PLACE = re.compile(r" - at `([^`]*)`$")
# "| null" in a type is not useful to a caller that sent another type.
_OR_NULL = re.compile(r" \| null(?=[^`]*`, got)")
_REGEX = re.compile(r"`str` matching regex ('.*')$")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


def problem(error: DuetimeError) -> Problem:
    """The problem document of an error."""
    details = dict(error.details)
    wait_ms = details.pop("waitMs", RETRY_AFTER_DEFAULT_MS if error.retryable else None)
    state = details.get("currentState")
    if error.status == 429:
        details.setdefault("retryAfterMs", wait_ms)
    return Problem(
        type=f"urn:duetime:problem:{error.code}",
        title=error.title(),
        status=error.status,
        detail=str(error),
        error_code=error.code,
        message=error.message,
        retryable=error.retryable,
        recovery_hint=HintOut(
            suggestion=error.hint,
            endpoint=ENDPOINTS.get(type(error)),
            wait_ms=wait_ms if isinstance(wait_ms, int) else None,
            current_state=state if isinstance(state, str) else None,
            next_states=_next_states(state),
        ),
        details=details,
    )


def encode(error: DuetimeError) -> bytes:
    """The body of an error response."""
    try:
        return msgspec.json.encode(problem(error))
    except TypeError:  # a detail is not JSON: send the problem without details
        error.details = {}
        return msgspec.json.encode(problem(error))


def retry_after_s(error: DuetimeError) -> int | None:
    """The value of `Retry-After`, if waiting helps."""
    if not error.retryable:
        return None
    wait_ms = error.details.get("waitMs", RETRY_AFTER_DEFAULT_MS)
    return max(1, -(-wait_ms // 1000)) if isinstance(wait_ms, int) else 1


def _next_states(state: object) -> list[str]:
    if not isinstance(state, str) or state not in Status.__members__:
        return []
    return [status.name for status in TRANSITIONS[Status[state]]]


def unreadable(error: Exception, kind: object = Any) -> DuetimeError:
    """The error for a body that cannot be decoded: it is not JSON, or has wrong values."""
    if not isinstance(error, msgspec.ValidationError):
        return errors.NotJson(f"The body is not JSON: {error}.", hint="Send a JSON object in UTF-8.")
    return invalid(str(error), kind=kind)


def invalid(text: str, prefix: str = "$", kind: object = Any, *, suggest: bool = True) -> DuetimeError:
    """Duetime's error for an error of msgspec about a wrong value of this type."""
    found = _PLACE.search(text)
    inside = found.group(1) if found else "$"
    place = inside.replace("$", prefix, 1)
    words = _REGEX.sub(_form, _PLACE.sub("", text))
    message = f"{_OR_NULL.sub('', words)}, at {place}."
    details: Json = {"path": place}
    unknown = _UNKNOWN.search(text) if suggest else None
    meant = nearest(kind, inside, unknown.group(1)) if unknown else None
    return errors.InvalidField(
        message, hint=None if meant is None else f"Did you mean {meant}? Nothing was stored.", **details
    )


def _form(found: re.Match[str]) -> str:
    """A valid example instead of the pattern, which msgspec shows as Python's repr."""
    return FORMS.get(ast.literal_eval(found.group(1)), found.group())


def nobody_counts(error: DuetimeError) -> None:
    """Does nothing: the default if refusals are not counted."""
