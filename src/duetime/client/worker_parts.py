"""What a worker is made of: where it works, how much, and what runs its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Settlement


class Running(Protocol):
    """What runs functions: a channel of this process."""

    def open(self, settle: Callable[[list[Settlement]], None]) -> None: ...

    def deliver(self, delivery: Deliver) -> None: ...

    def flush(self) -> None: ...

    def abort(self, abort: Abort) -> None: ...

    def running(self) -> int: ...

    def hand_back(self) -> list[Deliver]: ...

    async def close(self) -> None: ...


class Server(Struct):
    """Where a server is, and what it wants to see."""

    address: str
    token: str | None


class WorkerOptions(Struct):
    """How a worker works."""

    name: str
    servers: list[Server]
    queues: list[str]
    concurrency: int
    drain_s: float
    start_app: bool
    """Whether the app is started too, so that functions can schedule others."""
