"""The options of a worker: its servers, its concurrency, and the channel that runs its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Settlement
from duetime.protocol.terms import type_lane


class FunctionRunner(Protocol):
    """Runs functions: a channel of this process."""

    def open(self, settle: Callable[[list[Settlement]], None]) -> None: ...

    def deliver(self, delivery: Deliver, taken_s: float | None = None) -> None: ...

    def flush(self) -> None: ...

    def abort(self, abort: Abort) -> None: ...

    def running(self) -> int: ...

    def hand_back(self) -> list[Deliver]: ...

    async def close(self) -> None: ...

    def left(self) -> set[tuple[str, int]]: ...


class ServerAccess(Struct):
    """The address of a server, and the credentials for it."""

    address: str
    token: str | None
    http: str | None = None
    """Its HTTP address, if the gRPC address was derived from it."""


class Listed(Struct, frozen=True):
    """A function, as a worker announces it to servers."""

    name: str
    queue: str | None
    entity: str | None
    signature: str
    schema: bytes
    """The JSON Schema of its payload; empty: unknown."""


class WorkerOptions(Struct):
    """The options of a worker."""

    name: str
    servers: list[ServerAccess]
    queues: list[str]
    concurrency: int
    drain_s: float
    start_app: bool
    """Whether the app is started too, so that functions can schedule others."""
    entities: list[str] = []
    """The entity types that it serves."""
    functions: list[Listed] = []

    @property
    def sources(self) -> list[str]:
        """The lanes that it serves."""
        return [f"task:{queue}" for queue in self.queues] + [type_lane(kind) for kind in self.entities]
