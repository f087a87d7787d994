"""The reference log: a list in memory. Tests compare every other engine with it.

Handles made on the same `Storage` see the same log, as two processes would: tests use this to act as
a stale writer and to restart. Positions grow by the size a frame would have in a file, so that no caller
can rely on counting them by one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from duetime.errors import Damaged, Moved
from duetime.log.frame import Frame, frame_bytes
from duetime.log.log import Position


class Storage:
    """The part that survives when a handle is dropped."""

    def __init__(self) -> None:
        self.frames: list[tuple[Position, Frame]] = []
        self.tail: Position = 0


class MemoryLog:
    """Frames in a list."""

    def __init__(self, storage: Storage | None = None) -> None:
        self.storage = storage if storage is not None else Storage()

    async def open(self) -> None:
        pass

    async def start(self) -> Position:
        return self.storage.frames[0][0] if self.storage.frames else self.storage.tail

    async def tail(self) -> Position:
        return self.storage.tail

    async def append(self, at: Position, frame: Frame) -> Position:
        storage = self.storage
        if at != storage.tail:
            raise Moved(f"The log's tail is {storage.tail}, not {at}.", tail=storage.tail)
        storage.tail += frame_bytes(frame)
        storage.frames.append((at, frame))
        return storage.tail

    async def sync(self) -> Position:
        return self.storage.tail

    def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]:
        return self._read(start, self.storage.tail, list(self.storage.frames))

    async def _read(
        self, start: Position, tail: Position, frames: list[tuple[Position, Frame]]
    ) -> AsyncIterator[tuple[Position, Frame]]:
        if start != tail and start not in (position for position, _ in frames):
            raise Damaged(f"No frame starts at {start}: it is trimmed, not written yet, or inside a frame.")
        for position, frame in frames:
            if position >= start:
                yield position, frame

    async def trim(self, below: Position) -> None:
        self.storage.frames[:] = [kept for kept in self.storage.frames if kept[0] >= below]

    async def close(self) -> None:
        pass
