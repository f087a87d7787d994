"""One host: its queue, its connections, its breaker, and what each of its endpoints gets of it.

A slow host slows down nobody but itself.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from duetime.channels.webhook.batch import Item
from duetime.channels.webhook.breaker import Breaker
from duetime.channels.webhook.calls import Plan
from duetime.channels.webhook.shares import Shares

# How long a call that waits for its endpoint's share does so, at most, before it is looked at again.
_LOOK_S = 1.0


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

    They are carried by runners, each a task that takes one call after another and ends when none is left. One
    whose endpoint has its share of the host is put aside until a call has ended.
    """

    __slots__ = (
        "_aside", "_carry", "_limit", "_look", "_loop", "_starting", "breaker", "origin", "queue", "runners",
        "shares", "used_s",
    )  # fmt: skip

    def __init__(self, origin: str, limit: int, breaker: Breaker, shares: Shares, carry: Carrier) -> None:
        self.origin = origin
        self.breaker = breaker
        self.shares = shares
        self._aside: list[Call] = []
        self._look: asyncio.TimerHandle | None = None
        self.queue: deque[Call] = deque()
        self.runners: set[asyncio.Task[None]] = set()
        self.used_s = 0.0
        self._limit = limit
        self._carry = carry
        self._starting = 0
        self._loop = asyncio.get_running_loop()

    @property
    def idle(self) -> bool:
        return not self.queue and not self.runners and not self._aside

    def start(self) -> None:
        """See to it that what waits is carried, within the limit."""
        wanted = min(len(self.queue) - self._starting, self._limit - len(self.runners))
        for _ in range(wanted):
            self._starting += 1
            runner = self._loop.create_task(self._run(), context=contextvars.Context())
            self.runners.add(runner)
            runner.add_done_callback(self._ended)

    def put_aside(self, call: Call) -> None:
        """Its endpoint has its share: it waits for a call to end, and is looked at again before long."""
        self._aside.append(call)
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_S, self._look_again)

    def ended(self, plan: Plan, now_s: float, *, answered: bool) -> None:
        """A call is over: the first that may go now goes next."""
        self.shares.ended(plan, now_s, answered=answered)
        if self._aside and self.shares.alone(now_s):  # it has answered, and nobody else wants a share
            self._take_up()
            return
        for place, call in enumerate(self._aside):
            if not self.shares.full(call.plan, now_s):
                self.queue.appendleft(self._aside.pop(place))
                return

    def _look_again(self) -> None:
        self._look = None
        self._take_up()

    def _take_up(self) -> None:
        """What was put aside is looked at again, before what came later."""
        self.queue.extendleft(reversed(self._aside))
        self._aside.clear()
        self.start()

    def close(self) -> list[asyncio.Task[None]]:
        """Carry nothing more; those that still run are given back, cancelled."""
        self.queue.clear()
        self._aside.clear()
        if self._look is not None:
            self._look.cancel()
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
