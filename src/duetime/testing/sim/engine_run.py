"""One run of an engine in the simulator, from start to crash: the real shell, pump, inbox and recovery.

It does by hand what `engine.Engine` does with an event loop: it carries out what the shell orders, syncs the
log when the simulation says so, and makes a checkpoint job by job, the log synced before the first job.
Nothing here catches errors that would end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from duetime.clock import Clock
from duetime.engine.durability.recovery import recover
from duetime.engine.shell.inbox import Asked, Inbox, PendingCommand
from duetime.engine.shell.pump import Pump, Turn
from duetime.engine.shell.shell import Acts, Shell
from duetime.kernel.state import State
from duetime.log.log import Log, Position
from duetime.protocol.command import Command
from duetime.protocol.effect import Deliver, Effect
from duetime.store.store import Job, Store, pause, settled
from duetime.testing.sim.told import Sent

T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("it waited: something real crept into the simulation")


def sent_of(request: Asked) -> Sent:
    """The request as the simulation sent it."""
    assert isinstance(request.reply, Sent)
    return request.reply


class EngineRun:
    """From a start to a crash."""

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        nonce: Callable[[], int],
        act: Callable[[Effect, Position], None],
        turned: Callable[[Turn], None],
    ) -> None:
        self.log = log
        self.store = store
        self._act = act
        self._turned = turned
        self.inbox = Inbox(lambda: None)
        self._written: dict[tuple[str, int], Position] = {}
        """By intent and delivery: the position after the record that handed it out."""
        self._jobs: Iterator[Job] | None = None
        self._job: Job | None = None
        self._job_position: Position = 0
        self._log_synced = False
        run_now(log.open())
        kernel, position = run_now(recover(log, store))
        self.pump = Pump(log, kernel, clock, position, nonce)
        self.pump.stood_still = self._stood_still
        self.shell = Shell(self.pump, self.inbox, clock)
        self.still_ms = 0
        """How long it stood still and has not noticed yet."""

    @property
    def state(self) -> State:
        return self.pump.kernel.state

    def begin(self, commands: list[Command]) -> None:
        """The first frame: a new epoch, which wins or loses by its place on the log."""
        self._carry_out(run_now(self.shell.begin(commands)))

    def _stood_still(self) -> int:
        still_ms, self.still_ms = self.still_ms, 0
        return still_ms

    def offer(self, sent: Sent) -> None:
        self.inbox.put(PendingCommand(sent.command, sent.ack, sent))

    def turn(self) -> None:
        """Append, apply, act."""
        before = self.pump.position
        acts = run_now(self.shell.step())
        for request, _ in acts.known:
            sent_of(request).position = before  # the answer depends on what was written until then
        self._carry_out(acts)

    def sync(self) -> None:
        """Sync the log, and carry out what waited for that."""
        self._carry_out(self.shell.synced(run_now(self.log.sync())))

    def _carry_out(self, acts: Acts) -> None:
        turn = acts.turn
        if turn is not None:
            self._turned(turn)
            for request in turn.batch.requests():
                sent_of(request).position = turn.position
            for effect in turn.effects:
                if type(effect) is Deliver:
                    self._written[effect.id, effect.delivery] = turn.position
        for effect in acts.effects:
            # The shell decides what may begin; the position to check it against does not come from the shell.
            self._act(effect, self._written[effect.id, effect.delivery] if type(effect) is Deliver else 0)
        for request, answer in acts.replies:
            request.reply(answer)
        if acts.failure is not None:
            raise acts.failure

    # The checkpoint, step by step.

    @property
    def checkpointing(self) -> bool:
        return self._jobs is not None

    def checkpoint_step(self) -> None:
        """Begin a checkpoint, or take its next step."""
        if self._jobs is None:
            self._job_position = self.pump.position
            self._jobs = self.store.checkpoint(self.pump.kernel.checkpoint(self._job_position))
            self._job = next(self._jobs, None)
            self._log_synced = False
        elif not self._log_synced:
            run_now(self.log.sync())
            self._log_synced = True
        elif self._job is not None:
            self._job()
            self._job = next(self._jobs, None)
            while self._job is pause or self._job is settled:
                self._job = next(self._jobs, None)
        else:
            self._jobs = None
            run_now(self.log.trim(self._job_position))

    def abandon_checkpoint(self) -> None:
        jobs, self._jobs, self._job = self._jobs, None, None
        if jobs is not None:
            jobs.close()  # type: ignore[attr-defined]  # stores write it as a generator
