"""One operation, for both kinds of programs: `await call` in async code, `call.wait()` in plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from duetime.errors import Closed, WaitTimedOut

T = TypeVar("T")


class Call(Generic[T]):
    """Nothing happens until it is awaited or waited for, once."""

    __slots__ = ("_coroutine", "_loop")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop

    def __await__(self) -> Generator[Any, None, T]:
        try:
            loop = self._loop()
        except BaseException:
            self._coroutine.close()
            raise
        if loop is asyncio.get_running_loop():
            return self._coroutine.__await__()
        # The app lives in another thread (opened with `with`): wait for it without blocking this loop.
        future = asyncio.run_coroutine_threadsafe(self._coroutine, loop)
        return asyncio.wrap_future(future).__await__()

    def wait(self, timeout_s: float | None = None) -> T:
        """Block this thread until it is done."""
        try:
            loop = self._loop()
            if _running_loop() is loop:
                raise Closed(
                    "wait() would block the loop that has to do the work.",
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
            raise WaitTimedOut(f"It was not done within {timeout_s} s.") from None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
