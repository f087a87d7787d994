"""A receiver of webhooks that outlives the server: it notes everything that comes, and when it answered.

The path says how it answers: `/plain` at once, `/slow` after a moment, `/flaky` not the first time, `/many`
to arrays of callbacks.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from typing import Any, NamedTuple

from duetime.clock import SystemClock

SLOW_S = 0.03


class Arrival(NamedTuple):
    """One delivery, as it was noted before it was answered."""

    place: int
    round: int
    mark: str
    id: str
    delivery: int
    attempt: int
    at_ms: int
    execute_at: str
    path: str


class Hook:
    """Listens in a thread of its own."""

    def __init__(self) -> None:
        self.round = 0
        self.arrivals: list[Arrival] = []
        self.answered: dict[int, tuple[int, int]] = {}
        """By the arrival's place: the status, and when it was sent."""
        self.port = 0
        self._clock = SystemClock()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def __enter__(self) -> Hook:
        self._thread.start()
        assert self._up.wait(20)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._up.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                path = head.split(" ", 2)[1].lstrip("/")
                length = int(head.split("content-length: ", 1)[1].split("\r\n", 1)[0])
                said = json.loads(await reader.readexactly(length))
                places = [self._note(path, each) for each in (said if isinstance(said, list) else [said])]
                status = await self._status(path, said)
                writer.write(b"HTTP/1.1 %d Whatever\r\ncontent-length: 0\r\n\r\n" % status)
                await writer.drain()
                for place in places:
                    self.answered[place] = (status, self._clock.now_ms())
        writer.close()

    def _note(self, path: str, body: Any) -> int:
        place = len(self.arrivals)
        mark = (body["payload"] or {}).get("mark", "")
        what = (body["intentId"], body["delivery"], body["attempt"])
        self.arrivals.append(
            Arrival(place, self.round, mark, *what, self._clock.now_ms(), body["executeAt"], path)
        )
        return place

    async def _status(self, path: str, said: Any) -> int:
        if path == "slow":
            await asyncio.sleep(SLOW_S)  # tidy: work that takes time, so that a kill finds some
        return 425 if path == "flaky" and said["attempt"] == 1 else 200
