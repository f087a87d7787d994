"""When a checkpoint brings the store up to the log, and the log is trimmed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter  # tidy: how long it took, not what time it is
from typing import cast

from duetime.engine.reads.meter import Meter
from duetime.engine.shell.pump import Pump
from duetime.errors import NoSpace
from duetime.limits import (
    CHECKPOINT_BYTES,
    CHECKPOINT_DELAYS_MAX,
    CHECKPOINT_ENDED_FACTOR_MAX,
    CHECKPOINT_SLICES_MAX,
)
from duetime.log.log import Log, Position
from duetime.store.store import CheckpointStore, Job, pause, settled


class Checkpointer:
    """Runs a checkpoint some time after a change, or after many; never two at once; none when idle."""

    def __init__(
        self,
        pump: Pump,
        log: Log,
        store: CheckpointStore,
        failed: Callable[[Exception], None],
        *,
        every_ms: int,
        changes_max: int,
        meter: Meter | None = None,
    ) -> None:
        self._pump = pump
        self._log = log
        self._store = store
        self._failed = failed
        self._every_s = every_ms / 1000
        self._changes_max = changes_max
        self._meter = meter
        self._thread = ThreadPoolExecutor(1, "duetime-checkpoint")
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._put_off = 0
        self._full = False
        """The disk was full: try again when the time has come, whatever changes until then."""
        self._ended = 0
        self.position: Position = 0
        """What the store has: everything up to here."""
        self.count = 0

    def start(self) -> None:
        """Recovery is done: count changes from here."""
        self._ended = self._pump.kernel.state.ended
        self.position = self._pump.position

    def changed(self) -> None:
        """Something may have changed."""
        if self._closed or self._task is not None or self._full:
            return
        if self._pump.position - self.position >= CHECKPOINT_BYTES and self._grown():
            self._start()
            return
        if not self._store.unwritten():
            return
        # What counts is the memory a checkpoint would free: intents that ended, or are due far in the future.
        # An intent about to run would only be written twice, so most should have ended; but the number of
        # ended ones in memory is bounded.
        ended = self._pump.kernel.state.ended - self._ended
        most = min(self._store.unwritten() * 3 // 4, CHECKPOINT_ENDED_FACTOR_MAX * self._changes_max)
        if ended >= max(self._changes_max, most) or self._flooded():
            self._start()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)

    def _look(self) -> None:
        """The time has come; but a large backlog about to run would be written twice, so it may wait."""
        self._timer = None
        if self._is_backlog() and self._put_off < CHECKPOINT_DELAYS_MAX:
            self._put_off += 1
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)
        else:
            self._start()

    def _is_backlog(self) -> bool:
        """Whether many of the changed intents are about to run."""
        return self._store.unwritten() - (self._pump.kernel.state.ended - self._ended) > self._changes_max

    def _grown(self) -> bool:
        """Whether the log is long enough for a checkpoint; also counts records that changed nothing."""
        most = CHECKPOINT_BYTES * (CHECKPOINT_DELAYS_MAX if self._is_backlog() else 1)
        return self._pump.position - self.position >= most

    async def catch_up(self) -> None:
        """For callers that submit much at once: wait while too many far-future intents are in memory."""
        if self._store.deferred() >= self._changes_max:
            if self._task is None:
                self._start()
            await self.finished()  # later changes are for the next checkpoint

    async def now(self) -> None:
        """Bring the store up to what is written now. If the disk is full, the store stays where it is."""
        target = self._pump.position
        for _ in range(2):  # the one in progress may have begun before
            if self.position < target:
                if self._task is None:
                    self._start()
                await self.finished()

    def _flooded(self) -> bool:
        """Whether many far-future intents are in memory."""
        return self._store.deferred() >= self._changes_max // 2

    def _pace(self) -> int:
        """How many slices to make before other work gets its turn: the more, the closer submitting callers
        are to having to wait for the whole checkpoint."""
        over = self._store.deferred() - self._changes_max // 2
        return max(1, over * 2 * CHECKPOINT_SLICES_MAX // self._changes_max)

    @property
    def running(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._task is not None

    @property
    def planned(self) -> bool:
        """Whether the next checkpoint has its time."""
        return self._timer is not None

    async def finished(self) -> None:
        """Wait until the checkpoint in progress has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def stop(self) -> None:
        """Begin no more checkpoints."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._closed = True
        await self.finished()  # stops between two steps; the unfinished checkpoint is abandoned
        self._thread.shutdown()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._put_off, self._full = 0, False
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        began_s = perf_counter()
        try:
            position = self._pump.position
            self._ended = self._pump.kernel.state.ended
            steps = self._store.checkpoint(self._pump.kernel.checkpoint(position))
            jobs = cast("Generator[Job, None, None]", steps)
            job = next(jobs, None)  # the store's snapshot is this moment
            # The log first: after power loss, a store ahead of its log would not fit it.
            await self._log.sync()
            if not await self._take_steps(jobs, job):
                return
            self.position = position
            self.count += 1
            if self._meter is not None:
                self._meter.checkpointed(perf_counter() - began_s)
            await self._log.trim(position)
        except Exception as error:
            self._full = isinstance(error, NoSpace)  # the log has everything, so there is time
            if not self._full:
                self._failed(error)
        finally:
            self._task = None
            if self._full and not self._closed:
                self._timer = asyncio.get_running_loop().call_later(self._every_s, self._start)
            elif self._store.unwritten() and not self._closed:
                self.changed()

    async def _take_steps(self, jobs: Generator[Job, None, None], job: Job | None) -> bool:
        """Run the jobs in their thread, one at a time, and make the next one meanwhile. False: given up."""
        loop, slices = asyncio.get_running_loop(), 0
        last: asyncio.Future[None] | None = None
        try:
            while job is not None:
                if self._closed:
                    return False
                if job is pause:
                    slices += 1
                    if slices >= self._pace():
                        slices = 0
                        await asyncio.sleep(0)
                else:
                    if last is not None:
                        await last
                    last = None if job is settled else loop.run_in_executor(self._thread, job)
                job = next(jobs, None)
            return True
        finally:
            if last is not None:
                await asyncio.wait([last])
            jobs.close()  # an unfinished one is abandoned: the earlier checkpoint still holds
