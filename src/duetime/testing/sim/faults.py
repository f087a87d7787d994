"""The simulator's faults and their rates, and the log that injects them. One `Random` for everything.

Each seed draws a rate for each fault from {never, seldom, often} (swarm testing): a run in which a fault is
absent reaches states that a run with all of them never sees.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from random import Random
from typing import Protocol

from duetime.errors import Fatal, InDoubt, LogUnavailable, NoSpace
from duetime.log.file import FileLog
from duetime.log.frame import Frame
from duetime.log.log import Log, Position
from duetime.log.memory import MemoryLog, Storage
from duetime.testing.disk import FaultyDisk, Survival


class Fault(StrEnum):
    """Every fault that the simulator injects into the engine."""

    APPEND_LOST = "append lost"
    IN_DOUBT_WRITTEN = "append in doubt, written"
    IN_DOUBT_UNWRITTEN = "append in doubt, not written"
    IN_DOUBT_LATE = "append in doubt, written late"
    NO_SPACE = "full disk"
    SYNC_FAILED = "sync failed"
    CRASH = "crash"
    CRASH_IN_APPEND = "crash in an append"
    CRASH_IN_SYNC = "crash in a sync"
    CRASH_IN_CHECKPOINT = "crash in a checkpoint"
    CRASH_IN_RECOVERY = "crash in recovery"
    POWER_LOSS = "power loss"
    TORN_TAIL = "torn tail"
    CHECKPOINT_ABANDONED = "checkpoint abandoned"
    STALE_WRITER = "stale writer"
    CLOCK_FORWARD = "clock set forward"
    CLOCK_BACK = "clock set back"
    CLOCK_MOMENT = "clock ahead for a moment"
    STALL = "engine stood still"
    SLOW_CHANNEL = "slow channel"
    LATE_OUTCOME = "late outcome"
    DOUBLE_OUTCOME = "double outcome"
    WRONG_DELIVERY = "outcome with a wrong number"
    WRONG_CONSUMER = "outcome of somebody else's delivery"
    WORKER_VANISHED = "worker vanished"


# Probabilities for seldom and often, per append, sync, step or delivery.
_RATES: dict[Fault, tuple[float, float]] = {
    Fault.APPEND_LOST: (0.004, 0.02),
    Fault.IN_DOUBT_WRITTEN: (0.02, 0.15),
    Fault.IN_DOUBT_UNWRITTEN: (0.02, 0.15),
    Fault.IN_DOUBT_LATE: (0.004, 0.02),
    Fault.NO_SPACE: (0.01, 0.1),
    Fault.SYNC_FAILED: (0.01, 0.05),
    Fault.CRASH: (0.004, 0.02),
    Fault.CRASH_IN_APPEND: (0.004, 0.02),
    Fault.CRASH_IN_SYNC: (0.01, 0.05),
    Fault.CRASH_IN_CHECKPOINT: (0.005, 0.03),
    Fault.CRASH_IN_RECOVERY: (0.05, 0.2),
    Fault.POWER_LOSS: (0.2, 0.6),  # of the crashes
    Fault.TORN_TAIL: (0.005, 0.02),
    Fault.CHECKPOINT_ABANDONED: (0.02, 0.2),
    Fault.STALE_WRITER: (0.02, 0.08),
    Fault.CLOCK_FORWARD: (0.005, 0.02),
    Fault.CLOCK_BACK: (0.005, 0.03),
    Fault.CLOCK_MOMENT: (0.005, 0.03),
    Fault.STALL: (0.005, 0.03),
    Fault.SLOW_CHANNEL: (0.05, 0.4),
    Fault.LATE_OUTCOME: (0.03, 0.15),
    Fault.DOUBLE_OUTCOME: (0.05, 0.3),
    Fault.WRONG_DELIVERY: (0.02, 0.1),
    Fault.WRONG_CONSUMER: (0.02, 0.1),
    Fault.WORKER_VANISHED: (0.01, 0.05),
}
assert set(_RATES) == set(Fault), "every fault has its rates"


class Crash(BaseException):
    """The process dies here. Not an error of the program: nothing may handle it."""


class Dice:
    """The one source of randomness, and a count of the faults it caused."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.counts: dict[str, int] = {}
        self.rates: dict[Fault, float] = {}
        for fault in Fault:
            seldom, often = _RATES[fault]
            self.rates[fault] = self.random.choice((0.0, seldom, seldom, often))

    def strikes(self, fault: Fault) -> bool:
        """Whether this fault happens here."""
        if not self.may(fault):
            return False
        self.note(fault)
        return True

    def may(self, fault: Fault) -> bool:
        """As `strikes`, but the caller counts it when it really happens."""
        rate = self.rates[fault]
        return rate > 0 and self.random.random() < rate

    def note(self, fault: Fault) -> None:
        self.counts[fault] = self.counts.get(fault, 0) + 1

    def calm(self) -> None:
        """No more faults from here on."""
        self.rates = dict.fromkeys(Fault, 0.0)


