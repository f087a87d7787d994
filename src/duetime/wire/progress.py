"""The JSON of what running functions say of themselves."""

from __future__ import annotations

from msgspec import Struct


class ProgressOut(Struct, frozen=True, kw_only=True, rename="camel"):
    """How far a running function is, as it says itself."""

    done: float
    total: float | None
    note: str
    at: str


class LogsOut(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the newest attempt that has ended logged, its newest lines."""

    intent_id: str
    lines: list[str]
