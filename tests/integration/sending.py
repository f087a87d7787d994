"""A webhook channel under test: its outcomes are kept and can be waited for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.channels.webhook.shares import host_share
from duetime.clock import Clock, SystemClock
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Outcome, Settlement
from duetime.protocol.terms import Callback, Terms, Tier


class Sending:
    """A channel whose outcomes are kept, and can be waited for."""

    def __init__(self, channel: WebhookChannel) -> None:
        self.channel = channel
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.waited_ms: dict[str, int] = {}
        self.order: list[str] = []
        self.turns = 0
        """How often outcomes were handed in."""
        self._more = asyncio.Event()
        channel.open(self._settle)

    def _settle(self, settlements: list[Settlement]) -> None:
        self.turns += 1
        for each in settlements:
            place = (each.id, each.delivery)
            assert place not in self.outcomes, f"{place} was answered twice"
            self.outcomes[place] = each.outcome
            self.waited_ms[each.id] = each.waited_ms
            self.order.append(each.id)
        self._more.set()

    def deliver(self, callback: Callback, *ids: str, **more: Any) -> None:
        """Deliver intents with these ids; `more` goes to `delivery`."""
        for id in ids:
            self.channel.deliver(delivery(callback, id, **more))
        self.channel.flush()

    async def send(self, callback: Callback, id: str = "i", **more: Any) -> Outcome:
        """Deliver one and wait for its outcome."""
        self.deliver(callback, id, **more)
        return await self.outcome(id, more.get("number", 1))

    async def outcome(self, id: str, number: int = 1) -> Outcome:
        await self.until(lambda: (id, number) in self.outcomes)
        return self.outcomes[id, number]

    async def answered(self, count: int) -> None:
        await self.until(lambda: len(self.outcomes) >= count)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._more.clear()
                await self._more.wait()


def delivery(
    callback: Callback,
    id: str = "i",
    *,
    number: int = 1,
    attempt: int = 1,
    payload: bytes = b'{"n":1}',
    timeout_ms: int = 10_000,
    deadline_ms: int = 0,
    tier: Tier = Tier.ULTRA,
    tags: dict[str, str] | None = None,
    traceparent: str | None = None,
) -> Deliver:
    terms = Terms(callback, "callback:", tier, timeout_ms=timeout_ms, tags=tags)
    return Deliver(id, number, attempt, terms, payload, 1_893_456_000_042, 7, deadline_ms, traceparent, "")


@asynccontextmanager
async def sending(
    clock: Clock | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    tracer: Any = None,
    on_call: Any = None,
    slots: Callable[[int], int] = host_share,
    **options: Any,
) -> AsyncIterator[Sending]:
    """A channel with these options, closed at the end with nothing left behind."""
    before = asyncio.all_tasks()
    channel = WebhookChannel(
        WebhookOptions(**options),
        clock or SystemClock(),
        tls=tls,
        tracer=tracer,
        on_call=on_call,
        slots=slots,
    )
    rig = Sending(channel)
    try:
        yield rig
    finally:
        await channel.close()
    assert channel.running() == 0
    ours = {task for task in asyncio.all_tasks() - before if "Host._run" in repr(task)}
    assert not ours, f"the channel left tasks behind: {ours}"
