"""Functions that are called when an attempt fails or an intent becomes a dead letter.

They are called one after the other, in the order of the transitions: coroutines on the app's event loop,
plain functions in a thread. So a slow one delays only the next one, and neither the engine nor the functions.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from duetime.limits import LISTENER_CALLS_MAX, LISTENER_STOP_MS
from duetime.wire.event import Transition
from duetime.wire.intent import Status

Listener = Callable[[Transition], Awaitable[object] | object]

FAILURES = (Status.SCHEDULED, Status.DEAD_LETTERED, Status.EXPIRED)
"""The states after a failed attempt."""
_logger = logging.getLogger("duetime")


class Listeners:
    """The functions, and the calls that wait for them."""

    def __init__(self) -> None:
        self._on_failure: list[Listener] = []
        self._on_dead_letter: list[Listener] = []
        self._calls: deque[tuple[Listener, Transition]] = deque()
        self._dropped = 0
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def on_failure(self, listener: Listener) -> bool:
        """Add a function; returns whether it is the first."""
        self._on_failure.append(listener)
        return len(self._on_failure) == 1

    def on_dead_letter(self, listener: Listener) -> bool:
        """Add a function; returns whether it is the first."""
        self._on_dead_letter.append(listener)
        return len(self._on_dead_letter) == 1

    def see_failures(self, change: Transition) -> None:
        """An observer: an attempt that ended with an error is a failure, whatever follows."""
        if change.previous_status is Status.DISPATCHING and change.error is not None:
            self._call(self._on_failure, change)

    def see_dead_letters(self, change: Transition) -> None:
        """An observer."""
        if change.status is Status.DEAD_LETTERED:
            self._call(self._on_dead_letter, change)

    async def settle(self) -> bool:
        """Wait for the calls that are due. Returns whether there were any."""
        if self._task is None:
            return False
        await asyncio.gather(self._task, return_exceptions=True)
        return True

    async def stop(self) -> None:
        """The app has stopped: finish the calls within a time limit."""
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=LISTENER_STOP_MS / 1000)
            for task in late:
                left, self._dropped = len(self._calls) + 1, 0
                self._calls.clear()
                task.cancel()
                await asyncio.wait([task])
                _logger.warning("The app stopped; %d calls of on_failure or on_dead_letter are lost.", left)
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None

    def _call(self, listeners: list[Listener], change: Transition) -> None:
        for listener in listeners:
            if len(self._calls) >= LISTENER_CALLS_MAX:
                self._dropped += 1
                continue
            self._calls.append((listener, change))
        if self._task is None and self._calls:
            # In an empty context: the observer may run in that of any caller.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    async def _run(self) -> None:
        try:
            while self._calls:
                await self._call_one(*self._calls.popleft())
                if self._dropped and len(self._calls) <= LISTENER_CALLS_MAX // 2:
                    _logger.warning(
                        "on_failure or on_dead_letter is too slow: %d calls were dropped.", self._dropped
                    )
                    self._dropped = 0
        finally:
            self._task = None

    async def _call_one(self, listener: Listener, change: Transition) -> None:
        try:
            if inspect.iscoroutinefunction(listener):
                await listener(change)
                return
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "duetime-listener")
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._thread, listener, change)
            if inspect.isawaitable(found):
                await found
        except (Exception, SystemExit):
            name = getattr(listener, "__qualname__", repr(listener))
            _logger.exception("%s failed for intent %s.", name, change.intent_id)
