"""Runs the calls of a blocking table in one thread, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from duetime.contrib.outbox.rows import Count, Row, Settled

T = TypeVar("T")


class BlockingRows(Protocol):
    """`Rows` with blocking functions. All calls come from one thread."""

    def take(self, count: int, now_ms: int) -> list[Row]: ...

    def settle(self, settled: Settled) -> None: ...

    def let_go(self) -> None: ...

    def count(self) -> Count: ...

    def reopen(self) -> int: ...

    def close(self) -> None: ...


class InThread:
    """`Rows` on top of `BlockingRows`. The thread starts with the first call, and again after a close."""

    def __init__(self, rows: BlockingRows) -> None:
        self._rows = rows
        self._thread: ThreadPoolExecutor | None = None

    async def take(self, count: int, now_ms: int) -> list[Row]:
        return await self._do(lambda: self._rows.take(count, now_ms))

    async def settle(self, settled: Settled) -> None:
        await self._do(lambda: self._rows.settle(settled))

    async def let_go(self) -> None:
        await self._do(self._rows.let_go)

    async def count(self) -> Count:
        return await self._do(self._rows.count)

    async def reopen(self) -> int:
        return await self._do(self._rows.reopen)

    async def close(self) -> None:
        await self._do(self._rows.close)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False)

    async def _do(self, call: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "duetime-outbox")
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
