"""Soft time limits: `SoftTimeout` is raised inside a running function, which can then clean up and end.

A coroutine gets it at the `await` where it waits. A plain function in a thread gets it between two steps of
the interpreter: a call that blocks outside the interpreter (a query, a socket, `time.sleep`) returns first.
In a process a signal raises it, which also interrupts most blocking system calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from duetime.client.app.control import SoftTimeout

T = TypeVar("T")
_Step = Callable[[Any], Any]

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.py_object)
# Revokes an exception that has not been raised yet.
_NOTHING: ctypes.py_object[Any] = ctypes.py_object()


class _SoftCancel(SoftTimeout, asyncio.CancelledError):
    """What a coroutine gets. As a `CancelledError` it makes task groups cancel their tasks."""


_SoftCancel.__name__ = _SoftCancel.__qualname__ = SoftTimeout.__name__  # the name that users know


def in_coroutine(
    function: Callable[..., Coroutine[Any, Any, T]], limit_ms: int
) -> Callable[..., Coroutine[Any, Any, T]]:
    """The coroutine function with a soft time limit."""

    async def limited(*args: object, **kwargs: object) -> T:
        limit = _CoroutineLimit(limit_ms)
        try:
            return await _interruptible(function(*args, **kwargs), limit)
        finally:
            limit.end()

    return limited


class _CoroutineLimit:
    """Cancels what the task waits for when the time is over, once."""

    def __init__(self, limit_ms: int) -> None:
        task = asyncio.current_task()
        assert task is not None, "functions run in a task"
        self._task = task
        self._cancelling = task.cancelling()
        self._timer = task.get_loop().call_later(limit_ms / 1000, self._cancel)
        self._cancelled = False

    def _cancel(self) -> None:
        self._cancelled = True
        self._task.cancel()

    def take(self) -> bool:
        """Whether a cancellation of the task was this limit's alone. It is then revoked."""
        if not self._cancelled:
            return False
        self._cancelled = False
        return self._task.uncancel() <= self._cancelling

    def end(self) -> None:
        """The function has ended."""
        self._timer.cancel()
        self.take()  # something inside the function caught the cancellation


@types.coroutine
def _interruptible(call: Coroutine[Any, Any, T], limit: _CoroutineLimit) -> Generator[Any, Any, T]:
    """Run a coroutine as `await` does. A cancellation by the limit arrives as `SoftTimeout`."""
    step, passed = call.send, None  # type: tuple[_Step, Any]
    while True:
        try:
            waits_for = step(passed)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        try:
            value = yield waits_for
        except GeneratorExit:
            call.close()
            raise
        except asyncio.CancelledError as error:
            step, passed = call.throw, _SoftCancel() if limit.take() else error
        except BaseException as error:
            step, passed = call.throw, error
        else:
            step, passed = call.send, value


class ThreadLimit:
    """The soft time limit of one call in a thread. Made on the event loop, which has the timer."""

    def __init__(self, limit_ms: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(limit_ms / 1000, self._raise)
        self._running: list[int] = []
        """The thread of the function, while it may be interrupted. The side that removes it decides."""
        self._raised = threading.Event()

    def run(self, function: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Call the function in this thread."""
        self._running.append(threading.get_ident())
        try:
            return function(*args, **kwargs)
        finally:
            self._end()

    def _raise(self) -> None:
        with contextlib.suppress(IndexError):  # the function has ended, or has not begun
            _raise_in_thread(self._running.pop(), SoftTimeout)
            self._raised.set()

    def _end(self) -> None:
        try:
            self._running.pop()
        except IndexError:
            # The limit was first. If its exception has not arrived yet, it must not hit the next function.
            self._raised.wait()
            _raise_in_thread(threading.get_ident(), _NOTHING)
            return
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._timer.cancel)


def in_process(function: Callable[..., T], limit_ms: int) -> Callable[..., T]:
    """The function with a soft time limit, for the main thread of a process that runs one call at a time."""

    def limited(*args: object, **kwargs: object) -> T:
        running = True

        def on_alarm(number: int, frame: object) -> None:
            if running:
                raise SoftTimeout

        before = signal.signal(signal.SIGALRM, on_alarm)
        try:
            signal.setitimer(signal.ITIMER_REAL, limit_ms / 1000)
            return function(*args, **kwargs)
        finally:
            running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)

    return limited
