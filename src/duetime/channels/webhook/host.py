"""One host: its queue, its connections, its breaker, and the share of each endpoint.

A slow host delays only its own calls.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from duetime.channels.webhook.batch import Item
from duetime.channels.webhook.breaker import Breaker
from duetime.channels.webhook.calls import CallPlan
from duetime.channels.webhook.shares import HostShares
from duetime.limits import HOST_CHECK_S


class WebhookCall:
    """One request that waits or is in flight; a batch carries many deliveries."""

    __slots__ = ("items", "plan", "task")

    def __init__(self, plan: CallPlan, items: list[Item]) -> None:
        self.plan = plan
        self.items = items
        self.task: asyncio.Task[None] | None = None
        """The task that makes the call, once it is in flight."""


Carrier = Callable[["Host", WebhookCall, asyncio.Task[None]], Coroutine[Any, Any, None]]


class Host:
    """Calls to one host, in the order of arrival, as many at a time as there may be connections.

    They are made by runners: tasks that take one call after another and end when none is left. A call whose
    endpoint has used its share of the host is set aside until another call has ended.
    """

    __slots__ = (
        "_aside", "_carry", "_limit", "_look", "_loop", "_starting", "breaker", "origin", "queue", "runners",
        "shares", "used_s",
    )  # fmt: skip

    def __init__(self, origin: str, limit: int, breaker: Breaker, shares: HostShares, carry: Carrier) -> None:
        self.origin = origin
        self.breaker = breaker
        self.shares = shares
        self._aside: list[WebhookCall] = []
        self._look: asyncio.TimerHandle | None = None
        self.queue: deque[WebhookCall] = deque()
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
        """Start runners for the waiting calls, within the limit."""
        wanted = min(len(self.queue) - self._starting, self._limit - len(self.runners))
        for _ in range(wanted):
            self._starting += 1
            runner = self._loop.create_task(self._run(), context=contextvars.Context())
            self.runners.add(runner)
            runner.add_done_callback(self._ended)

    def put_aside(self, call: WebhookCall) -> None:
        """Its endpoint has used its share: the call waits for another to end, and is checked again soon."""
        self._aside.append(call)
        if self._look is None:
            self._look = self._loop.call_later(HOST_CHECK_S, self._look_again)

    def ended(self, plan: CallPlan, now_s: float, *, answered: bool) -> None:
        """A call is over: the first that may go now goes next."""
        self.shares.ended(plan, now_s, answered=answered)
        if self._aside and self.shares.alone(now_s):  # it has answered, and no other endpoint wants a share
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
        """Check the calls that were set aside again, before later ones."""
        self.queue.extendleft(reversed(self._aside))
        self._aside.clear()
        self.start()

    def close(self) -> list[asyncio.Task[None]]:
        """Make no more calls; returns the tasks still running, cancelled."""
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
        if self.queue:  # an aborted call ended its runner: start another
            self.start()
