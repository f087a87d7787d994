"""Converts a problem document of a server into the exception that an embedded engine would raise."""

from __future__ import annotations

import msgspec

from duetime.errors import BY_CODE, DuetimeError, Refused, Unavailable
from duetime.limits import CLIENT_TEXT_CHARS_MAX
from duetime.wire.problem import Problem


def read(body: bytes) -> Problem | None:
    """The problem document in the body of a response; None if there is none."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def error_of(problem: Problem) -> DuetimeError:
    """The exception for a problem. A code of a newer server gives the base class of its HTTP status."""
    known = BY_CODE.get(problem.error_code)
    error = (known or _by_status(problem.status))(problem.message, hint=problem.recovery_hint.suggestion)
    error.details = dict(problem.details)
    if problem.recovery_hint.wait_ms is not None:
        error.details.setdefault("retryAfterMs", problem.recovery_hint.wait_ms)
    if known is None:
        error.code, error.status, error.retryable = problem.error_code, problem.status, problem.retryable
    return error


def error_of_text(status: int, url: str, body: bytes) -> DuetimeError:
    """The exception for a response that is not Duetime's, such as a page of a proxy."""
    text = " ".join(body[: 4 * CLIENT_TEXT_CHARS_MAX].decode("utf-8", "replace").split())[
        :CLIENT_TEXT_CHARS_MAX
    ]
    message = f"{url} answered HTTP {status}{': ' + text if text else ''}"
    return _by_status(status)(message, hint="Is this the address of a Duetime server?")


def _by_status(status: int) -> type[DuetimeError]:
    if status in (429, 502, 503, 504):
        return Unavailable
    return Refused if 300 <= status < 500 else DuetimeError
