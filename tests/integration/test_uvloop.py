"""The same on uvloop, which many web applications run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from duetime import App, errors
from duetime.client.http.client import Client
from tests.receiver import Say

uvloop = pytest.importorskip("uvloop")
TEST_S = 60


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), TEST_S))


def test_embedded(tmp_path):
    app = App(tmp_path / "data")

    @app.task(tier="ULTRA")
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    def triple(number: int) -> int:
        return 3 * number

    async def main() -> None:
        async with app:
            soon = await double.delay("20ms").schedule(4)
            assert (await soon.result("30s"), await (await triple.schedule(4)).result("30s")) == (8, 12)
            waits = await double.delay("1h").schedule(1)
            with pytest.raises(errors.WaitTimedOut):
                await waits.result("10ms")

    run(main)


def test_with_a_server(server, hooks, fresh):
    path = fresh()
    url = hooks.says(path, Say(200, b'{"done": true}'))
    app = App(server.url)

    @app.task(queue=fresh())
    def later(number: int) -> None: ...

    async def main() -> None:
        async with app, Client(server.url) as client:
            one = await later.delay("1h").schedule(1)
            many = await later.delay("1h").schedule_many([(n,) for n in range(2_500)])
            assert len({one.id, *(each.id for each in many)}) == 2_501
            assert (await client.cancel(one.id)).status == "CANCELED"
            called = await client.create(delay_ms=0, callback={"url": url})
            assert await app.handle(called.intent_id).result("30s") == {"done": True}

    run(main)


def test_a_refused_connection_is_an_error():
    async def main() -> None:
        with pytest.raises(errors.Unreachable, match="cannot be reached"):
            async with Client("http://127.0.0.1:1", tries=1) as client:
                await client.health()

    run(main)
