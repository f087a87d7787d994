"""The JSON of an intent's life: its history, why it waits, those it came after. The rules of `wire` hold."""

from __future__ import annotations

from typing import Any

from duetime.wire.intent import StatusName
from duetime.wire.shapes import Out


class EntryOut(Out, frozen=True):
    """One step in the life of an intent."""

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
    """One of those it came after, or a member of its group. No status: it is forgotten."""

    intent_id: str
    status: StatusName | None
    result: Any


class ParentsOut(Out, frozen=True):
    """Some of them in their order, and where to go on."""

    items: list[ParentOut]
    next_cursor: str | None
