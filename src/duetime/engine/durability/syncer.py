"""When the log is synced. Owns the log's syncs.

One sync covers every batch that came before it (group commit). A batch that nothing waits for is synced
within its window. While nothing is unsynced, nothing happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter  # tidy: how long it took, not what time it is

from duetime.engine.reads.meter import Meter
from duetime.errors import Fatal
from duetime.log.log import Log, Position


class Syncer:
    """Syncs the log within the time that each batch allows, and reports the synced position."""

    def __init__(
        self,
        log: Log,
        reached: Callable[[Position], None],
        failed: Callable[[Exception], None],
        meter: Meter | None = None,
    ) -> None:
        self._log = log
        self._reached = reached
        self._meter = meter
        self._failed = failed
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = 0.0
        self._wanted = asyncio.Event()
        self._closing = False
        self._written: Position = 0
        self.synced: Position = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin. The log is open."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def written(self, position: Position, within_s: float) -> None:
        """Everything up to here is written and must be synced within this time; 0: at once."""
        self._written = position
        if not within_s:
            self._wanted.set()
            return
        loop = asyncio.get_running_loop()
        at_s = loop.time() + within_s
        if self._timer is not None and self._timer_at_s <= at_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_s = at_s
        self._timer = loop.call_at(at_s, self._wanted.set)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                if self._written > self.synced:
                    began_s = perf_counter()
                    self.synced = await self._log.sync()
                    if self._meter is not None:
                        self._meter.synced(perf_counter() - began_s)
                self._reached(self.synced)
        except asyncio.CancelledError:
            if not self._closing:
                self._failed(Fatal("The engine's task was cancelled from outside."))
            raise
        except Exception as error:
            self._failed(error)
