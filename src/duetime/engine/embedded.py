"""The backend of an embedded App: an engine in this process, with results in the form that users see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from duetime.engine.bulk import Many, concerned
from duetime.engine.engine import Engine
from duetime.engine.reads.library import Library
from duetime.engine.schedules.backfill import backfill
from duetime.errors import NoSuchIntent
from duetime.protocol.command import Command
from duetime.protocol.effect import Change
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Item
from duetime.protocol.schedule import Schedule as Rule
from duetime.protocol.schedule import Timetable
from duetime.protocol.terms import AckLevel, Terms
from duetime.protocol.view import LaneView, Overview, View
from duetime.refusals import Submitted
from duetime.store.store import SEQ_MAX
from duetime.timefmt import moment_of
from duetime.wire import views
from duetime.wire.bulk import Bulk, Verb
from duetime.wire.event import Transition
from duetime.wire.history import Entry, Parent, Why
from duetime.wire.intent import Intent, Status
from duetime.wire.schedule import Backfill, Schedule
from duetime.wire.views import Ended


class Embedded:
    """The backend of an App on a data folder or in memory."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._library: Library | None = None
        # Bound directly: they run for every intent.
        self.now_ms = engine.now_ms
        self.submit = engine.submit
        self.submit_one = engine.submit_one
        self.start = engine.start
        self.quiet = engine.quiet

    async def reach(self, then: Callable[[], Awaitable[None]]) -> None:
        await then()

    async def close(self, drain_ms: int | None = None) -> None:
        """Stop the engine. Readers end first: they hold the store."""
        await self.engine.close(drain_ms)
        if self._library is not None:
            self._library.close()

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any:
        answer = await self.engine.ask(command, ack)
        return _intent(answer) if isinstance(answer, View) else answer

    async def wait(self, id: str) -> Ended:
        view = await self.engine.wait(id)
        status = views.STATUSES[view.status]
        return Ended(status, view.result, view.result_gone, lambda: _intent(view))

    def observe(
        self, observer: Callable[[Transition], None], statuses: Collection[Status] = ()
    ) -> Callable[[], None]:
        wanted = {_KERNEL[status.value] for status in statuses}

        def told(change: Change) -> None:
            if not wanted or change.new in wanted:
                intent = self.engine.reads.intent(change.id)
                observer(Transition(**views.transition(change, intent, moment_of)))

        return self.engine.observe(told)

    # Reads. None: the intent does not exist.

    async def get(self, id: str) -> Intent | None:
        view = self.engine.reads.get(id)
        return None if view is None else _intent(view)

    async def why(self, id: str) -> Why | None:
        intent, why = self.engine.reads.intent(id), self.engine.reads.why(id)
        if intent is None or why is None:
            return None
        return Why(
            intent_id=id,
            status=views.STATUSES[intent.status],
            code=why.code,
            sentence=why.sentence,
            data=why.data,
        )

    async def history(self, id: str) -> list[Entry] | None:
        entries = self.engine.reads.history(id)
        if entries is None:
            return None
        return [views.entry(each, moment_of) for each in entries]

    async def logs(self, id: str) -> list[str] | None:
        reads = self.engine.reads
        return None if reads.intent(id) is None else (reads.log(id) or "").splitlines()

    async def parents(self, id: str, first: int, limit: int) -> list[Parent] | None:
        found = self.engine.reads.parents(id, first, limit)
        if found is None:
            return None
        return [
            Parent(
                intent_id=each.id,
                status=None if each.status is None else views.STATUSES[each.status],
                result=None if each.result is None else views.decoded(each.result),
            )
            for each in found
        ]

    async def page(self, filter: Filter, before: str | None, limit: int) -> list[Intent]:
        found = await self._intents().newest(filter, self._seq(before), limit)
        return [_intent(view) for view in found]

    async def many(self, verb: Verb, filter: Filter, cursor: str | None, limit: int) -> Bulk:
        several = Many(self.engine, self._intents())
        found = await several.find(concerned(verb, filter), cursor, limit)
        return several.result(found, await several.do(verb, found.ids))

    def _intents(self) -> Library:
        if self._library is None:
            self._library = Library(self.engine.store.archive())
            self._library.follow(self.engine)
        return self._library

    def _seq(self, before: str | None) -> int:
        """The position of an intent in the order of acceptance."""
        if before is None:
            return SEQ_MAX
        view = self.engine.reads.get(before)
        if view is None:
            raise NoSuchIntent(f"There is no intent with the id {before!r}.")
        return view.seq

    async def overview(self) -> Overview:
        return self.engine.reads.overview()

    async def lanes(self) -> list[LaneView]:
        return self.engine.reads.lanes()

    # Schedules. Returned is the state after the change.

    async def put_schedule(self, schedule: Rule) -> Schedule:
        return _schedule(await self.engine.schedules.put(schedule))

    async def drop_schedule(self, id: str) -> Schedule:
        return _schedule(await self.engine.schedules.drop(id))

    async def pause_schedule(self, id: str) -> Schedule:
        return _schedule(await self.engine.schedules.pause(id))

    async def resume_schedule(self, id: str) -> Schedule:
        return _schedule(await self.engine.schedules.resume(id))

    async def trigger_schedule(self, id: str) -> Intent:
        return _intent(await self.engine.schedules.trigger(id))

    async def schedule(self, id: str) -> Schedule:
        return _schedule(self.engine.schedules.get(id))

    async def schedules(self) -> list[Schedule]:
        return [_schedule(table) for table in self.engine.schedules.all()]

    async def next_ticks(self, id: str, count: int) -> list[int]:
        return self.engine.schedules.next_ticks(id, count)

    async def backfill(self, id: str, from_ms: int, to_ms: int) -> Backfill:
        schedule, now_ms = self.engine.schedules.get(id).schedule, self.engine.now_ms()

        async def submit(terms: tuple[Terms, ...], items: tuple[Item, ...]) -> list[Submitted]:
            return await self.engine.submit(terms, items, terms[0].ack)

        return await backfill(schedule, from_ms, to_ms, now_ms, submit)

    async def own_schedules(self, source: str, ids: Collection[str], delete: bool) -> list[str]:
        return await self.engine.schedules.own(source, ids, delete)


def _intent(view: View) -> Intent:
    return views.intent(view, moment_of, views.decoded)


def _schedule(table: Timetable) -> Schedule:
    return views.schedule(table, moment_of, views.decoded)


_KERNEL = {shown.value: status for status, shown in views.STATUSES.items()}
