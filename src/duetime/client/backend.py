"""What an App needs of what is behind it: the engine in this process, or a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from duetime.protocol.command import Command
from duetime.protocol.effect import Change
from duetime.protocol.intent import Entry, Item, Status
from duetime.protocol.reply import Reply
from duetime.protocol.terms import AckLevel, Terms
from duetime.protocol.view import LaneView, Overview, View, Why


class Backend(Protocol):
    """Intents in, their ends out. Errors are those of `duetime.errors`."""

    async def start(self) -> None: ...

    async def close(self, drain_ms: int | None = None) -> None: ...

    def now_ms(self) -> int: ...

    def submit(
        self, terms: tuple[Terms, ...], items: tuple[Item, ...], ack: AckLevel
    ) -> Awaitable[list[Reply]]: ...

    def submit_one(self, terms: Terms, item: Item, ack: AckLevel) -> Awaitable[Reply]: ...

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any: ...

    async def wait(self, id: str) -> View: ...

    def observe(self, observer: Callable[[Change], None]) -> Callable[[], None]: ...

    async def quiet(self) -> None: ...


class Reads(Protocol):
    """What is there, looked at without changing it. None: there is no such intent."""

    async def get(self, id: str) -> View | None: ...

    async def why(self, id: str) -> Why | None: ...

    async def history(self, id: str) -> list[Entry] | None: ...

    async def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[View]: ...

    async def overview(self) -> Overview: ...

    async def lanes(self) -> list[LaneView]: ...
