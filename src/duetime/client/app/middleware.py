"""Middleware: code around every scheduled call and around every run of a function.

An app has a list of middleware. `before_...` hooks run in the order of the list, all other hooks in the
reverse order. A hook is a plain method or a coroutine. An error in a hook is logged and does not stop the
call. A hook can stop a call on purpose: `before_run` with `Reject`, `Snooze` or `RetryAfter`,
`before_schedule` with an error of Duetime.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from msgspec import Struct

from duetime.client.app.control import Context, Reject, RetryAfter, Snooze
from duetime.errors import DuetimeError, InvalidField

T = TypeVar("T")
Hook = Callable[..., Any]
Drive = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs the coroutine of a hook to its end in a place that cannot await."""

Passed = type | tuple[type, ...]
"""The exceptions with which a hook stops a call on purpose."""

Added = tuple[dict[str, str] | None, str | None]
"""The headers and the traceparent of one intent."""

_CONTROLS = (Reject, RetryAfter, Snooze)
_logger = logging.getLogger("duetime")


class NewCall(Struct):
    """A call that is being scheduled. `before_schedule` may change arguments, headers and the trace."""

    task: str
    """The name of the task, or `type.message` of an entity; empty for an intent without a target."""
    queue: str
    args: Sequence[object]
    kwargs: Mapping[str, object]
    intent_id: str
    """The id that the intent gets, unless its key names an existing one."""
    execute_at_ms: int
    tags: Mapping[str, str]
    headers: dict[str, str]
    """Sent with the intent to the code that runs it."""
    traceparent: str | None = None
    state: dict[str, Any] = {}
    """For the middleware: passed on to its later hooks."""


class Run(Struct):
    """One attempt to run a function."""

    context: Context
    """The task, the queue, the attempt, the id, the tags and the headers of the intent."""
    args: Sequence[object]
    kwargs: Mapping[str, object]
    state: dict[str, Any] = {}
    """For the middleware: passed on to its later hooks."""


class Middleware:
    """Override the hooks that you need, as plain methods or coroutines."""

    def before_schedule(self, call: NewCall) -> Awaitable[None] | None:
        """The call is about to be scheduled."""
        return None

    def after_schedule(self, call: NewCall, intent_id: str) -> Awaitable[None] | None:
        """The call was accepted as this intent."""
        return None

    def schedule_failed(self, call: NewCall, error: BaseException) -> Awaitable[None] | None:
        """The call was refused, or it is unknown whether it was accepted."""
        return None

    def before_run(self, run: Run) -> Awaitable[None] | None:
        """The function is about to run. Context variables that are set here are visible in the function."""
        return None

    def after_run(self, run: Run, result: object) -> Awaitable[None] | None:
        """The function returned."""
        return None

    def run_failed(self, run: Run, error: BaseException) -> Awaitable[None] | None:
        """The function raised, was cancelled or timed out."""
        return None

    def run_ended(self, run: Run) -> Awaitable[None] | None:
        """The attempt has ended, in whatever way."""
        return None


_HOOKS = tuple(name for name in vars(Middleware) if not name.startswith("_"))


