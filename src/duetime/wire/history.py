"""The JSON of an intent's life: its history, why it waits, those it came after. The rules of `wire` hold."""

from __future__ import annotations

from typing import Any

from duetime.wire.intent import StatusName
from duetime.wire.shapes import Out


class EntryOut(Out, frozen=True):
    """One state transition of an intent."""

    at: str
    status: StatusName
    delivery: int
    note: str


class HistoryOut(Out, frozen=True):
    intent_id: str
    entries: list[EntryOut]


class WhyOut(Out, frozen=True):
    """Why it has not run yet, or how it ended."""

    intent_id: str
    status: StatusName
    code: str
    sentence: str
    data: dict[str, Any]


class ParentOut(Out, frozen=True):
    """A dependency of the intent, or a member of its group. No status: it has been deleted."""

    intent_id: str
    status: StatusName | None
    result: Any


class ParentsOut(Out, frozen=True):
    """A page in order, with the cursor of the next page."""

    items: list[ParentOut]
    next_cursor: str | None
