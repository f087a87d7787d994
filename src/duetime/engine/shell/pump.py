"""Append, apply. The shell then orders what to do.

The pump owns the position and the kernel. It awaits nothing but the log, so the simulator can run it
without an event loop. If anything goes wrong after a frame was written, the kernel cannot be trusted
any more: `broken` is set, and only a new pump, recovered from the log, may continue.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter  # tidy: how long it took, not what time it is

from msgspec import Struct

from duetime.clock import Clock, ahead_of
from duetime.engine.shell.inbox import PumpBatch
from duetime.errors import Fatal, InDoubt, InvalidField, TooLarge
from duetime.kernel.kernel import Kernel
from duetime.limits import DOUBTS_MAX, FRAME_BYTES_MAX, LEAP_MS
from duetime.log.frame import Frame
from duetime.log.log import Log, Position
from duetime.protocol import record as codec
from duetime.protocol.command import Command, Leap
from duetime.protocol.effect import Change, Effect, Voided
from duetime.protocol.record import Record
from duetime.protocol.reply import Answer


class Turn(Struct):
    """The result of one batch. `position` is the place after it: once synced up to there, it is durable."""

    batch: PumpBatch
    position: Position
    at_ms: int
    answers: list[Answer]
    effects: list[Effect]
    changes: list[Change]
    voided: list[Voided]
    append_s: float = 0.0
    """How long the append took."""


def _encode(batch: PumpBatch) -> bytes:
    """The encoded batch. A batch that cannot be written is refused before anything is."""
    try:
        body = codec.encode(batch.commands)
    except Exception as error:
        raise InvalidField(f"The command cannot be stored: {error}.") from error
    if len(body) > FRAME_BYTES_MAX:
        raise TooLarge(f"The command takes {len(body)} bytes on the log; {FRAME_BYTES_MAX} are allowed.")
    return body


class Pump:
    """Batches go in, turns come out."""

    def __init__(
        self, log: Log, kernel: Kernel, clock: Clock, position: Position, nonce: Callable[[], int]
    ) -> None:
        self._log = log
        self._clock = clock
        self._nonce = nonce
        self._ahead_of = ahead_of(clock)
        self._ahead_ms: int | None = None
        """How far the clock was ahead of the steady one at the last turn."""
        self._still_ms = 0
        self.stood_still: Callable[[], int] = lambda: 0
        """Called before each turn: for how long no heartbeat could arrive since the last call."""
        self.watched: Callable[[], bool] = lambda: True
        """Called after each append, so that a waiter that registers during a slow append counts: whether
        changes are wanted."""
        self.kernel = kernel
        self.position = position
        self.broken: Exception | None = None

    async def turn(self, batch: PumpBatch, epoch: int = 0) -> Turn:
        """Write a batch and apply it. `NoSpace` leaves everything as it was; other errors are final."""
        assert self.broken is None, "a broken pump is thrown away"
        state = self.kernel.state
        ahead_ms = self._ahead_of()
        self._notice(batch, ahead_ms)
        body = _encode(batch)
        frame = Frame(
            epoch or state.epoch,
            self._nonce(),
            state.records + 1,
            len(batch.commands),
            self._clock.now_ms(),
            batch.ack,
            body,
        )
        began_s = perf_counter()
        position = await self._append(frame)
        try:
            turn = Turn(batch, position, frame.at_ms, [], [], [], [], perf_counter() - began_s)
            watched = self.watched()
            for command in batch.commands:
                self._apply(turn, command, watched)
        except Exception as error:
            self.broken = error
            raise Fatal(f"The kernel failed on a record at position {self.position}: {error!r}.") from error
        self.position = position
        self._ahead_ms, self._still_ms = ahead_ms, 0
        return turn

    def _notice(self, batch: PumpBatch, ahead_ms: int) -> None:
        """Put a `Leap` first if the clock was set or the engine stood still since the last turn."""
        self._still_ms += self.stood_still()
        by_ms = 0 if self._ahead_ms is None else ahead_ms - self._ahead_ms
        if abs(by_ms) < LEAP_MS:
            by_ms = 0
        if by_ms or self._still_ms:
            batch.commands.insert(0, Leap(by_ms, self._still_ms))
            batch.replies.insert(0, [])

    def _apply(self, turn: Turn, command: Command, watched: bool) -> None:
        record = Record(self.kernel.state.records + 1, turn.at_ms, command)
        applied = self.kernel.apply(record, watched=watched)
        turn.answers.append(applied.answer)
        turn.effects.extend(applied.effects)
        turn.changes.extend(applied.changes)
        if applied.voided:
            turn.voided.extend(applied.voided)

    async def _append(self, frame: Frame) -> Position:
        """Append, and resolve any doubt about whether it happened."""
        for _ in range(DOUBTS_MAX):
            try:
                return await self._log.append(self.position, frame)
            except InDoubt:
                written = await self._settle_doubt(frame)
                if written is not None:
                    return written
        self.broken = Fatal("The outcome of an append could not be determined.")
        raise self.broken

    async def _settle_doubt(self, frame: Frame) -> Position | None:
        """Read the intended place: where our frame ends, or None if nothing was written there."""
        if await self._log.tail() == self.position:
            return None
        found: Frame | None = None
        async for position, there in self._log.read(self.position):
            if found is not None:
                return position
            if (there.epoch, there.nonce) != (frame.epoch, frame.nonce):
                self.broken = Fatal("Another writer has written a frame at this position.")
                raise self.broken
            found = there
        return await self._log.tail()
