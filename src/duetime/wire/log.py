"""The log: its files."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime.wire.shapes import Moment, Out


class LogSegment(Out, frozen=True):
    """One file of the log."""

    file: str
    first_position: int
    end_position: int
    bytes: int
    sealed: Annotated[bool, Meta(description="Whether the file is complete.")]
    begins_at: Annotated[Moment | None, Meta(description="Time of its first record; null if it is empty.")]
    epoch: Annotated[int | None, Meta(description="Epoch of its first record.")]


class LogSegments(Out, frozen=True):
    """The files of the log, oldest first."""

    segments: list[LogSegment]
    bytes: int
