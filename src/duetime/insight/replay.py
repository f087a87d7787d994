"""The past: the history of one intent, and the state of the whole engine at a given time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw

from duetime.engine.engine import Engine
from duetime.engine.reads import gauges as inside
from duetime.engine.reads.library import Library, status_at
from duetime.engine.reads.past_fields import PastFields, fields_at
from duetime.json_types import Json
from duetime.log.time_index import FramePlace, SegmentSpan, seek, spans
from duetime.protocol.terms import Terms
from duetime.wire import terms as wire_terms
from duetime.wire import views
from duetime.wire.intent import SharedFields
from duetime.wire.log import LogSegment
from duetime.wire.replay import FieldsThen, Life, LogPlace, Past
from duetime.wire.shapes import written, written_or_none

ShowTerms = Callable[[Terms], Json]
_SHARED = frozenset(SharedFields.__struct_fields__)


def _all_fields(terms: Terms) -> Json:
    return wire_terms.shown(terms, Raw)


class Replay:
    """Reads the past of one engine."""

    def __init__(self, engine: Engine, library: Library, show: ShowTerms | None = None) -> None:
        """`show`: the fields of terms, for the current caller."""
        self._engine = engine
        self._library = library
        self._show = show if show is not None else _all_fields

    async def life(self, id: str, at_ms: int | None = None) -> Life | None:
        """All steps of an intent; None if it does not exist."""
        entries, intent = self._engine.reads.history(id), self._engine.reads.intent(id)
        if entries is None or intent is None:
            return None
        then = None if at_ms is None else status_at(entries, at_ms)
        fields: PastFields | None = None
        if at_ms is None or then is not None:
            until_ms = self._engine.now_ms() if at_ms is None else at_ms
            fields = await fields_at(self._engine, intent, entries, until_ms)
        shown = entries if at_ms is None else [entry for entry in entries if entry.at_ms <= at_ms]
        return Life(
            intent_id=id,
            status=views.STATUSES[intent.status],
            at=None if at_ms is None else written(at_ms),
            status_at=None if then is None else views.STATUSES[then],
            steps=[views.entry(each, written) for each in shown],
            fields=None if fields is None else self._shown(fields),
        )

    def _shown(self, fields: PastFields) -> FieldsThen:
        shared = {name: value for name, value in self._show(fields.terms).items() if name in _SHARED}
        return FieldsThen(
            payload=Raw(fields.payload) if fields.payload else None,
            execute_at=written(fields.execute_at_ms),
            deadline=written_or_none(fields.deadline_ms),
            **shared,
        )

    async def system(self, at_ms: int) -> Past:
        """The state at a time; a time in the future means now."""
        at_ms = min(at_ms, self._engine.now_ms())
        directory = inside.log_directory(self._engine)
        place: FramePlace | None = None
        if directory is not None:
            place = await asyncio.to_thread(seek, directory, at_ms)
        stood = await self._library.as_of(at_ms)
        return Past(
            at=written(at_ms),
            counts=stood.counts,
            tiers=stood.tiers,
            exact=stood.exact,
            log=_log_place(place),
        )

    async def segments(self) -> list[LogSegment]:
        """The files of the log, oldest first; empty if the log is in memory."""
        directory = inside.log_directory(self._engine)
        if directory is None:
            return []
        found = await asyncio.to_thread(spans, directory)
        tail = self._engine.position
        lasts = [*(span.first for span in found[1:]), tail]
        return [_segment(span, last) for span, last in zip(found, lasts, strict=True)]


def _log_place(place: FramePlace | None) -> LogPlace | None:
    if place is None:
        return None
    return LogPlace(
        position=place.position, record=place.record, epoch=place.epoch, written_at=written(place.at_ms)
    )


def _segment(span: SegmentSpan, last: int) -> LogSegment:
    begins = span.begins
    return LogSegment(
        file=span.file,
        first_position=span.first,
        end_position=last,
        bytes=span.bytes,
        sealed=span.sealed,
        begins_at=None if begins is None else written(begins.at_ms),
        epoch=None if begins is None else begins.epoch,
    )
