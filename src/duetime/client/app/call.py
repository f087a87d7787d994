"""One operation, for async and plain programs: `await call` in async code, `call.wait()` in plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import warnings
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duetime.errors import Closed, WaitTimedOut

T = TypeVar("T")

Origin = tuple[str, CodeType, int]
"""The method that a program called, and where: a code object and an instruction in it. The line number is
computed when it is needed."""

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


class Dropped(RuntimeWarning):
    """A call was created and never used: nothing was scheduled."""


def origin(depth: int) -> Origin:
    """The call from outside this package that is being executed. `depth`: the frames that are surely
    inside."""
    inside = frame = sys._getframe(depth)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        inside, frame = frame, frame.f_back
    return inside.f_code.co_name, frame.f_code, frame.f_lasti


def warn_dropped(made: Origin, problem: str, hint: str) -> None:
    """Warn at the line that created the object, not at the line where Python deletes it."""
    if sys.is_finalizing():
        return  # the object lived as long as the program
    name, code, instruction = made
    lines = (line for first, end, line in code.co_lines() if first <= instruction < end)
    line = next(lines, None) or code.co_firstlineno
    warnings.warn_explicit(f"{name}() {problem}. {hint}", Dropped, code.co_filename, line)


def check_process(pid: int) -> None:
    """Raise in a forked process: the event loop of its parent does not run here."""
    if os.getpid() != pid:
        raise Closed(
            f"The app or client was started in process {pid}; this process is a fork of it.",
            hint="Start a new app or client in the forked process, after the fork.",
        )


# Names of Celery's results.
_RESULTS = frozenset({"get", "id", "result", "state", "status", "ready"})


class Call(Coroutine[Any, Any, T], Generic[T]):
    """An operation that starts when it is awaited or waited for, once."""

    __slots__ = ("_coroutine", "_loop", "_made", "_steps")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._steps: Any = None
        self._made: Origin | None = origin(3)  # None after the first use

    if not TYPE_CHECKING:  # a type checker finds a wrong name itself

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"A Call has no {name!r}: it is not done yet. Write `await call`, or `call.wait()` in plain "
                f"code.{' Then ask the handle for its result.' if name in _RESULTS else ''}",
                name=name,
                obj=self,
            )

    def __del__(self) -> None:
        if self._made is not None:
            self._coroutine.close()  # otherwise Python warns too, and names an internal coroutine
            warn_dropped(
                self._made,
                "was never awaited, so nothing happened",
                "Write `await` before it, or `.wait()` after it in plain code.",
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
        self._made = None
        (self._steps if self._steps is not None else self._coroutine).close()

    def __await__(self) -> Generator[Any, None, T]:
        self._made = None
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
        self._made = None
        try:
            loop = self._loop()
            if running_loop() is loop:
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


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of the calling code; None in plain code."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