class Ledger:
    """What was really written, as the simulator saw it: the truth the log is compared with."""

    def __init__(self) -> None:
        self.frames: list[tuple[Position, Frame]] = []
        self.tail: Position = 0
        self.synced: Position = 0
        self.aimed: tuple[Position, Frame] | None = None
        """The append in progress, or in progress when the process died: its frame may be there or not."""

    def wrote(self, at: Position, frame: Frame, tail: Position) -> None:
        self.frames.append((at, frame))
        self.tail = tail
        self.aimed = None

    def reconcile(self, found: list[tuple[Position, Frame]], start: Position, tail: Position) -> bool:
        """Take over what a reader finds after a crash; True if frames are gone."""
        if self.aimed is not None and self.aimed[0] == self.tail and tail > self.tail:
            self.frames.append(self.aimed)
            self.tail = tail
        self.aimed = None
        assert self.synced <= tail <= self.tail, (
            f"the log ends at {tail}; {self.synced} was synced, {self.tail} written"
        )
        kept = [frame for frame in self.frames if frame[0] < tail]
        assert found == [frame for frame in kept if frame[0] >= start], "the log gives what was written"
        lost = len(kept) < len(self.frames)
        self.frames, self.tail, self.synced = kept, tail, tail
        return lost


class FaultyLog:
    """A `Log` around a reliable one; loses frames, raises doubt and fails by chance."""

    def __init__(self, inner: Log, dice: Dice, ledger: Ledger) -> None:
        self._inner = inner
        self._dice = dice
        self._ledger = ledger
        self._late: tuple[Position, Frame] | None = None

    async def open(self) -> None:
        await self._inner.open()

    async def start(self) -> Position:
        return await self._inner.start()

    async def tail(self) -> Position:
        return await self._inner.tail()

    async def append(self, at: Position, frame: Frame) -> Position:
        strikes = self._dice.strikes
        if self._late is not None:
            late, self._late = self._late, None
            if late[0] == self._ledger.tail:
                await self._write(*late)
            return await self._inner.append(at, frame)  # the writer is no longer at the tail
        if strikes(Fault.APPEND_LOST):
            raise LogUnavailable("The append was lost.")
        if strikes(Fault.NO_SPACE):
            raise NoSpace("The disk is full.")
        if strikes(Fault.IN_DOUBT_UNWRITTEN):
            raise InDoubt("Nothing was written, but who knows?")
        if strikes(Fault.IN_DOUBT_LATE):
            self._late = (at, frame)
            raise InDoubt("It is still on its way.")
        crash = strikes(Fault.CRASH_IN_APPEND)
        if crash and self._dice.random.random() < 0.5:
            raise Crash
        tail = await self._write(at, frame)
        if crash:
            raise Crash
        if strikes(Fault.IN_DOUBT_WRITTEN):
            raise InDoubt("It was written, but who knows?")
        return tail

    async def _write(self, at: Position, frame: Frame) -> Position:
        self._ledger.aimed = (at, frame)
        tail = await self._inner.append(at, frame)
        self._ledger.wrote(at, frame, tail)
        return tail

    async def sync(self) -> Position:
        if self._dice.strikes(Fault.SYNC_FAILED):
            raise Fatal("The sync failed.")
        crash = self._dice.strikes(Fault.CRASH_IN_SYNC)
        if crash and self._dice.random.random() < 0.5:
            raise Crash
        position = await self._inner.sync()
        self._ledger.synced = position
        if crash:
            raise Crash
        return position

    def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]:
        return self._inner.read(start)

    async def trim(self, below: Position) -> None:
        await self._inner.trim(below)

    async def close(self) -> None:
        await self._inner.close()


class Medium(Protocol):
    """Where the log is stored, and what a crash does to it."""

    shared: bool
    """Whether an abandoned process may still reach it: only then is there a stale writer."""

    def open(self) -> Log: ...

    def kill(self) -> None: ...

    def lose_power(self, dice: Dice, synced: Position) -> None: ...

    def fuse(self, dice: Dice) -> None:
        """The power may go off a few operations from now."""

    def unfuse(self) -> None:
        """The power will not go off by itself any more."""


class MemoryMedium:
    """A list of frames; power loss cuts it anywhere after what was synced."""

    shared = True

    def __init__(self) -> None:
        self._storage = Storage()

    def open(self) -> Log:
        return MemoryLog(self._storage)

    def kill(self) -> None:
        pass

    def lose_power(self, dice: Dice, synced: Position) -> None:
        storage = self._storage
        unsynced = [index for index, frame in enumerate(storage.frames) if frame[0] >= synced]
        keep = dice.random.randint(0, len(unsynced))
        if keep < len(unsynced):
            storage.tail = storage.frames[unsynced[keep]][0]
            del storage.frames[unsynced[keep] :]

    def fuse(self, dice: Dice) -> None:
        pass

    def unfuse(self) -> None:
        pass


class FileMedium:
    """Segments on a disk that loses unsynced sectors, lengths and names."""

    shared = False

    def __init__(self) -> None:
        self._disk = FaultyDisk()

    def open(self) -> Log:
        return FileLog(
            "log", disk=self._disk, segment_bytes_max=8_192, allocate_bytes=2_048, history_bytes=0,
            inline_sync=True,
        )  # fmt: skip

    def kill(self) -> None:
        self._disk.kill()

    def lose_power(self, dice: Dice, synced: Position) -> None:
        self._disk.lose_power()
        self._disk.restart(dice.random, dice.random.choice(list(Survival)))

    def fuse(self, dice: Dice) -> None:
        if dice.may(Fault.TORN_TAIL):
            self._disk.power_off_before = len(self._disk.operations) + dice.random.randint(1, 3)

    def unfuse(self) -> None:
        self._disk.power_off_before = None
