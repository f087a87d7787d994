"""Waiting: for states that are no events, and for the server's own time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.http.server import ServerProcess
from tests.receiver import Hooks

T = TypeVar("T")
WAIT_S = 30


def until(look: Callable[[], T]) -> T:
    """Ask a server until the answer is yes. For progress, the duration model and free connections: none of
    these is an event that the server sends."""
    for _ in range(3 * WAIT_S * 20):
        found = look()
        if found:
            return found
        time.sleep(0.05)  # tidy: the server sends no event
    raise AssertionError("it did not come to it in time")


class ServerClock:
    """Lets time pass by the server's own clock: an intent is due then, and its callback tells."""

    def __init__(self, server: ServerProcess, hooks: Hooks) -> None:
        self._server = server
        self._hooks = hooks

    def advance(self, ms: int) -> None:
        self._server.create(delayMs=ms, callback={"url": self._hooks.url("clock")})
        self._hooks.take("clock", ms / 1000 + WAIT_S)
