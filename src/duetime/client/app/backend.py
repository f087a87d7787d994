"""The backend of an App: an engine in this process, or a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Protocol

from duetime.protocol.command import Command
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Item
from duetime.protocol.schedule import Schedule as Rule
from duetime.protocol.terms import AckLevel, Terms
from duetime.protocol.view import LaneView, Overview
from duetime.refusals import Submitted
from duetime.wire.bulk import Bulk, Verb
from duetime.wire.event import Transition
from duetime.wire.history import Entry, Parent, Why
from duetime.wire.intent import Intent, Status
from duetime.wire.schedule import Backfill, Schedule
from duetime.wire.views import Ended


class Backend(Protocol):
    """The operations of an App. Errors are those of `duetime.errors`."""

    async def start(self) -> None: ...

    async def reach(self, then: Callable[[], Awaitable[None]]) -> None:
        """Call `then` when the backend can be used: now, or, if its server is down, when it is up."""

    async def close(self, drain_ms: int | None = None) -> None: ...

    def now_ms(self) -> int: ...

    def submit(
        self, terms: tuple[Terms, ...], items: Iterable[Item], ack: AckLevel
    ) -> Awaitable[list[Submitted]]: ...

    def submit_one(self, terms: Terms, item: Item, ack: AckLevel) -> Awaitable[Submitted]: ...

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any: ...

    async def wait(self, id: str) -> Ended: ...

    def observe(
        self, observer: Callable[[Transition], None], statuses: Collection[Status] = ()
    ) -> Callable[[], None]:
        """Call `observer` with every transition to one of these states (none: to any)."""

    async def quiet(self) -> None: ...

    # Reads. None: the intent does not exist.

    async def get(self, id: str) -> Intent | None: ...

    async def why(self, id: str) -> Why | None: ...

    async def history(self, id: str) -> list[Entry] | None: ...

    async def logs(self, id: str) -> list[str] | None: ...

    async def parents(self, id: str, first: int, limit: int) -> list[Parent] | None: ...

    async def page(self, filter: Filter, before: str | None, limit: int) -> list[Intent]: ...

    async def many(self, verb: Verb, filter: Filter, cursor: str | None, limit: int) -> Bulk:
        """Run a verb on up to `limit` intents that match. The cursor of the result continues."""
        ...

    async def overview(self) -> Overview: ...

    async def lanes(self) -> list[LaneView]: ...

    # Schedules. Returned is the state after the change.

    async def put_schedule(self, schedule: Rule) -> Schedule: ...

    async def drop_schedule(self, id: str) -> Schedule: ...

    async def pause_schedule(self, id: str) -> Schedule: ...

    async def resume_schedule(self, id: str) -> Schedule: ...

    async def trigger_schedule(self, id: str) -> Intent: ...

    async def schedule(self, id: str) -> Schedule: ...

    async def schedules(self) -> list[Schedule]: ...

    async def next_ticks(self, id: str, count: int) -> list[int]: ...

    async def backfill(self, id: str, from_ms: int, to_ms: int) -> Backfill: ...

    async def own_schedules(self, source: str, ids: Collection[str], delete: bool) -> list[str]:
        """State the schedules of a program; returns its orphans."""
        ...
