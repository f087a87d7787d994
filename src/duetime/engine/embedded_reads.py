"""The engine's reads in the form an App needs: awaitable, because a server's have to be."""

from __future__ import annotations

from duetime.engine.engine import Engine
from duetime.engine.reads.library import Library
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Entry, Status
from duetime.protocol.view import LaneView, Overview, Parent, View, Why


class EngineReads:
    """Reads of an engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._library: Library | None = None

    async def get(self, id: str) -> View | None:
        return self._engine.get(id)

    async def why(self, id: str) -> Why | None:
        return self._engine.why(id)

    async def history(self, id: str) -> list[Entry] | None:
        return self._engine.history(id)

    async def logs(self, id: str) -> list[str] | None:
        return None if self._engine.intent(id) is None else (self._engine.log(id) or "").splitlines()

    async def parents(self, id: str, first: int, limit: int) -> list[Parent] | None:
        return self._engine.parents(id, first, limit)

    async def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[View]:
        if self._library is None:
            self._library = Library(self._engine.store.archive())
            self._library.follow(self._engine)
        return await self._library.newest(Filter(statuses or (), lane=lane), before_seq, limit)

    async def overview(self) -> Overview:
        return self._engine.overview()

    async def lanes(self) -> list[LaneView]:
        return self._engine.lanes()

    def end(self) -> None:
        if self._library is not None:
            self._library.close()
