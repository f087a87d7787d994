"""The JSON of what running functions say of themselves."""

from __future__ import annotations

from msgspec import Struct


class ProgressOut(Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress that a running function has reported."""

    done: float
    total: float | None
    note: str
    at: str


class LogsOut(Struct, frozen=True, kw_only=True, rename="camel"):
    """The newest log lines of the newest attempt that has ended."""

    intent_id: str
    lines: list[str]
