"""Functions in threads or processes: as many at a time as there are workers, each with its time limit.

A job is passed to the executor only when a worker is free, so that its time limit begins when it really
starts. A thread cannot be stopped: after its limit the delivery ends as a timeout and the thread's result is
ignored, but its worker counts as busy until it really ends. A process can be stopped, if the executor is a
`KillingExecutor`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import NamedTuple, Protocol, runtime_checkable

from duetime.protocol.effect import Deliver, DeliveryKey
from duetime.protocol.outcome import Failed, Outcome

Ender = Callable[[Deliver, Outcome, int], None]
"""Takes the outcome of a delivery, and how long it waited for a worker; -1: it did not begin."""
_logger = logging.getLogger("duetime")


class Work(Protocol):
    """The part of a handler that a pool needs."""

    def job(self, delivery: Deliver) -> tuple[Callable[..., object], tuple[object, ...]]: ...

    def outcome(self, delivery: Deliver, value: object, error: BaseException | None) -> Outcome: ...


@runtime_checkable
class KillingExecutor(Protocol):
    """Optional: an executor that can stop a call while it runs."""

    def kill(self, future: concurrent.futures.Future[object], /) -> None:
        """Stop the call of this future. The future ends with an error, and its worker is replaced."""


class _Started(NamedTuple):
    """A running job."""

    delivery: Deliver
    work: Work
    waited_ms: int
    """How long it waited for a free worker."""
    limit: asyncio.TimerHandle
    future: concurrent.futures.Future[object]


class Pool:
    """Runs jobs in one executor."""

    def __init__(self, executor: Executor, workers: int, end: Ender) -> None:
        self._executor = executor
        self._free = workers
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[Deliver, Work, float]] = deque()
        self._started: dict[DeliveryKey, _Started] = {}
        self._left: dict[DeliveryKey, concurrent.futures.Future[object]] = {}
        self._kill = executor.kill if isinstance(executor, KillingExecutor) else None
        thread = "its thread keeps running (result ignored)"
        self._fate = "was killed" if self._kill is not None else thread
        self._closed = False

    def run(self, delivery: Deliver, work: Work, taken_s: float) -> None:
        """Start it when a worker is free. It has waited since `taken_s`, by the loop's clock."""
        self._waiting.append((delivery, work, taken_s))
        self._start()

    def abort(self, place: DeliveryKey) -> None:
        """Give up a delivery, whether it waits or runs."""
        for entry in self._waiting:
            if (entry[0].id, entry[0].delivery) == place:
                self._waiting.remove(entry)
                self._end(entry[0], Failed("cancelled", "it was cancelled before it started"), -1)
                return
        self._give_up(place, Failed("cancelled", f"it was cancelled and {self._fate}"))

    def hand_back(self) -> list[Deliver]:
        """Deliveries that have not begun; they get no outcome."""
        waiting = [delivery for delivery, _, _ in self._waiting]
        self._waiting.clear()
        return waiting

    def running(self) -> int:
        return len(self._waiting) + len(self._started)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        for place, started in self._started.items():
            started.limit.cancel()
            if self._kill is not None:
                self._kill(started.future)
            else:
                self._left[place] = started.future
        self._started.clear()

    def left(self) -> set[DeliveryKey]:
        """After `close`: the deliveries that still run, because a thread cannot be stopped."""
        return {place for place, future in self._left.items() if not future.done()}

    def _start(self) -> None:
        while self._waiting and self._free:
            delivery, work, taken_s = self._waiting.popleft()
            call, args = work.job(delivery)
            try:
                future = self._executor.submit(call, *args)
            except Exception as error:  # the pool is broken or shut down
                self._end(delivery, work.outcome(delivery, None, error), -1)
                continue
            self._free -= 1
            place = (delivery.id, delivery.delivery)
            limit_ms = delivery.terms.timeout_ms
            text = f"it ran longer than {limit_ms} ms and {self._fate}"
            limit = self._loop.call_later(limit_ms / 1000, self._give_up, place, Failed("timeout", text))
            waited_ms = int(1000 * (self._loop.time() - taken_s))
            self._started[place] = _Started(delivery, work, waited_ms, limit, future)
            future.add_done_callback(lambda done, place=place: self._from_worker(place, done))  # type: ignore[misc]

    def _from_worker(self, place: DeliveryKey, done: concurrent.futures.Future[object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            self._loop.call_soon_threadsafe(self._ended, place, done)

    def _ended(self, place: DeliveryKey, done: concurrent.futures.Future[object]) -> None:
        self._free += 1
        started = self._started.pop(place, None)
        if started is not None:  # otherwise it was given up before
            delivery, work, waited_ms, limit, _ = started
            limit.cancel()
            error = concurrent.futures.CancelledError() if done.cancelled() else done.exception()
            try:
                outcome = work.outcome(delivery, None if error else done.result(), error)
            except Exception as broken:  # whatever happens, a delivery gets an outcome
                outcome = Failed(type(broken).__name__, "its outcome could not be made")
            self._end(delivery, outcome, waited_ms)
        if not self._closed:
            self._start()

    def _give_up(self, place: DeliveryKey, outcome: Failed) -> None:
        started = self._started.pop(place, None)
        if started is not None:
            started.limit.cancel()
            if self._kill is not None:
                self._kill(started.future)
            _logger.warning("Intent %s, delivery %d: %s.", *place, outcome.message)
            self._end(started.delivery, outcome, started.waited_ms)
