"""One host: its queue, its connections, its breaker. A slow host slows down nobody but itself."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from duetime.channels.batch import Item
from duetime.channels.breaker import Breaker
from duetime.channels.calls import Plan


class Call:
    """One request that waits or is under way; of a batch it carries many deliveries."""

    __slots__ = ("items", "plan", "task")

    def __init__(self, plan: Plan, items: list[Item]) -> None:
        self.plan = plan
        self.items = items
        self.task: asyncio.Task[None] | None = None
        """Who carries it, once it is under way."""


Carrier = Callable[["Host", Call, asyncio.Task[None]], Coroutine[Any, Any, None]]


class Host:
    """Calls to one host, in the order they came, as many at a time as there may be connections.

    They are carried by runners, each a task that takes one call after another and ends when none is left.
    """

    __slots__ = ("_carry", "_limit", "_loop", "_starting", "breaker", "origin", "queue", "runners", "used_s")

    def __init__(self, origin: str, limit: int, breaker: Breaker, carry: Carrier) -> None:
        self.origin = origin
        self.breaker = breaker
        self.queue: deque[Call] = deque()
        self.runners: set[asyncio.Task[None]] = set()
        self.used_s = 0.0
        self._limit = limit
        self._carry = carry
        self._starting = 0
        self._loop = asyncio.get_running_loop()

    @property
    def idle(self) -> bool:
        return not self.queue and not self.runners

    def start(self) -> None:
        """See to it that what waits is carried, within the limit."""
        wanted = min(len(self.queue) - self._starting, self._limit - len(self.runners))
        for _ in range(wanted):
            self._starting += 1
            runner = self._loop.create_task(self._run(), context=contextvars.Context())
            self.runners.add(runner)
            runner.add_done_callback(self._ended)

    def close(self) -> list[asyncio.Task[None]]:
        """Carry nothing more; those that still run are given back, cancelled."""
        self.queue.clear()
        for runner in self.runners:
            runner.cancel()
        return list(self.runners)

    async def _run(self) -> None:
        self._starting -= 1
        runner = asyncio.current_task()
        assert runner is not None
        while self.queue and not runner.cancelling():
            await self._carry(self, self.queue.popleft(), runner)

    def _ended(self, runner: asyncio.Task[None]) -> None:
        self.runners.discard(runner)
        if not runner.cancelled() and (error := runner.exception()) is not None:
            self._loop.call_exception_handler({"message": "A webhook's runner failed", "exception": error})
        if self.queue:  # an aborted call took its runner with it: another goes on
            self.start()
