"""An error as `application/problem+json`: servers write it, clients read it."""

from __future__ import annotations

from typing import Any

from duetime.wire.shapes import Out


class HintOut(Out, frozen=True):
    """The remedy."""

    suggestion: str
    endpoint: str | None
    wait_ms: int | None
    current_state: str | None
    next_states: list[str]


class Problem(Out, frozen=True):
    """What went wrong, for programs (errorCode) and people (detail)."""

    type: str
    title: str
    status: int
    detail: str
    error_code: int
    message: str
    retryable: bool
    recovery_hint: HintOut
    details: dict[str, Any]
