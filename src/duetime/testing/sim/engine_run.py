"""One run of an engine in the simulator, from start to crash: the real pump, inbox and recovery, and the
shell's order of acting.

It does by hand what `engine.Engine` does with an event loop: effects and answers that may go at once go
after the turn, those that must wait for stable storage go after the next sync; a checkpoint is made step by
step, the log synced before its first job. Nothing here catches errors that would end the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from duetime.clock import Clock
from duetime.engine.inbox import Asked, Batch, Inbox, Request, shares
from duetime.engine.parts import split
from duetime.engine.pump import Pump, Turn
from duetime.engine.recovery import recover
from duetime.errors import NoSpace
from duetime.kernel.kernel import Answer
from duetime.kernel.state import State
from duetime.log.log import Log, Position
from duetime.protocol.command import Command, Start
from duetime.protocol.effect import Effect
from duetime.protocol.terms import AckLevel
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


class Life:
    """From a start to a crash."""

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        nonce: Callable[[], int],
        act: Callable[[list[Effect], Position], None],
        turned: Callable[[Turn], None],
    ) -> None:
        self.log = log
        self.store = store
        self._act = act
        self._turned = turned
        self.inbox = Inbox(lambda: None)
        self.full = False
        self._waiting: deque[tuple[Position, list[Effect], list[tuple[Asked, Answer]]]] = deque()
        self._jobs: Iterator[Job] | None = None
        self._job: Job | None = None
        self._job_position: Position = 0
        self._log_synced = False
        run_now(log.open())
        kernel, position = run_now(recover(log, store))
        self.pump = Pump(log, kernel, clock, position, nonce)
        self.pump.stood_still = self._stood_still
        self.still_ms = 0
        """How long it stood still and has not noticed yet."""

    @property
    def state(self) -> State:
        return self.pump.kernel.state

    def begin(self, commands: list[Command]) -> None:
        """The first frame: a new epoch, which wins or loses by its place on the log."""
        epoch = self.state.epoch + 1
        batch = Batch([Start(epoch), *commands], [[] for _ in (None, *commands)], AckLevel.DURABLE, [])
        self._after(run_now(self.pump.turn(batch, epoch)))

    def _stood_still(self) -> int:
        still_ms, self.still_ms = self.still_ms, 0
        return still_ms

    def offer(self, sent: Sent) -> None:
        self.inbox.put(Request(sent.command, sent.ack, sent))

    def turn(self) -> None:
        """Append, apply, act."""
        batch = self.inbox.take()
        if not batch.commands:
            return
        try:
            turn = run_now(self.pump.turn(batch))
        except NoSpace as error:
            for requests in batch.replies:
                for request in requests:
                    request.reply(error)
            self.inbox.settlements[:0] = batch.settlements
            self.inbox.tick = True
        else:
            self._after(turn)

    def _after(self, turn: Turn) -> None:
        self._turned(turn)
        now, later = split(turn)
        self._act(now, turn.position)
        waiting: list[tuple[Asked, Answer]] = []
        for requests, answer in zip(turn.batch.replies, turn.answers, strict=True):
            for request, part in shares(requests, answer):
                sent = request.reply
                assert isinstance(sent, Sent)
                sent.position = turn.position
                if request.ack >= AckLevel.DURABLE:
                    waiting.append((request, part))
                else:
                    sent(part)
        if later or waiting:
            self._waiting.append((turn.position, later, waiting))

    def sync(self) -> None:
        """Everything is on stable storage now: whatever waited for it continues."""
        synced = run_now(self.log.sync())
        while self._waiting and self._waiting[0][0] <= synced:
            position, effects, waiting = self._waiting.popleft()
            self._act(effects, position)
            for request, answer in waiting:
                request.reply(answer)

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
