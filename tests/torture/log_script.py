"""A script of appends, syncs, trims and reopenings, and the law any crash of it must keep."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any, TypeVar

from duetime.errors import InDoubt, NoSpace
from duetime.log.file import FileLog
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.testing.disk import FaultyDisk

T = TypeVar("T")
Found = list[tuple[Position, Frame]]


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never really waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("the log waited for something")


async def _read(log: FileLog, start: Position) -> Found:
    return [found async for found in log.read(start)]


def read_all(log: FileLog) -> Found:
    """Every frame of the log."""
    return run_now(_read(log, run_now(log.start())))


class Script:
    """A log on a disk that may fail, driven by dice; it remembers what was tried and what was promised."""

    def __init__(
        self, disk: FaultyDisk, seed: int, segment_bytes_max: int = 6000, body_max: int = 700
    ) -> None:
        self.disk = disk
        self.segment_bytes_max = segment_bytes_max
        self.body_max = body_max
        self.random = Random(seed)
        self.tried: Found = []
        self.synced: Position = 0
        self.trimmed: Position = 0
        self.refused = 0
        self.opened = False
        """Whether the log is open, or was when it stopped."""
        self.log = self.new_log()

    def new_log(self, disk: FaultyDisk | None = None) -> FileLog:
        return FileLog(
            "log", disk=disk or self.disk, segment_bytes_max=self.segment_bytes_max,
            allocate_bytes=1500, history_bytes=0,
        )  # fmt: skip

    def start(self) -> None:
        self.opened = False
        run_now(self.log.open())
        self.opened = True

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def step(self) -> None:
        dice = self.random.random()
        if dice < 0.80:
            self.append()
        elif dice < 0.95:
            self.synced = run_now(self.log.sync())
        elif dice < 0.98:
            positions = [position for position, _ in self.tried]
            self.trimmed = max(self.trimmed, self.random.choice([0, *positions]))
            run_now(self.log.trim(self.trimmed))
        else:
            run_now(self.log.close())
            self.log = self.new_log()
            self.start()
            self.synced = run_now(self.log.tail())

    def append(self) -> None:
        size = self.random.choice([0, 1, self.random.randrange(60), self.random.randrange(self.body_max)])
        number = len(self.tried)
        # No zeros in it, so that a hole in the file cannot be taken for a part of a body.
        body = bytes(self.random.randrange(1, 256) for _ in range(size))
        frame = Frame(1, self.random.getrandbits(64), number, 1, number, 0, body)
        at = run_now(self.log.tail())
        self.tried.append((at, frame))
        try:
            run_now(self.log.append(at, frame))
        except NoSpace:
            # Another one takes its place; of the first no trace may ever be seen.
            frame = Frame(1, self.random.getrandbits(64), number, 1, number, 0, body[: size // 8][::-1])
            self.tried[-1] = (at, frame)
            assert run_now(self.log.tail()) == at
            self.refused += 1
            run_now(self.log.append(at, frame))
        except InDoubt:
            if not run_now(_read(self.log, at)):
                run_now(self.log.append(at, frame))

    def tail_tried(self) -> Position:
        at, frame = self.tried[-1]
        return at + 70 + len(frame.body)

    def check(self, disk: FaultyDisk) -> None:
        """After a crash: nothing promised is missing, nothing is invented, and the log can go on."""
        log = self.new_log(disk)
        run_now(log.open())
        found, tail = read_all(log), run_now(log.tail())
        self.check_found(found, run_now(log.start()), tail)
        more = Frame(2, 7, 0, 1, 0, 0, b"after the crash")
        run_now(log.append(tail, more))
        run_now(log.sync())
        run_now(log.close())
        log = self.new_log(disk)
        run_now(log.open())
        assert read_all(log) == [*found, (tail, more)]
        run_now(log.close())

    def check_found(self, found: Found, start: Position, tail: Position) -> None:
        assert tail >= self.synced, "what sync promised is there"
        assert start <= self.trimmed, "nothing is trimmed that was not to be"
        expected = [each for each in self.tried if start <= each[0] < tail]
        assert found == expected, "what is there was written, in its order, without gaps"
