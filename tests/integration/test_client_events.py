"""Events as a client reads them: none lost, none twice, also when the connection is cut."""

# ruff: noqa: SIM117
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from duetime import errors
from duetime.client.http.client import Client
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous
from tests.integration.proxy import Proxy

HOUR_MS = 3_600_000
NOBODY = {"name": "nobody"}


@asynchronous
async def test_transitions_come_as_they_happen(proxy, fresh):
    id = fresh()
    async with Client(proxy.url) as client:
        await client.create(intent_id=id, delay_ms=HOUR_MS, stream=NOBODY)
        async with contextlib.aclosing(client.events(intent_id=id)) as events:
            first = await opened(proxy, events)
            await client.fire_now(id)
            event = await first
            assert (event.intent_id, event.previous_status, event.status) == (id, "SCHEDULED", "DUE")
            assert (
                event.precision_tier == "STANDARD" and event.lane == "stream:nobody" and event.at is not None
            )
            await client.cancel(id)
            assert (await events.__anext__()).status == "CANCELED"


async def opened(proxy: Proxy, events: AsyncIterator[Any]) -> asyncio.Future[Any]:
    """The first event to come of a stream that goes through this proxy, once the stream is open."""
    answered = proxy.answered
    first = asyncio.ensure_future(anext(events))
    await proxy.until(lambda: proxy.answered > answered)
    return first


def _name(event) -> tuple[str, str]:
    return event.intent_id, event.status


@asynchronous
async def test_a_cut_connection_is_taken_up_where_it_broke(proxy, server, fresh):
    tag = fresh()
    async with Client(server.url) as direct, Client(proxy.url) as client:
        async with contextlib.aclosing(client.events(status="SCHEDULED")) as events:
            got: list[tuple[str, str]] = []

            async def read(number: int) -> None:
                while len(got) < number:
                    event = await events.__anext__()
                    if event.intent_id.startswith(tag):
                        got.append(_name(event))

            reading = asyncio.ensure_future(read(1))
            await proxy.until(lambda: proxy.answered >= 1)  # the stream is open
            await direct.create(intent_id=f"{tag}.0", delay_ms=HOUR_MS, stream=NOBODY)
            await asyncio.wait_for(reading, 30)
            for number in range(1, 6):
                proxy.refuse(2)
                proxy.cut()
                await direct.create(intent_id=f"{tag}.{number}", delay_ms=HOUR_MS, stream=NOBODY)
                await asyncio.wait_for(read(number + 1), 30)
            assert got == [(f"{tag}.{number}", "SCHEDULED") for number in range(6)]


@asynchronous
async def test_a_stream_cut_before_its_first_event_misses_nothing(proxy, server, fresh):
    id = fresh()
    async with Client(server.url) as direct, Client(proxy.url) as client:
        async with contextlib.aclosing(client.events(intent_id=id)) as events:
            first = asyncio.ensure_future(events.__anext__())
            await proxy.until(lambda: proxy.answered >= 1)
            proxy.refuse(2)
            proxy.cut()
            await direct.create(intent_id=id, delay_ms=HOUR_MS, stream=NOBODY)
            assert (await asyncio.wait_for(first, 30)).status == "SCHEDULED"


@asynchronous
async def test_a_stream_resumes_after_an_event(proxy, fresh):
    one, two = fresh(), fresh()
    async with Client(proxy.url) as client:
        async with contextlib.aclosing(client.events(status="SCHEDULED")) as events:
            first = await opened(proxy, events)
            await client.create(intent_id=one, delay_ms=HOUR_MS, stream=NOBODY)
            event = await asyncio.wait_for(first, 30)
        await client.create(intent_id=two, delay_ms=HOUR_MS, stream=NOBODY)
        async with contextlib.aclosing(client.events(status="SCHEDULED", after=event.event_id)) as again:
            assert (await asyncio.wait_for(again.__anext__(), 30)).intent_id == two
        with pytest.raises(errors.BadQuery):
            await client.events(after="nonsense").__anext__()


def test_plain_programs_read_events_too(server, fresh):
    id = fresh()
    with Client(server.url) as client:
        client.create(intent_id=id, delay_ms=HOUR_MS, stream=NOBODY).wait()
        with Listener(server) as listener:  # events are kept from the first listener on
            made = client.create(delay_ms=HOUR_MS, stream=NOBODY).wait()
            mark = listener.until(lambda seen: seen.data["intentId"] == made.intent_id).id
        client.cancel(id).wait()
        events = client.events(intent_id=id, after=mark)
        assert next(events).status == "CANCELED"
        events.close()


@asynchronous
async def test_a_restarted_server_is_followed_and_a_gap_is_reported(tmp_path):
    with ServerProcess(tmp_path / "data") as server, Proxy(server.url) as proxy:
        port = server.url.rpartition(":")[2]
        async with Client(proxy.url) as client:
            async with contextlib.aclosing(client.events(status="SCHEDULED", reconnect_s=60)) as events:
                first = await opened(proxy, events)
                await client.create(intent_id="before", delay_ms=HOUR_MS, stream=NOBODY)
                assert (await asyncio.wait_for(first, 30)).intent_id == "before"
                server.kill()
                with ServerProcess(tmp_path / "data", "--port", port):
                    assert (await asyncio.wait_for(events.__anext__(), 60)).gap
                    await client.create(intent_id="after", delay_ms=HOUR_MS, stream=NOBODY)
                    assert (await asyncio.wait_for(events.__anext__(), 30)).intent_id == "after"


@asynchronous
async def test_a_server_that_does_not_return_is_an_error(tmp_path):
    with ServerProcess(tmp_path / "data") as server, Proxy(server.url) as proxy:
        async with Client(proxy.url) as client:
            events = client.events(reconnect_s=0.5)
            first = await opened(proxy, events)
            server.kill()
            with pytest.raises(errors.Unreachable):
                await asyncio.wait_for(first, 30)
