"""Append, then apply; and what the pump does when it does not know whether an append happened."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from duetime.engine.shell.inbox import PumpBatch
from duetime.engine.shell.pump import Pump, Turn
from duetime.errors import Fatal, InDoubt, InvalidField, NoSpace, TooLarge
from duetime.kernel.kernel import Kernel
from duetime.limits import FRAME_BYTES_MAX, LEAP_MS
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.log.memory import MemoryLog, Storage
from duetime.protocol import record
from duetime.protocol.command import Advance, Command, Leap, Pause, Start, Submit
from duetime.protocol.intent import Item
from duetime.protocol.terms import AckLevel
from duetime.store.memory import MemoryStore
from duetime.testing.sim.engine_run import run_now
from duetime.testing.time import ManualClock
from tests.unit.kernel.bench import T0, terms


class DoubtfulLog(MemoryLog):
    """A log that answers some appends with a doubt: those written, and those not."""

    def __init__(self, *written: bool) -> None:
        super().__init__()
        self.doubts = list(written)
        self.appends = 0

    async def append(self, at: Position, frame: Frame) -> Position:
        self.appends += 1
        if not self.doubts:
            return await super().append(at, frame)
        if self.doubts.pop(0):
            await super().append(at, frame)
        raise InDoubt("It timed out.")


class Rig:
    """A pump on a log, with nonces that count."""

    def __init__(self, log: MemoryLog | None = None) -> None:
        self.log, self.clock = log if log is not None else MemoryLog(), ManualClock(T0)
        self._nonce = 0
        self.pump = Pump(self.log, Kernel(MemoryStore()), self.clock, 0, self._next)

    def _next(self) -> int:
        self._nonce += 1
        return self._nonce

    def turn(self, *commands: Command, epoch: int = 0) -> Turn:
        return run_now(self.pump.turn(batch(*commands), epoch))

    def written(self) -> list[Command]:
        return [command for _, frame in self.log.storage.frames for command in record.decode(frame.body)]


def batch(*commands: Command) -> PumpBatch:
    return PumpBatch(list(commands), [[] for _ in commands], AckLevel.ASYNC, [])


def test_a_batch_is_one_frame_and_its_records_are_applied_in_order():
    rig = Rig()
    rig.turn(Start(1), epoch=1)
    turn = rig.turn(Submit((terms(),), (Item("a", 0, T0),)), Pause("task:default"))
    assert len(rig.log.storage.frames) == 2
    _, frame = rig.log.storage.frames[1]
    assert (frame.epoch, frame.first, frame.count, frame.at_ms) == (1, 2, 2, T0)
    assert len(turn.answers) == 2
    assert turn.position == rig.pump.position == rig.log.storage.tail
    assert rig.pump.kernel.state.records == 3


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Submit((terms(),), (Item("a", 0, T0, b"x" * FRAME_BYTES_MAX),)), TooLarge),
        (Submit((terms(),), (Item("a", 0, 1 << 70),)), InvalidField),
    ],
)
def test_a_command_that_cannot_be_stored_is_refused_before_anything_is_written(command, error):
    rig = Rig()
    with pytest.raises(error):
        rig.turn(command)
    assert rig.written() == []
    assert rig.pump.broken is None
    rig.turn(Advance())


def test_without_room_everything_stays_as_it_was():
    class FullLog(MemoryLog):
        async def append(self, at: Position, frame: Frame) -> Position:
            raise NoSpace("full")

    rig = Rig(FullLog())
    with pytest.raises(NoSpace):
        rig.turn(Advance())
    assert (rig.pump.position, rig.pump.kernel.state.records, rig.pump.broken) == (0, 0, None)


@pytest.mark.parametrize("written", [[True], [False], [False, True], [False, False]])
def test_a_doubt_is_settled_by_looking_and_nothing_is_written_twice(written):
    rig = Rig(DoubtfulLog(*written))
    turn = rig.turn(Pause("a"))
    assert rig.written() == [Pause("a")]
    assert turn.position == rig.log.storage.tail
    rig.turn(Pause("b"))
    assert rig.written() == [Pause("a"), Pause("b")]


def test_a_frame_that_others_follow_ends_where_the_next_begins():
    """The look into the log comes late: a writer that took over has written behind our frame."""
    log = DoubtfulLog(True)
    other = MemoryLog(log.storage)

    async def tail() -> Position:
        (_, ours), *_ = log.storage.frames
        await other.append(log.storage.tail, Frame(9, 9, 9, 1, T0, AckLevel.ASYNC, ours.body))
        return log.storage.tail

    log.tail = tail  # type: ignore[method-assign]
    rig = Rig(log)
    turn = rig.turn(Pause("a"))
    assert turn.position == log.storage.frames[1][0] < log.storage.tail


def test_a_log_that_stays_in_doubt_breaks_the_pump():
    rig = Rig(DoubtfulLog(*[False] * 3))
    with pytest.raises(Fatal, match="append"):
        rig.turn(Advance())
    assert isinstance(rig.pump.broken, Fatal)
    with pytest.raises(AssertionError, match="thrown away"):
        rig.turn(Advance())


def test_another_writers_frame_in_our_place_breaks_the_pump():
    class Overtaken(MemoryLog):
        async def append(self, at: Position, frame: Frame) -> Position:
            await super().append(at, replace(frame, epoch=frame.epoch + 1, nonce=99))
            raise InDoubt("It timed out.")

    rig = Rig(Overtaken(Storage()))
    with pytest.raises(Fatal, match="Another writer"):
        rig.turn(Advance())
    assert isinstance(rig.pump.broken, Fatal)


def test_a_kernel_that_fails_on_a_written_record_breaks_the_pump(monkeypatch):
    rig = Rig()
    monkeypatch.setattr(Kernel, "apply", lambda self, record, watched: 1 / 0)
    with pytest.raises(Fatal, match="kernel failed"):
        rig.turn(Advance())
    assert isinstance(rig.pump.broken, ZeroDivisionError)


def test_a_clock_that_was_set_and_a_standstill_are_written_first():
    rig = Rig()
    rig.turn(Advance())
    rig.clock.leap(LEAP_MS - 1)
    assert len(rig.turn(Advance()).answers) == 1, "a small step is not noticed"
    rig.clock.leap(LEAP_MS)
    rig.pump.stood_still = iter([0, 700]).__next__
    rig.turn(Advance())
    rig.turn(Advance())
    assert rig.written()[2:] == [Leap(LEAP_MS, 0), Advance(), Leap(0, 700), Advance()]


def test_a_standstill_that_could_not_be_written_is_not_forgotten(monkeypatch):
    rig = Rig()
    rig.pump.stood_still = iter([700, 30]).__next__

    async def full(at: Position, frame: Frame) -> Position:
        raise NoSpace("full")

    with monkeypatch.context() as patched:
        patched.setattr(rig.log, "append", full)
        with pytest.raises(NoSpace):
            rig.turn(Advance())
    rig.turn(Advance())
    assert rig.written() == [Leap(0, 730), Advance()]
