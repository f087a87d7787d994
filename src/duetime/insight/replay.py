"""The past: the history of one intent, and the state of the whole engine at a given time."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from duetime.engine.engine import Engine
from duetime.engine.reads import gauges as inside
from duetime.engine.reads.library import Library, status_at
from duetime.log.time_index import FramePlace, SegmentSpan, seek, spans
from duetime.protocol.intent import Entry
from duetime.timefmt import iso


class Step(Struct, rename="camel"):
    """One step in the history of an intent."""

    at: str
    status: str
    delivery: int
    note: str


class Life(Struct, rename="camel"):
    """The history of an intent; if a time was given, also its state at that time."""

    intent_id: str
    status: str
    at: str | None
    status_at: str | None
    """None: no time was given, or the intent did not exist yet."""
    steps: list[Step]
    """Up to the given time, if any."""


class LogPlace(Struct, rename="camel"):
    """The position on the log."""

    position: int
    record: int
    epoch: int
    written_at: str


class SegmentScope(Struct, rename="camel"):
    """One file of the log."""

    file: str
    first_position: int
    end_position: int
    bytes: int
    sealed: bool
    begins_at: str | None
    epoch: int | None


class Past(Struct, rename="camel"):
    """The state of the engine at a time."""

    at: str
    counts: dict[str, int]
    tiers: dict[str, dict[str, int]]
    exact: bool
    log: LogPlace | None
    """None: the stored log begins later, or is in memory."""


class Replay:
    """Reads the past of one engine."""

    def __init__(self, engine: Engine, library: Library) -> None:
        self._engine = engine
        self._library = library

    def life(self, id: str, at_ms: int | None = None) -> Life | None:
        """All steps of an intent; None if it does not exist."""
        entries, view = self._engine.reads.history(id), self._engine.reads.get(id)
        if entries is None or view is None:
            return None
        then = None if at_ms is None else status_at(entries, at_ms)
        shown = entries if at_ms is None else [entry for entry in entries if entry.at_ms <= at_ms]
        return Life(
            intent_id=id,
            status=view.status.name,
            at=None if at_ms is None else iso(at_ms),
            status_at=None if then is None else then.name,
            steps=[_step(entry) for entry in shown],
        )

    async def system(self, at_ms: int) -> Past:
        """The state at a time; a time in the future means now."""
        at_ms = min(at_ms, self._engine.now_ms())
        directory = inside.log_directory(self._engine)
        place: FramePlace | None = None
        if directory is not None:
            place = await asyncio.to_thread(seek, directory, at_ms)
        stood = await self._library.as_of(at_ms)
        return Past(iso(at_ms), stood.counts, stood.tiers, stood.exact, _log_place(place))

    async def segments(self) -> list[SegmentScope]:
        """The files of the log, oldest first; empty if the log is in memory."""
        directory = inside.log_directory(self._engine)
        if directory is None:
            return []
        found = await asyncio.to_thread(spans, directory)
        tail = self._engine.position
        lasts = [*(span.first for span in found[1:]), tail]
        return [_segment(span, last) for span, last in zip(found, lasts, strict=True)]


def _step(entry: Entry) -> Step:
    return Step(iso(entry.at_ms), entry.status.name, entry.delivery, entry.note)


def _log_place(place: FramePlace | None) -> LogPlace | None:
    if place is None:
        return None
    return LogPlace(place.position, place.record, place.epoch, iso(place.at_ms))


def _segment(span: SegmentSpan, last: int) -> SegmentScope:
    begins = span.begins
    return SegmentScope(
        span.file,
        span.first,
        last,
        span.bytes,
        span.sealed,
        None if begins is None else iso(begins.at_ms),
        None if begins is None else begins.epoch,
    )
