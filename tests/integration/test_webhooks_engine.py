"""Webhooks from submit to the end, through a whole engine: how often, until when, with what result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.clock import SystemClock
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.limits import TIME_MS_MAX
from duetime.log.memory import MemoryLog
from duetime.protocol.command import Cancel
from duetime.protocol.intent import Item, Status
from duetime.protocol.terms import AckLevel, Callback, ExpiredAction, Redelivery, Terms, Tier
from duetime.protocol.view import View
from duetime.store.memory import MemoryStore
from tests.receiver import hang, http, receiving

QUICK = Redelivery(max_attempts=3, initial_delay_ms=1, max_delay_ms=1, jitter=False)


class Rig:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def submit(self, callback: Callback, *ids: str, deadline_in_ms: int = 0, **more: Any) -> None:
        more = {"tier": Tier.ULTRA, "redelivery": QUICK, **more}
        terms = Terms(callback, "callback:", ack=AckLevel.ASYNC, **more)
        now_ms = self.engine.now_ms()
        deadline_ms = now_ms + deadline_in_ms if deadline_in_ms else 0
        items = tuple(Item(id, 0, now_ms, b"{}", deadline_ms) for id in ids)
        await self.engine.submit((terms,), items, AckLevel.ASYNC)

    async def ended(self, id: str) -> View:
        return await asyncio.wait_for(self.engine.wait(id), 10)


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Rig]:
    channel = WebhookChannel(WebhookOptions(**options), SystemClock())
    dispatcher = Dispatcher({Callback: channel})
    engine = Engine(
        MemoryLog(), MemoryStore(), SystemClock(), dispatcher, EngineOptions(horizon_ms=TIME_MS_MAX)
    )
    await engine.start()
    try:
        yield Rig(engine)
    finally:
        await engine.close(drain_ms=0)


def test_no_content_is_success_and_is_not_sent_again():
    async def main():
        async with receiving(http(204)) as receiver, running() as rig:
            await rig.submit(Callback(receiver.url), "a")
            view = await rig.ended("a")
            assert view.status is Status.ACKED and view.attempts == 1 and view.result is None
            receiver.answer = http(200, b'{"n": 1}')
            await rig.submit(Callback(receiver.url), "b")
            assert (await rig.ended("b")).result == b'{"n": 1}'
            assert len(receiver.requests) == 2

    asyncio.run(main())


def test_a_server_error_is_retried_up_to_the_maximum():
    async def main():
        async with receiving(http(503, b"down")) as receiver, running() as rig:
            await rig.submit(Callback(receiver.url), "a")
            view = await rig.ended("a")
            assert view.status is Status.DEAD_LETTERED and view.attempts == 3
            assert view.last_error is not None and view.last_error.http_status == 503
            assert [each.json["attempt"] for each in receiver.requests] == [1, 2, 3]

    asyncio.run(main())


def test_an_open_breaker_costs_no_attempts():
    async def main():
        async with receiving(http(503)) as receiver, running(breaker_failures=1, breaker_open_ms=10) as rig:
            await rig.submit(Callback(receiver.url), "opens", redelivery=Redelivery(max_attempts=1))
            assert (await rig.ended("opens")).status is Status.DEAD_LETTERED
            receiver.answer = http()
            await rig.submit(Callback(receiver.url), *(f"i{n}" for n in range(5)))
            late_ms = {}
            for n in range(5):
                view = await rig.ended(f"i{n}")
                assert view.status is Status.ACKED and view.attempts == 1
                late_ms[view.id] = view.late_ms
                assert view.first_dispatch_at_ms == view.execute_at_ms + (view.late_ms or 0)
            assert sum((each or 0) >= 1_000 for each in late_ms.values()) >= 4, (
                "those that were held back are late"
            )
            said = {each.json["intentId"]: each.json["lateMs"] for each in receiver.requests[1:]}
            assert said == late_ms, "the receiver was told the same"

    asyncio.run(main())


def test_a_path_that_hangs_does_not_starve_the_others_on_its_host():
    """More than the host's share of the tier hangs, and was due first; its time limit is far away."""

    async def main():
        async def answer(request, writer):
            await (hang if request.path == "/hang" else http())(request, writer)

        async with receiving(answer) as receiver, running() as rig:
            url = receiver.url.removesuffix("/hook")
            hanging = [f"hang{n}" for n in range(100)]
            await rig.submit(Callback(f"{url}/hang"), *hanging, tier=Tier.STANDARD)
            await receiver.got(32)
            await rig.submit(Callback(f"{url}/fine"), *(f"i{n}" for n in range(30)), tier=Tier.STANDARD)
            for n in range(30):
                assert (await rig.ended(f"i{n}")).status is Status.ACKED
            called = [each.path for each in receiver.requests]
            assert called.count("/hang") == 32, "four fifths of the 40 that the host gets of the tier"
            views = [rig.engine.reads.get(id) for id in hanging]
            held = [view for view in views if view is not None and view.status is Status.SCHEDULED]
            assert held and all(view.attempts == 0 for view in held), "their attempts are given back"
            why = rig.engine.reads.why(held[0].id)
            assert why is not None and why.code == "snoozed"
            assert "/hang has 32 calls under way and has answered none for" in why.sentence
            assert "the rest of the 40 calls of its host is left to others" in why.sentence

    asyncio.run(main())


