"""The history of an intent, the reason why it waits, and its dependencies."""

from __future__ import annotations

from typing import Any

from duetime.wire.intent import Status
from duetime.wire.shapes import Moment, Out


class Entry(Out, frozen=True):
    """One state transition of an intent."""

    at: Moment
    status: Status
    delivery: int = 0
    note: str = ""


class History(Out, frozen=True):
    intent_id: str
    entries: list[Entry]


class Why(Out, frozen=True):
    """Why it has not run yet, or how it ended."""

    intent_id: str
    status: Status
    code: str
    sentence: str
    data: dict[str, Any]


class Parent(Out, frozen=True):
    """A dependency of the intent, or a member of its group. No status: it has been deleted."""

    intent_id: str
    status: Status | None
    result: Any


class Failure(Out, frozen=True):
    """A dependency that failed: the first argument of a branch for failures, if it takes one."""

    intent_id: str
    status: Status
    kind: str
    """The kind of its error; empty if it was cancelled."""
    message: str


class Parents(Out, frozen=True):
    """A page in order, with the cursor of the next page."""

    items: list[Parent]
    next_cursor: str | None
