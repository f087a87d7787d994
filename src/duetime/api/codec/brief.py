"""The JSON of a batch's answer for those who asked for little of it. The rules of `wire` hold."""

from __future__ import annotations

from duetime.wire.intent import StatusName
from duetime.wire.problem import Problem
from duetime.wire.shapes import Out


class BriefIntentOut(Out, frozen=True):
    """What is told of an intent to those who asked for little."""

    intent_id: str
    status: StatusName
    execute_at: str
    revision: int


class BriefBatchItemOut(Out, frozen=True, omit_defaults=True):
    """The answer to one intent of a batch, with `Prefer: return=minimal`."""

    status: int
    intent: BriefIntentOut | None = None
    error: Problem | None = None


class BriefBatchOut(Out, frozen=True):
    """The answers in the order of the request, with `Prefer: return=minimal`."""

    items: list[BriefBatchItemOut]
    created: int
    existing: int
    failed: int