def test_in_a_batch_each_item_goes_its_own_way():
    async def main():
        async def answer(request, writer):
            entries = [
                {"intentId": each["intentId"], "status": each["intentId"].upper().rstrip("0123456789")}
                for each in request.json
                if each["intentId"] != "silent" and (each["attempt"] == 1 or each["intentId"] == "failed")
            ]
            await http(200, msgspec.json.encode({"results": entries}))(request, writer)

        async with receiving(answer) as receiver, running() as rig:
            callback = Callback(receiver.url, batch=True)
            await rig.submit(callback, "acked", "retry", "dead_letter", "expired", "failed", "silent")
            views = {
                id: await rig.ended(id)
                for id in ("acked", "retry", "dead_letter", "expired", "failed", "silent")
            }
            assert {id: (view.status, view.attempts) for id, view in views.items()} == {
                "acked": (Status.ACKED, 1),
                "silent": (Status.ACKED, 1),
                "retry": (Status.ACKED, 2),
                "dead_letter": (Status.DEAD_LETTERED, 1),
                "expired": (Status.EXPIRED, 1),
                "failed": (Status.DEAD_LETTERED, 3),
            }

    asyncio.run(main())


def test_a_deadline_that_passes_in_the_queue_of_a_slow_host_is_an_expiry():
    async def main():
        async with receiving(hang) as receiver, running(connections_per_host_max=1) as rig:
            await rig.submit(Callback(receiver.url), "slow", timeout_ms=300, redelivery=Redelivery(1))
            await receiver.got(1)
            last = Redelivery(max_attempts=1)
            await rig.submit(Callback(receiver.url), "late", deadline_in_ms=50, redelivery=last)
            await rig.submit(
                Callback(receiver.url),
                "kept",
                deadline_in_ms=50,
                redelivery=last,
                expired_action=ExpiredAction.DEAD_LETTER,
            )
            assert (await rig.ended("late")).status is Status.EXPIRED
            assert (await rig.ended("kept")).status is Status.DEAD_LETTERED
            assert len(receiver.requests) == 1

    asyncio.run(main())


def test_cancelling_cuts_a_call_off():
    async def main():
        async with receiving(hang) as receiver, running() as rig:
            await rig.submit(Callback(receiver.url), "a")
            await receiver.got(1)
            await rig.engine.ask(Cancel("a"))
            assert (await rig.ended("a")).status is Status.CANCELED
            await receiver.until(lambda: receiver.closed == 1)
            await asyncio.wait_for(rig.engine.quiet(), 10)

    asyncio.run(main())


def test_a_thousand_in_batches():
    async def main():
        async with receiving(http()) as receiver, running() as rig:
            ids = [f"i{n}" for n in range(1_000)]
            await rig.submit(Callback(receiver.url, batch=True), *ids)
            for id in ids:
                assert (await rig.ended(id)).status is Status.ACKED
            sent = [each["intentId"] for request in receiver.requests for each in request.json]
            assert sorted(sent) == sorted(ids)

    asyncio.run(main())
