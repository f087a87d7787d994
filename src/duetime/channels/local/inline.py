"""Functions in this process: coroutines on the loop, plain functions in threads, heavy ones in processes.

Coroutines are run by a few long-lived runners instead of one task each. A runner takes one delivery after
another; the next runner is woken only when a function really waits. So functions that do not wait need no
task of their own, and those that do wait have a proper one in the meantime (timeouts, cancellation and
`current_task` work as usual). A runner whose context was changed by a function is not used again.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import Any, Protocol

from duetime.channels.channel import Settler
from duetime.channels.local.pool import Pool
from duetime.limits import CHANNEL_CLOSE_S
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Failed, Outcome, Rejected, Settlement
from duetime.protocol.terms import Entity, Target, Task


class Handler(Protocol):
    """Runs a delivery. Exactly one of the two ways is used, depending on `executor`."""

    @property
    def executor(self) -> Executor | None:
        """None: `run` is awaited on the loop. Otherwise `job` returns a call that runs in this executor."""

    @property
    def workers(self) -> int:
        """The number of calls that the executor runs at a time."""

    def run(self, delivery: Deliver) -> Coroutine[Any, Any, Outcome]: ...

    def job(self, delivery: Deliver) -> tuple[Callable[..., object], tuple[object, ...]]: ...

    def outcome(self, delivery: Deliver, value: object, error: BaseException | None) -> Outcome: ...


Finder = Callable[[Deliver], Handler | None]
_Call = Coroutine[Any, Any, Outcome]
_logger = logging.getLogger("duetime")


class _Runner:
    """One task that runs deliveries one after another."""

    __slots__ = ("aborted", "idle", "task", "until_s")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.idle: asyncio.Future[None] | None = None
        self.until_s = 0.0
        self.aborted = ""


class InlineChannel:
    """Runs handlers of this process."""

    def __init__(
        self, find: Finder, complete: Callable[[list[Settlement]], list[Settlement]] | None = None
    ) -> None:
        """`complete` may add to outcomes before they are settled: the log output of the attempt."""
        self._find = find
        self._complete = complete
        self._queue: deque[tuple[Deliver, float]] = deque()
        """Deliveries that have not begun, and when each was taken, by the loop's clock."""
        self._idle: list[_Runner] = []
        self._busy: dict[tuple[str, int], _Runner] = {}
        self._pools: dict[Executor, Pool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at_s = 0.0
        self._outcomes: list[Settlement] = []
        self._closed = False

    def open(self, settle: Settler) -> None:
        complete = self._complete
        self._settle = settle if complete is None else lambda outcomes: settle(complete(outcomes))
        self._loop = asyncio.get_running_loop()

    def deliver(self, delivery: Deliver, taken_s: float | None = None) -> None:
        """`taken_s`: when it arrived, if it waited somewhere else before."""
        self._queue.append((delivery, self._loop.time() if taken_s is None else taken_s))

    def flush(self) -> None:
        if self._queue:
            self._wake_runner()

    def running(self) -> int:
        return (
            len(self._queue)
            + len(self._busy)
            + len(self._outcomes)
            + sum(pool.running() for pool in self._pools.values())
        )

    def abort(self, abort: Abort) -> None:
        place = (abort.id, abort.delivery)
        for entry in self._queue:
            if (entry[0].id, entry[0].delivery) == place:
                self._queue.remove(entry)
                return
        runner = self._busy.get(place)
        if runner is not None:
            self._stop(runner, "cancelled")
        for pool in self._pools.values():
            pool.abort(place)

    def hand_back(self) -> list[Deliver]:
        """Deliveries that have not begun; they get no outcome from here."""
        back = [delivery for delivery, _ in self._queue]
        self._queue.clear()
        for pool in self._pools.values():
            back += pool.hand_back()
        return back

    async def close(self) -> None:
        self._closed = True
        self._queue.clear()
        if self._watch is not None:
            self._watch.cancel()
        for pool in self._pools.values():
            pool.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:  # functions that ignore their cancellation are not waited for
            await asyncio.wait(self._tasks, timeout=CHANNEL_CLOSE_S)

    def left(self) -> set[tuple[str, int]]:
        """After `close`: the deliveries whose functions still run, in threads or in spite of a cancel."""
        return set(self._busy).union(*(pool.left() for pool in self._pools.values()))

    # Runners.

    def _wake_runner(self) -> None:
        while self._idle:
            idle = self._idle.pop().idle
            if idle is not None and not idle.done():  # otherwise it was cancelled while it was idle
                idle.set_result(None)
                return
        runner = _Runner()
        runner.task = self._loop.create_task(self._run(runner), context=contextvars.Context())
        self._tasks.add(runner.task)
        runner.task.add_done_callback(self._tasks.discard)

    async def _run(self, runner: _Runner) -> None:
        queue, find = self._queue, self._find
        clean = contextvars.copy_context()
        while True:
            while queue:
                delivery, taken_s = queue.popleft()
                try:
                    handler = find(delivery)
                    executor = None if handler is None else handler.executor
                except Exception as error:
                    text = f"its handler could not be loaded: {type(error).__name__}: {error}"
                    self._end(delivery, Rejected("no-handler", text))
                    continue
                if handler is None:
                    self._refuse(delivery)
                elif executor is not None:
                    self._pool(executor, handler.workers).run(delivery, handler, taken_s)
                else:
                    waited_ms = int(1000 * (self._loop.time() - taken_s))
                    call = handler.run(delivery)
                    try:
                        waits_for = call.send(None)
                    except StopIteration as stop:  # it never waited: it is done
                        outcome = stop.value
                    except BaseException as error:
                        outcome = self._raised(runner, handler, delivery, error)
                    else:
                        outcome = await self._suspended(runner, handler, delivery, call, waits_for)
                    self._outcomes.append(
                        Settlement(delivery.id, delivery.delivery, outcome, None, "", waited_ms)
                    )
                    if contextvars.copy_context() != clean:
                        # A function left something in the context: no other function should see it.
                        self._report()
                        self.flush()
                        return
            self._report()
            if self._closed:
                return
            runner.idle = self._loop.create_future()
            self._idle.append(runner)
            await runner.idle

    async def _suspended(
        self, runner: _Runner, handler: Handler, delivery: Deliver, call: _Call, waits_for: object
    ) -> Outcome:
        """The function waits: watch its time limit, and let another runner continue in the meantime."""
        self._report()
        runner.aborted = ""
        runner.until_s = self._loop.time() + delivery.terms.timeout_ms / 1000
        place = (delivery.id, delivery.delivery)
        self._busy[place] = runner
        self._arm_watch(runner.until_s)
        self.flush()
        try:
            outcome = await _finish(call, waits_for)
        except BaseException as error:
            return self._raised(runner, handler, delivery, error)
        finally:
            del self._busy[place]
        # A function that was stopped but continued no longer has an outcome of its own.
        return self._stopped(runner) if runner.aborted else outcome

    def _raised(self, runner: _Runner, handler: Handler, delivery: Deliver, error: BaseException) -> Outcome:
        """The outcome of a function that raised. Only the end of this channel is passed on."""
        if isinstance(error, asyncio.CancelledError):
            if self._closed:
                raise error
            if runner.aborted:
                return self._stopped(runner)
            assert runner.task is not None
            if runner.task.cancelling():  # the task is being cancelled: delivery and runner end here
                self._end(delivery, Failed("cancelled", "its task was cancelled from outside"))
                raise error
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise error
        return handler.outcome(delivery, None, error)

    def _stopped(self, runner: _Runner) -> Outcome:
        """The outcome of a delivery that timed out or was cancelled. Its runner continues with others."""
        assert runner.task is not None
        runner.task.uncancel()
        reason, runner.aborted = runner.aborted, ""
        return Failed(reason, f"it was stopped: {reason}")

    def _report(self) -> None:
        """Settle the outcomes gathered so far, together."""
        if self._outcomes:
            outcomes, self._outcomes = self._outcomes, []
            self._settle(outcomes)

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

    def _pool(self, executor: Executor, workers: int) -> Pool:
        pool = self._pools.get(executor)
        if pool is None:
            # A broken executor was replaced by a new one: its pool is dropped with it.
            self._pools = {each: old for each, old in self._pools.items() if old.running()}
            pool = self._pools[executor] = Pool(executor, workers, self._end)
        return pool

    def _refuse(self, delivery: Deliver) -> None:
        what = _named(delivery.terms.target)
        text = f"no handler is registered for {what}; register it and revive this intent"
        _logger.error("Intent %s: %s.", delivery.id, text)
        self._end(delivery, Rejected("no-handler", text))

    def _end(self, delivery: Deliver, outcome: Outcome, waited_ms: int = 0) -> None:
        self._settle([Settlement(delivery.id, delivery.delivery, outcome, None, "", waited_ms)])


def _named(target: Target) -> str:
    match target:
        case Task(name, queue):
            return f"the task {name!r} of the queue {queue!r}"
        case Entity(kind, _, message):
            return f"the message {message!r} of the entity {kind!r}"
        case _:
            return "intents without a target"


@types.coroutine
def _finish(call: _Call, waits_for: Any) -> Generator[Any, Any, Outcome]:
    """Continue a coroutine that waits, as `await` does: pass on what is sent in, until it is done."""
    while True:
        try:
            value = yield waits_for
        except GeneratorExit:
            call.close()
            raise
        except BaseException as error:
            step, passed = call.throw, error  # type: tuple[Callable[[Any], Any], Any]
        else:
            step, passed = call.send, value
        try:
            waits_for = step(passed)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
