"""The table of an outbox on an async engine of SQLAlchemy. A separate module, because it needs greenlet."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from duetime.contrib.outbox.rows import Count, Row, Settled
from duetime.contrib.sqlalchemy import Statements


class AsyncRows:
    """The table on an async engine."""

    def __init__(self, statements: Statements, engine: AsyncEngine) -> None:
        self._statements = statements
        self._engine = engine
        self._connection: AsyncConnection | None = None

    async def take(self, count: int, now_ms: int) -> list[Row]:
        await self.let_go()
        self._connection = await self._engine.connect()
        rows = await self._connection.run_sync(self._statements.take, count, now_ms)
        if not self._statements.locking:
            await self._connection.rollback()
        return rows

    async def settle(self, settled: Settled) -> None:
        assert self._connection is not None, "rows are taken before they are settled"
        await self._connection.run_sync(self._statements.settle, settled)
        await self._connection.commit()
        await self.let_go()

    async def let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def count(self) -> Count:
        async with self._engine.connect() as connection:
            return await connection.run_sync(self._statements.count)

    async def reopen(self) -> int:
        async with self._engine.begin() as connection:
            return await connection.run_sync(self._statements.reopen)

    async def close(self) -> None:
        await self.let_go()
