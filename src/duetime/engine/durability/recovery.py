"""From a folder to a kernel: the checkpoint, then the tail of the log. The same result every time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from duetime.engine.timing.window import reach
from duetime.errors import Damaged, TooNew
from duetime.kernel.kernel import Kernel
from duetime.limits import RECOVERY_TURN_BYTES
from duetime.log.frame import Frame
from duetime.log.log import Foldered, Position
from duetime.protocol import record as codec
from duetime.protocol.command import RULES, Start
from duetime.protocol.record import Record, Unreadable
from duetime.store.store import FolderStore, Store


class Tape(Protocol):
    """The part of a log that is needed to read it: an open log, or an inspection of its files."""

    async def start(self) -> Position: ...

    async def tail(self) -> Position: ...

    def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]: ...


async def recover(
    log: Tape, store: Store, progress: Callable[[int], None] | None = None
) -> tuple[Kernel, Position]:
    """The kernel as of the last record, and the position after it."""
    kernel = Kernel(store)
    return kernel, await recover_into(kernel, log, store, progress)


async def recover_into(
    kernel: Kernel, log: Tape, store: Store, progress: Callable[[int], None] | None = None
) -> Position:
    """Bring a new kernel up to the last record; gives the position after it. Its effects need not be carried
    out: the `Start` of a new epoch hands out again what was in flight."""
    checkpoint = store.load()
    _check_folder(log, store)
    position = await log.start()
    if checkpoint is not None:
        if checkpoint.rules > RULES:
            raise TooNew(f"The checkpoint follows the rules of version {checkpoint.rules}, not {RULES}.")
        for _ in kernel.thawing(checkpoint):
            await asyncio.sleep(0)  # tidy: a server answers that it is not ready yet
        if checkpoint.position < position or checkpoint.position > await log.tail():
            raise Damaged(
                f"The store's checkpoint is at {checkpoint.position}, but the log goes from {position} to"
                f" {await log.tail()}: they do not belong together, or one of them is older than the other."
            )
        position = checkpoint.position
    elif position > 0:
        raise Damaged(f"The log begins at {position}, and the store has no checkpoint for what was before.")
    turn_at = position + RECOVERY_TURN_BYTES
    async for place, frame in log.read(position):
        await reach(kernel.state.timers, frame.at_ms)
        _replay(kernel, place, frame.first, frame.count, frame.at_ms, frame.body)
        if place >= turn_at:
            turn_at = place + RECOVERY_TURN_BYTES
            await asyncio.sleep(0)
        if progress is not None:
            progress(kernel.state.records)
    return await log.tail()


def _check_folder(log: Tape, store: Store) -> None:
    """Refuse a store and a log of two different folders. In memory neither has a folder."""
    if isinstance(log, Foldered) and isinstance(store, FolderStore) and log.identity:
        store.join(log.identity)


def _replay(kernel: Kernel, place: Position, first: int, count: int, at_ms: int, body: bytes) -> None:
    try:
        commands = codec.decode(body)
    except Unreadable as error:
        raise Damaged(
            f"The records at position {place} cannot be read: {error}.",
            hint="They may come from a newer version of Duetime: upgrade, or restore from a backup.",
        ) from error
    if len(commands) != count or first != kernel.state.records + 1:
        raise Damaged(f"The frame at position {place} does not follow the record {kernel.state.records}.")
    for number, command in enumerate(commands, first):
        if isinstance(command, Start) and command.rules > RULES:
            raise TooNew(f"Record {number} follows the rules of version {command.rules}, not {RULES}.")
        kernel.apply(Record(number, at_ms, command), watched=False)
