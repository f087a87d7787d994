"""A server's problem document as the exception a program in the same process would have seen."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from duetime.errors import BY_CODE, DuetimeError, Refused, Unavailable

# How much of an answer that is no problem document is shown.
_TEXT_CHARS_MAX = 200


class Hint(Struct, rename="camel", frozen=True):
    """What a problem advises."""

    suggestion: str | None = None
    endpoint: str | None = None
    wait_ms: int | None = None
    current_state: str | None = None
    next_states: list[str] | None = None


class Problem(Struct, rename="camel", frozen=True):
    """An `application/problem+json` document, as far as a client needs it."""

    error_code: int
    message: str = ""
    title: str = ""
    detail: str = ""
    status: int = 0
    retryable: bool | None = None
    retry_after_ms: int | None = None
    recovery_hint: Hint | None = None
    details: dict[str, Any] | None = None


def read(body: bytes) -> Problem | None:
    """The problem in an answer's body; None if it is none."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def error_of(problem: Problem) -> DuetimeError:
    """The exception for a problem. A code of a newer server gives the base class of its HTTP status."""
    known = BY_CODE.get(problem.error_code)
    kind = known or _by_status(problem.status)
    hint = problem.recovery_hint.suggestion if problem.recovery_hint is not None else None
    error = kind(problem.message or problem.detail or problem.title, hint=hint)
    error.details = dict(problem.details or {})
    wait_ms = problem.retry_after_ms
    if wait_ms is None and problem.recovery_hint is not None:
        wait_ms = problem.recovery_hint.wait_ms
    if wait_ms is not None:
        error.details.setdefault("retryAfterMs", wait_ms)
    if known is None:
        error.code = problem.error_code
        error.status = problem.status or kind.status
        error.retryable = kind.retryable if problem.retryable is None else problem.retryable
    return error


def error_of_text(status: int, url: str, body: bytes) -> DuetimeError:
    """The exception for an answer that is not Duetime's: a proxy's page, another program's server."""
    text = " ".join(body[: 4 * _TEXT_CHARS_MAX].decode("utf-8", "replace").split())[:_TEXT_CHARS_MAX]
    message = f"{url} answered HTTP {status}{': ' + text if text else ''}"
    return _by_status(status)(message, hint="Is this the address of a Duetime server?")


def _by_status(status: int) -> type[DuetimeError]:
    if status in (429, 502, 503, 504):
        return Unavailable
    return Refused if 300 <= status < 500 else DuetimeError
