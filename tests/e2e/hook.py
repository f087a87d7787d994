"""Deliveries as noted by a webhook receiver that outlives the server, and when each was answered.

The path says how it answers: `/plain` at once, `/slow` after a moment, `/flaky` not the first time, `/many`
to arrays of callbacks.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any, NamedTuple

from duetime.clock import SystemClock
from tests.receiver import Receiver, Request, http, receiving_in_thread

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
    """Notes each delivery, then answers it as its path says."""

    def __init__(self) -> None:
        self.round = 0
        self.arrivals: list[Arrival] = []
        self.answered: dict[int, tuple[int, int]] = {}
        """By the arrival's place: the status, and when it was sent."""
        self._clock = SystemClock()
        self._stack = ExitStack()
        self._receiver: Receiver

    def url(self, path: str) -> str:
        return self._receiver.url_of(path)

    def __enter__(self) -> Hook:
        self._receiver = self._stack.enter_context(receiving_in_thread(self._answer))
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        path, body = request.path.lstrip("/"), request.json
        places = [self._note(path, each) for each in (body if isinstance(body, list) else [body])]
        status = await self._status(path, body)
        await http(status)(request, writer)
        for place in places:
            self.answered[place] = (status, self._clock.now_ms())

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
