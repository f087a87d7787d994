"""Functions in this process: coroutines on the loop, plain functions in threads, heavy ones in processes.

Coroutines are run by a few long-lived runners instead of a task each. A runner takes one delivery after
another; only when a function really waits is the next runner woken. So functions that do not wait cost no
task at all, and those that do have a proper task of their own meanwhile (timeouts, cancellation and
`current_task` work as usual). A runner whose context was changed by a function is not used again.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import Any, Protocol

from duetime.channels.channel import Settler
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Failed, Outcome, Rejected, Settlement


class Handler(Protocol):
    """What runs a delivery. Exactly one of the two ways is used, by `executor`."""

    @property
    def executor(self) -> Executor | None:
        """None: `run` is awaited on the loop. Otherwise `job` gives a call to be made there."""

    def run(self, delivery: Deliver) -> Coroutine[Any, Any, Outcome]: ...

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]: ...

    def outcome(self, delivery: Deliver, value: Any, error: BaseException | None) -> Outcome: ...


Finder = Callable[[Deliver], Handler | None]


class _Runner:
    """One task that runs deliveries one after another."""

    __slots__ = ("aborted", "delivery", "idle", "task", "until_s")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.idle: asyncio.Future[None] | None = None
        self.delivery: Deliver | None = None
        self.until_s = 0.0
        self.aborted = ""


class InlineChannel:
    """Runs handlers of this process."""

    def __init__(self, find: Finder) -> None:
        self._find = find
        self._queue: deque[Deliver] = deque()
        self._idle: list[_Runner] = []
        self._busy: dict[tuple[str, int], _Runner] = {}
        self._jobs: dict[tuple[str, int], asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at_s = 0.0
        self._closed = False

    def open(self, settle: Settler) -> None:
        self._settle = settle
        self._loop = asyncio.get_running_loop()

    def deliver(self, delivery: Deliver) -> None:
        self._queue.append(delivery)

    def flush(self) -> None:
        if self._queue:
            self._wake_runner()

    def running(self) -> int:
        return len(self._queue) + len(self._busy) + len(self._jobs)

    def abort(self, abort: Abort) -> None:
        place = (abort.id, abort.delivery)
        runner = self._busy.get(place)
        if runner is not None:
            self._stop(runner, "cancelled")
        job = self._jobs.get(place)
        if job is not None:
            job.cancel()

    async def close(self) -> None:
        self._closed = True
        self._queue.clear()
        if self._watch is not None:
            self._watch.cancel()
        for job in list(self._jobs.values()):
            job.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Runners.

    def _wake_runner(self) -> None:
        if self._idle:
            idle = self._idle.pop().idle
            assert idle is not None
            if not idle.done():
                idle.set_result(None)
            return
        runner = _Runner()
        runner.task = self._loop.create_task(self._run(runner), context=contextvars.Context())
        self._tasks.add(runner.task)
        runner.task.add_done_callback(self._tasks.discard)

    async def _run(self, runner: _Runner) -> None:
        queue = self._queue
        clean = contextvars.copy_context()
        while not self._closed:
            while queue:
                delivery = queue.popleft()
                handler = self._find(delivery)
                if handler is None:
                    self._refuse(delivery)
                elif (executor := handler.executor) is not None:
                    self._start_job(handler, executor, delivery)
                else:
                    await self._call(runner, handler, delivery)
            if contextvars.copy_context() != clean:
                return  # a function left something in the context: nobody else should find it
            runner.idle = self._loop.create_future()
            self._idle.append(runner)
            await runner.idle

    async def _call(self, runner: _Runner, handler: Handler, delivery: Deliver) -> None:
        place = (delivery.id, delivery.delivery)
        runner.delivery = delivery
        runner.aborted = ""
        self._busy[place] = runner
        try:
            outcome = await _eagerly(handler.run(delivery), lambda: self._suspended(runner))
        except asyncio.CancelledError:
            if not runner.aborted:
                raise  # the channel is closing
            assert runner.task is not None
            runner.task.uncancel()
            outcome = Failed(runner.aborted, f"it was stopped: {runner.aborted}")
        finally:
            del self._busy[place]
            runner.delivery = None
        self._settle(Settlement(delivery.id, delivery.delivery, outcome))

    def _suspended(self, runner: _Runner) -> None:
        """The function waits: its time limit begins to matter, and another runner goes on."""
        delivery = runner.delivery
        assert delivery is not None
        runner.until_s = self._loop.time() + delivery.terms.timeout_ms / 1000
        self._arm_watch(runner.until_s)
        if self._queue:
            self._wake_runner()

    # Time limits: one timer for all.

    def _arm_watch(self, at_s: float) -> None:
        if self._watch is None or at_s < self._watch_at_s:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = self._loop.call_at(at_s, self._look)
            self._watch_at_s = at_s

    def _look(self) -> None:
        self._watch = None
        now_s = self._loop.time()
        waiting: list[float] = []
        for runner in list(self._busy.values()):
            if runner.until_s <= now_s:
                self._stop(runner, "timeout")
            else:
                waiting.append(runner.until_s)
        if waiting:
            self._arm_watch(min(waiting))

    def _stop(self, runner: _Runner, reason: str) -> None:
        if not runner.aborted:
            runner.aborted = reason
            assert runner.task is not None
            runner.task.cancel()

    # Threads and processes.

    def _start_job(self, handler: Handler, executor: Executor, delivery: Deliver) -> None:
        call, args = handler.job(delivery)
        try:
            work = self._loop.run_in_executor(executor, call, *args)
        except Exception as error:
            self._settle(Settlement(delivery.id, delivery.delivery, handler.outcome(delivery, None, error)))
            return
        place = (delivery.id, delivery.delivery)
        self._jobs[place] = work
        limit = self._loop.call_later(delivery.terms.timeout_ms / 1000, self._job_timed_out, delivery)

        def done(work: asyncio.Future[Any]) -> None:
            limit.cancel()
            if self._jobs.pop(place, None) is None or self._closed:
                if not work.cancelled():
                    work.exception()  # too late: nobody waits for it, and it is not an unseen error
                return
            if work.cancelled():
                outcome: Outcome = Failed("cancelled", "it was stopped: cancelled")
            else:
                error = work.exception()
                outcome = handler.outcome(delivery, None if error else work.result(), error)
            self._settle(Settlement(delivery.id, delivery.delivery, outcome))

        work.add_done_callback(done)

    def _job_timed_out(self, delivery: Deliver) -> None:
        """A thread cannot be stopped: it is given up, and whatever it returns is not wanted any more."""
        if self._jobs.pop((delivery.id, delivery.delivery), None) is not None:
            text = f"it ran longer than {delivery.terms.timeout_ms} ms; its thread or process goes on unheard"
            self._settle(Settlement(delivery.id, delivery.delivery, Failed("timeout", text)))

    def _refuse(self, delivery: Deliver) -> None:
        text = f"no handler is registered for {delivery.terms.target!r}"
        self._settle(Settlement(delivery.id, delivery.delivery, Rejected("no-handler", text)))


@types.coroutine
def _eagerly(
    call: Coroutine[Any, Any, Outcome], suspended: Callable[[], None]
) -> Generator[Any, Any, Outcome]:
    """Await a coroutine, and say so the first time it really waits."""
    try:
        waits_for = call.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    suspended()
    # From here on as `await` does it: pass on what comes in, until it is done.
    while True:
        try:
            value = yield waits_for
        except GeneratorExit:
            call.close()
            raise
        except BaseException as error:
            step: Callable[[], Any] = lambda error=error: call.throw(error)  # type: ignore[misc]  # noqa: E731
        else:
            step = lambda value=value: call.send(value)  # type: ignore[misc]  # noqa: E731
        try:
            waits_for = step()
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
