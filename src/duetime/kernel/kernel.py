"""The kernel: a deterministic function of the log's records. Only the `match` over commands.

No clock, no I/O, no randomness, no logging. A record goes in; replies, effects and changes come out. A
refusal is a reply, never an exception; an exception is a bug, and the owner of the kernel discards the
kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct

from duetime.kernel import dependents, end_calls, recovery, retention
from duetime.kernel.commands import (
    advance,
    cancel,
    consumers,
    control,
    fire,
    leap,
    patch,
    purge,
    revive,
    schedules,
    settle,
    submit,
)
from duetime.kernel.queues import dispatch, limiters
from duetime.kernel.state import State
from duetime.protocol.checkpoint import Checkpoint
from duetime.protocol.command import (
    Advance,
    Beat,
    Cancel,
    Command,
    Configure,
    Demand,
    Drain,
    DropSchedule,
    FireNow,
    Leap,
    Leave,
    Patch,
    Pause,
    PauseSchedule,
    Purge,
    PutSchedule,
    Resize,
    Resume,
    ResumeSchedule,
    Revive,
    SetLane,
    Settle,
    Start,
    Submit,
    Tick,
    Trigger,
)
from duetime.protocol.effect import Change, Effect, Voided
from duetime.protocol.record import Record
from duetime.protocol.reply import Answer
from duetime.store.store import KernelStore


class Applied(Struct, frozen=True):
    """The result of one record."""

    answer: Answer
    effects: list[Effect]
    changes: list[Change]
    voided: list[Voided]


class Kernel:
    """The state and the only way to change it."""

    def __init__(self, store: KernelStore) -> None:
        self.state = State(store)

    def thaw(self, checkpoint: Checkpoint) -> None:
        """Start from a checkpoint instead of an empty state."""
        for _ in self.thawing(checkpoint):
            pass

    def thawing(self, checkpoint: Checkpoint) -> Iterator[None]:
        """The same in steps of some milliseconds. Must be run to the end before anything else."""
        return recovery.thaw(self.state, checkpoint)

    def apply(self, record: Record, *, watched: bool = True) -> Applied:
        """Apply one record: the command, then time, then their consequences. `watched`: list the changes;
        nothing else depends on it."""
        state = self.state
        assert record.seq == state.records + 1, "the log has no gaps"
        state.records = record.seq
        command, before_ms = record.command, state.at_ms
        if record.at_ms != before_ms or type(command) is Advance:
            state.woken = state.handed = 0  # records of one frame have one timestamp, and share the bounds
        state.flow.pass_ms(record.at_ms - before_ms)
        state.at_ms = record.at_ms
        if record.at_ms < state.latest_ms:
            state.behind = True  # the clock was set back: ready intents may not be due any more
        else:
            state.behind = False
            state.latest_ms = record.at_ms
        state.effects, state.changes, state.voided = [], [] if watched else None, []
        if type(command) is Leap or type(command) is Start:
            leap.apply(state, command, before_ms)  # before waking what is due at the new time
        advance.apply(state)
        limiters.wake(state)
        _follow_up(state)  # before the command, which may revive one that ended
        answer = self._verb(command)
        _follow_up(state)
        retention.apply(state)
        dispatch.hand_out(state)
        while _follow_up(state):  # deadlines are checked while handing out, too
            dispatch.hand_out(state)
        if isinstance(command, Demand) and not command.standing and answer is None:
            consumers.end_claim(state, command)
        return Applied(answer, state.effects, state.changes or [], state.voided)

    def _verb(self, command: Command) -> Answer:
        state = self.state
        match command:
            case Submit():
                return submit.apply(state, command)
            case Settle():
                return settle.apply(state, command)
            case Advance() | Leap():
                pass
            case Patch():
                return patch.apply(state, command)
            case Cancel():
                return cancel.apply(state, command)
            case FireNow():
                return fire.apply(state, command)
            case Revive():
                return revive.apply(state, command)
            case Purge():
                return purge.apply(state, command)
            case Demand():
                return consumers.demand(state, command)
            case Drain():
                control.drain(state)
            case Beat():
                consumers.beat(state, command)
            case Leave():
                consumers.leave(state, command)
            case Pause():
                control.pause(state, command)
            case Resume():
                control.resume(state, command)
            case Resize():
                return control.resize(state, command)
            case SetLane():
                return control.set_lane(state, command)
            case Configure():
                control.configure(state, command)
            case Start():
                control.start(state, command)
            case PutSchedule() | DropSchedule() | PauseSchedule() | ResumeSchedule() | Trigger() | Tick():
                return schedules.apply(state, command)
            case _:
                assert_never(command)
        return None

    def next_ms(self) -> int | None:
        """When time must advance next."""
        if dispatch.spent(self.state):
            return self.state.at_ms
        timers = self.state.timers
        wait_ms = self.state.flow.wait_ms()
        turn_ms = None if wait_ms is None else self.state.at_ms + wait_ms
        # A draining engine makes no new ticks.
        tick_ms = None if self.state.draining else self.state.timetables.next_ms()
        found = (timers.next_ms(), timers.far_ms(), turn_ms, tick_ms)
        return min((at_ms for at_ms in found if at_ms is not None), default=None)

    def checkpoint(self, position: int) -> Checkpoint:
        """The state at this position, for the store."""
        return self.state.checkpoint(position)


def _follow_up(state: State) -> bool:
    """Handle the consequences of intents that ended: for their dependents and their schedules."""
    if not state.ended_parents and not state.timetables.over and not state.untold:
        return False
    dependents.release(state)
    schedules.release(state)
    end_calls.release(state)
    return True
