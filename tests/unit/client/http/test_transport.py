"""What waits for a server can be told to stop at any moment."""

from __future__ import annotations

import asyncio

import pytest

from duetime.client.http.sse import Parser
from duetime.client.http.transport import Transport
from tests.integration.asynchronous import asynchronous


@asynchronous
async def test_reading_stops_also_when_a_line_comes_at_that_moment():
    lines = asyncio.StreamReader()
    events = Transport("http://127.0.0.1:1")._events(lines, Parser(""))
    reading = asyncio.ensure_future(anext(events))
    asking = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(asking.set_result, None)
    await asking  # by now it waits for a line
    lines.feed_data(b": not an event\n")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(reading, 10)
