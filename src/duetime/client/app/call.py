"""One operation, for async and plain programs: `await call` in async code, `call.wait()` in plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from duetime.errors import Closed, WaitTimedOut

T = TypeVar("T")


def check_process(pid: int) -> None:
    """Raise in a forked process: the event loop of its parent does not run here."""
    if os.getpid() != pid:
        raise Closed(
            f"The app or client was started in process {pid}; this process is a fork of it.",
            hint="Start a new app or client in the forked process, after the fork.",
        )


class Call(Coroutine[Any, Any, T], Generic[T]):
    """An operation that starts when it is awaited or waited for, once."""

    __slots__ = ("_coroutine", "_loop", "_steps")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._steps: Any = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"A Call has no {name!r}: it is not done yet. Write `await call`, or `call.wait()` in plain code."
        )

    def __repr__(self) -> str:
        name = getattr(self._coroutine, "__qualname__", "")
        return f"Call({name}), to be awaited or waited for"

    # The methods of a coroutine, for `asyncio.create_task` and task groups.

    def send(self, value: Any) -> Any:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.throw(*error)

    def close(self) -> None:
        (self._steps if self._steps is not None else self._coroutine).close()

    def __await__(self) -> Generator[Any, None, T]:
        try:
            loop = self._loop()
        except BaseException:
            self._coroutine.close()
            raise
        if loop is asyncio.get_running_loop():
            return self._coroutine.__await__()
        # The app runs in another thread (opened with `with`): wait for it without blocking this event loop.
        future = asyncio.run_coroutine_threadsafe(self._coroutine, loop)
        return asyncio.wrap_future(future).__await__()

    def wait(self, timeout_s: float | None = None) -> T:
        """Block this thread until the operation is done."""
        try:
            loop = self._loop()
            if _running_loop() is loop:
                raise Closed(
                    "wait() would block the event loop that runs the engine.",
                    hint="Use `await` inside async functions.",
                )
        except BaseException:
            self._coroutine.close()
            raise
        future = asyncio.run_coroutine_threadsafe(self._coroutine, loop)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise
            future.cancel()
            raise WaitTimedOut(f"The call did not finish within {timeout_s} s.") from None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
