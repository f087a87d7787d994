"""Progress reports and log lines of functions."""

from __future__ import annotations

from duetime.wire.shapes import Moment, Out


class Progress(Out, frozen=True):
    """The progress that a running function has reported."""

    done: float
    total: float | None
    note: str
    at: Moment


class Logs(Out, frozen=True):
    """The newest log lines of the newest attempt that has ended."""

    intent_id: str
    lines: list[str]