class Middlewares:
    """The middleware of an app. Hooks that are not overridden cost nothing."""

    def __init__(self) -> None:
        self.schedules = False
        """Whether there are hooks around scheduling."""
        self.runs = False
        """Whether there are hooks around runs."""
        self.waits = False
        """Whether a hook around runs is a coroutine."""
        self._all: list[Middleware] = []
        self._hooks: dict[str, tuple[Hook, ...]] = dict.fromkeys(_HOOKS, ())

    def add(self, middleware: Middleware) -> None:
        if not isinstance(middleware, Middleware):
            raise InvalidField(
                f"{middleware!r} is not a Middleware.",
                hint="Subclass duetime.Middleware and pass an instance.",
            )
        self._all.append(middleware)
        for name in _HOOKS:
            if getattr(type(middleware), name) is getattr(Middleware, name):
                continue
            hook = getattr(middleware, name)
            about_runs = "run" in name.split("_")
            self.runs |= about_runs
            self.schedules |= not about_runs
            self.waits |= about_runs and inspect.iscoroutinefunction(hook)
            known = self._hooks[name]
            self._hooks[name] = (*known, hook) if name.startswith("before") else (hook, *known)

    # Scheduling.

    @asynccontextmanager
    async def around_schedule(self, calls: Sequence[NewCall]) -> AsyncIterator[None]:
        """The hooks around calls that are scheduled together. The block sets the final id of each call."""
        begun: list[NewCall] = []
        try:
            for call in calls:
                begun.append(call)
                await self._call("before_schedule", DuetimeError, call)
            yield
        except BaseException as error:
            for call in begun:
                await self._call("schedule_failed", (), call, error)
            raise
        for call in calls:
            await self._call("after_schedule", (), call, call.intent_id)

    @contextmanager
    def around_schedule_here(self, call: NewCall) -> Iterator[None]:
        """The same in code that cannot await, such as a database transaction. The call is accepted by it."""
        try:
            self._call_plain("before_schedule", DuetimeError, _at_once, call)
            yield
        except BaseException as error:
            self._call_plain("schedule_failed", (), _at_once, call, error)
            raise
        self._call_plain("after_schedule", (), _at_once, call, call.intent_id)

    # Runs.

    async def around(self, run: Run, function: Callable[..., Awaitable[T]]) -> T:
        """Run a coroutine function with the hooks around it."""
        hooks = self._hooks
        try:
            if (waits := _start(hooks["before_run"], _CONTROLS, run)) is not None:
                await waits
            value = await function(*run.args, **run.kwargs)
        except BaseException as error:
            if (waits := _start_with(hooks["run_failed"], run, error)) is not None:
                await waits
            raise
        else:
            if (waits := _start_with(hooks["after_run"], run, value)) is not None:
                await waits
            return value
        finally:
            if (waits := _start(hooks["run_ended"], (), run)) is not None:
                await waits

    def around_plain(self, run: Run, function: Callable[..., T], drive: Drive) -> T:
        """Run a plain function with the hooks around it, in the same thread."""
        try:
            self._call_plain("before_run", _CONTROLS, drive, run)
            value = function(*run.args, **run.kwargs)
        except BaseException as error:
            self._call_plain("run_failed", (), drive, run, error)
            raise
        else:
            self._call_plain("after_run", (), drive, run, value)
            return value
        finally:
            self._call_plain("run_ended", (), drive, run)

    async def _call(self, name: str, passed: Passed, call: NewCall, *more: object) -> None:
        hooks = self._hooks[name]
        waits = _start_with(hooks, call, *more) if more else _start(hooks, passed, call)
        if waits is not None:
            await waits

    def _call_plain(self, name: str, passed: Passed, drive: Drive, *args: object) -> None:
        for hook in self._hooks[name]:
            try:
                waits = hook(*args)
                if waits is not None:
                    drive(waits)
            except (Exception, SystemExit) as error:
                _handle(hook, error, passed)


def _start(hooks: tuple[Hook, ...], passed: Passed, about: object) -> Awaitable[None] | None:
    """Call the hooks. If one of them waits, returns the rest as a coroutine: most hooks need none.

    Errors are logged, except those that the hook may raise (`passed`). This and the next function run for
    every call, so they take no variable arguments.
    """
    for hook in (left := iter(hooks)):
        try:
            waits = hook(about)
        except (Exception, SystemExit) as error:
            _handle(hook, error, passed)
        else:
            if waits is not None:
                return _rest(hook, waits, passed, lambda: _start(tuple(left), passed, about))
    return None


def _start_with(hooks: tuple[Hook, ...], about: object, found: object) -> Awaitable[None] | None:
    """The same for hooks that also get a result or an error. They may raise nothing."""
    for hook in (left := iter(hooks)):
        try:
            waits = hook(about, found)
        except (Exception, SystemExit) as error:
            _handle(hook, error, ())
        else:
            if waits is not None:
                return _rest(hook, waits, (), lambda: _start_with(tuple(left), about, found))
    return None


async def _rest(
    hook: Hook, waits: Awaitable[None], passed: Passed, start: Callable[[], Awaitable[None] | None]
) -> None:
    """Wait for a hook that was called, and start the hooks after it."""
    try:
        await waits
    except (Exception, SystemExit) as error:
        _handle(hook, error, passed)
    if (more := start()) is not None:
        await more


def _handle(hook: Hook, error: BaseException, passed: Passed) -> None:
    if isinstance(error, passed):
        raise error
    _logger.error("Middleware %s failed; the call goes on.", hook.__qualname__, exc_info=error)


def _at_once(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that does not wait for anything."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise InvalidField(
        "An async hook around scheduling waits, which is impossible inside a transaction.",
        hint="Write it as a plain method.",
    )


def on_loop(loop: asyncio.AbstractEventLoop | None) -> Drive:
    """Drives coroutines of hooks from a thread of plain functions. They run on the app's event loop, in a
    copy of the thread's context. Without a loop (in another process) each gets its own loop."""
    if loop is None:
        return asyncio.run

    def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
        context = contextvars.copy_context()

        async def within() -> Any:
            return await loop.create_task(coroutine, context=context)

        return asyncio.run_coroutine_threadsafe(within(), loop).result()

    return drive


def added(call: NewCall) -> Added:
    """The headers and the trace that the hooks gave to a call."""
    headers: Any = call.headers  # what a hook wrote is not checked by its types
    for name, value in headers.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise InvalidField(f"The header {name!r}: {value!r} is not text.", hint="Use str() on both.")
    return (call.headers or None, call.traceparent)
