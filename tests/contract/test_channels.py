"""The channels, held to the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duetime.channels.channel import Channel
from duetime.channels.local.inline import InlineChannel
from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.clock import SystemClock
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Outcome
from duetime.protocol.terms import Callback, Target, Task, Terms
from duetime.testing.contracts.channel import ChannelContract, ChannelRig, MakeRig
from tests.receiver import Receiver, Request, hang, http, receiving


class Function:
    """Does what the task's name says."""

    executor: Executor | None = None
    workers = 1

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    async def run(self, delivery: Deliver) -> Outcome:
        assert isinstance(delivery.terms.target, Task)
        if delivery.terms.target.name == "fail":
            raise ValueError("as it was told")
        if delivery.terms.target.name == "hang":
            self._rig.count += 1
            await asyncio.Event().wait()
        return Done()

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        raise NotImplementedError

    def outcome(self, delivery: Deliver, value: Any, error: BaseException | None) -> Outcome:
        return Done() if error is None else Failed(type(error).__name__, str(error))


class Rig:
    def __init__(self, channel: Channel, targets: dict[str, Target]) -> None:
        self.channel = channel
        self.count = 0
        self.succeeds = Terms(targets["succeed"], "lane")
        self.fails = Terms(targets["fail"], "lane")
        self.impossible = Terms(targets["impossible"], "lane")
        self.hangs = Terms(targets["hang"], "lane", timeout_ms=60_000)
        self.times_out = Terms(targets["hang"], "lane", timeout_ms=100)

    async def hanging(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.count < count:
                await asyncio.to_thread(lambda: None)


class TestInlineChannel(ChannelContract):
    @pytest.fixture
    def make_rig(self) -> MakeRig:
        @asynccontextmanager
        async def make() -> AsyncIterator[ChannelRig]:
            def find(delivery: Deliver) -> Function | None:
                known = delivery.terms.target != Task("impossible")
                return Function(rig) if known else None

            rig = Rig(
                InlineChannel(find), {name: Task(name) for name in ("succeed", "fail", "impossible", "hang")}
            )
            yield rig

        return make


async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
    status = {"/succeed": 204, "/fail": 503, "/impossible": 404}.get(request.path.partition("?")[0])
    await (hang(request, writer) if status is None else http(status)(request, writer))


class WebhookRig(Rig):
    def __init__(self, receiver: Receiver, batch: bool) -> None:
        root = receiver.url.removesuffix("/hook")
        targets: dict[str, Target] = {
            name: Callback(f"{root}/{name}", batch=batch)
            for name in ("succeed", "fail", "impossible", "hang")
        }
        channel = WebhookChannel(WebhookOptions(breaker_failures=1_000), SystemClock())
        super().__init__(channel, targets)
        self._receiver = receiver
        self._batch = batch

    async def hanging(self, count: int) -> None:
        def under_way() -> int:
            hanging = [each for each in self._receiver.requests if each.path.startswith("/hang")]
            return sum(len(each.json) if self._batch else 1 for each in hanging)

        await self._receiver.until(lambda: under_way() >= count)


class TestWebhookChannel(ChannelContract):
    @pytest.fixture
    def make_rig(self) -> MakeRig:
        @asynccontextmanager
        async def make() -> AsyncIterator[ChannelRig]:
            async with receiving(answer) as receiver:
                yield WebhookRig(receiver, batch=False)

        return make


class TestWebhookChannelInBatches(ChannelContract):
    @pytest.fixture
    def make_rig(self) -> MakeRig:
        @asynccontextmanager
        async def make() -> AsyncIterator[ChannelRig]:
            async with receiving(answer) as receiver:
                yield WebhookRig(receiver, batch=True)

        return make
