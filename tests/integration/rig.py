"""What the integration tests share: disks that can be watched or broken, and places where handlers wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from duetime import App, wiring
from duetime.engine.embedded import Embedded
from duetime.engine.engine import Engine
from duetime.log.disk import RealDisk
from duetime.log.file import FileLog

SOON = "10s"
"""How long a test waits for what must happen at once: only a failing test waits so long."""


class WatchedDisk(RealDisk):
    """The real disk; tells of every write and sync, and does what it is told at the next of them."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.before_sync: Callable[[], None] = lambda: None
        self.before_write: Callable[[], None] = lambda: None
        self.free: int | None = None

    def write(self, file: int, offset: int, parts: Any) -> int:
        self.before_write()
        written = super().write(file, offset, parts)
        self.events.append("write")
        return written

    def allocate(self, file: int, size: int, size_new: int) -> None:
        self.before_write()
        super().allocate(file, size, size_new)

    def sync_data(self, file: int) -> None:
        self.before_sync()
        super().sync_data(file)
        self.events.append("sync")

    def free_bytes(self, directory: str) -> int:
        return super().free_bytes(directory) if self.free is None else self.free


def on_disk(monkeypatch: pytest.MonkeyPatch, disk: RealDisk, **log_options: Any) -> None:
    """Put the logs of all apps that start from here on on this disk."""
    monkeypatch.setattr(wiring, "FileLog", partial(FileLog, disk=disk, **log_options))


def engine_of(app: App) -> Engine:
    assert isinstance(app.backend, Embedded)
    return app.backend.engine


class Gate:
    """A place where handlers wait until the test lets them go on; knows how many came."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._came = asyncio.Condition()
        self.count = 0

    async def wait(self) -> None:
        async with self._came:
            self.count += 1
            self._came.notify_all()
        await self._open.wait()

    async def arrived(self, count: int = 1) -> None:
        async with self._came:
            await asyncio.wait_for(self._came.wait_for(lambda: self.count >= count), 10)

    def open(self) -> None:
        self._open.set()


class ThreadGate:
    """The same for handlers in threads."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.go = threading.Event()

    def wait(self) -> None:
        self.came.set()
        assert self.go.wait(10)


@asynccontextmanager
async def running(app: App) -> AsyncIterator[App]:
    """An app that is stopped without waiting for what still runs."""
    await app.start()
    try:
        yield app
    finally:
        await app.stop(drain_ms=0)
