"""Tasks: how they are sent, and how they run."""

from __future__ import annotations

import inspect
import logging
import secrets
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from duetime.client.app.control import Context, Reject, RetryAfter, Snooze, current
from duetime.client.execution.reports import progress
from duetime.contrib.celery import exceptions, signals, states
from duetime.contrib.celery.canvas import Signature, apply_graph
from duetime.contrib.celery.exceptions import MaxRetriesExceededError, Retry, refuse
from duetime.contrib.celery.graph import TOLD, listed, taken
from duetime.contrib.celery.request import Request
from duetime.contrib.celery.result import AsyncResult, EagerResult, error_of, failed_itself
from duetime.contrib.celery.state import current_app, running
from duetime.contrib.celery.utils import uuid
from duetime.contrib.celery.values import pack, unpack
from duetime.limits import CELERY_LOSSES_MAX, NOTE_CHARS_MAX
from duetime.wire.intent import Status

if TYPE_CHECKING:
    from duetime.contrib.celery.app import Celery

_logger = logging.getLogger("duetime.celery")

_CONTROLS = (Reject, RetryAfter, Snooze)

# Options whose absence would change what a task does. Unknown options are attributes of the task.
_REFUSED = {
    "pydantic": "Use a task of Duetime: its arguments may be pydantic models.",
    "filter": "Decorate the function.",
}


class ErrorInfo:
    """The error of a task for its handlers: `einfo`."""

    def __init__(self, error: BaseException) -> None:
        self.exception = error
        self.type = type(error)
        self.traceback = "".join(traceback.format_exception(error))

    def __str__(self) -> str:
        return self.traceback


class Task:
    """A task. Subclass it for handlers (`on_failure`, ...), and pass the class as `base=`."""

    name: str = ""
    max_retries: int | None = 3
    default_retry_delay: float = 180
    queue: str | None = None
    priority: int | None = None
    rate_limit: str | float | None = None
    time_limit: float | None = None
    soft_time_limit: float | None = None
    ignore_result: bool | None = None
    expires: Any = None
    result_expires: Any = None
    serializer: str | None = None
    typing: bool = True
    acks_late: bool | None = None
    throws: tuple[type[BaseException], ...] = ()
    autoretry_for: tuple[type[BaseException], ...] = ()
    dont_autoretry_for: tuple[type[BaseException], ...] = ()
    retry_kwargs: Mapping[str, Any] = {}
    retry_backoff: bool | float = False
    retry_backoff_max: float = 600
    retry_jitter: bool = True

    MaxRetriesExceededError = MaxRetriesExceededError

    _app: Celery | None = None
    _call: Callable[..., Any] | None = None
    _takes_self = False

    # Attributes that the decorators set.

    @property
    def app(self) -> Celery:
        return self._app if self._app is not None else current_app()

    @property
    def request(self) -> Request:
        """The running call; outside a call, one with defaults."""
        found = running.get()
        return found[1] if found is not None and found[0] is self else Request(self.name)

    @property
    def backend(self) -> Any:
        return self.app.backend

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The function of the task."""
        if self._call is None:
            raise NotImplementedError("Tasks must define the run method.")
        return self._call(self, *args, **kwargs) if self._takes_self else self._call(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here, not as a task."""
        token = running.set((self, Request(self.name, args, kwargs)))
        try:
            return self.run(*args, **kwargs)
        finally:
            running.reset(token)

    def __repr__(self) -> str:
        return f"<@task: {self.name}>"

    def __reduce__(self) -> Any:
        return _by_name, (self.name,)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise a TypeError if the function cannot be called with these arguments."""
        if self.typing:
            function = self._call if self._call is not None else self.run
            own = (self,) if self._takes_self else ()
            inspect.signature(function).bind(*own, *args, **kwargs)

    # Sending.

    def delay(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def apply_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        producer: object = None,
        link: Any = None,
        link_error: Any = None,
        shadow: str | None = None,
        **options: Any,
    ) -> Any:
        """Send a call: with `countdown`, `eta`, `expires`, `queue`, `priority`, `headers` ..."""
        if isinstance(args, str):
            raise TypeError("task args must be a list or tuple")
        if producer is not None or shadow is not None:
            raise refuse("apply_async(producer=, shadow=)", "Omit them.")
        app, args, kwargs = self.app, tuple(args or ()), dict(kwargs or {})
        self.check(args, kwargs)
        if app.conf.task_always_eager:
            return self.apply(args, kwargs, task_id=task_id, link=link, link_error=link_error, **options)
        if task_id is not None:
            options["task_id"] = task_id
        if link or link_error:
            return apply_graph(
                app, Signature(self, args, kwargs, {**options, "link": link, "link_error": link_error})
            )
        return app.send(self.name, args, kwargs, options)

    def apply(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        link: Any = None,
        link_error: Any = None,
        task_id: str | None = None,
        retries: int = 0,
        throw: bool | None = None,
        **options: Any,
    ) -> EagerResult:
        """Run the task here, with its retries but without their delays."""
        args, kwargs, id = tuple(args or ()), dict(kwargs or {}), task_id or uuid()
        throws = self.app.conf.task_eager_propagates if throw is None else throw
        while True:
            request = Request(self.name, args, kwargs, id=id, retries=retries, is_eager=True)
            outcome = Execution(self, request).run()
            if outcome.state != states.RETRY:
                break
            retries += 1
        if outcome.state == states.SUCCESS:
            for callback in listed(link):
                callback.apply((outcome.value,))
            return EagerResult(id, outcome.value, states.SUCCESS)
        assert isinstance(outcome.value, BaseException)
        for errback in listed(link_error):
            errback.apply((id,))
        if throws:
            raise outcome.value
        return EagerResult(id, outcome.value, states.FAILURE, str(ErrorInfo(outcome.value)))

    def AsyncResult(self, task_id: str, **kwargs: Any) -> AsyncResult:  # Celery's name
        return AsyncResult(task_id, app=self._app)

    # Signatures.

    def signature(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        immutable: bool = False,
        **more: Any,
    ) -> Signature:
        return Signature(self.name, args, kwargs, {**(options or {}), **more}, immutable, self._app)

    subtask = signature

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        return self.signature(args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """A signature that takes no result of the task before."""
        return self.signature(args, kwargs, immutable=True)

    def __or__(self, other: Any) -> Any:
        return self.s() | other

    # In a running task.

    def retry(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        exc: BaseException | None = None,
        throw: bool = True,
        eta: datetime | None = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> Retry:
        """Run this call again later: `raise self.retry(exc=error, countdown=60)`."""
        request = self.request
        if request.called_directly:
            raise exc if exc is not None else Retry("Task can be retried", None)
        if not throw:
            raise refuse("retry(throw=False)", "Raise what retry() returns.")
        for name, given, own in (("args", args, request.args), ("kwargs", kwargs, request.kwargs)):
            if given is not None and (tuple(given) if name == "args" else dict(given)) != own:
                raise refuse(f"retry({name}=) with other arguments", "Send a new call of the task.")
        for name, given in options.items():
            if given is not None:
                raise refuse(f"retry({name}=)", "Send a new call of the task.")
        limit = self.max_retries if max_retries is None else max_retries
        if limit is not None and request.retries >= limit:
            if exc is not None:
                raise exc
            raise MaxRetriesExceededError(
                f"Can't retry {self.name}[{request.id}] args:{request.args} kwargs:{request.kwargs}",
                task_args=request.args,
                task_kwargs=request.kwargs,
            )
        when = eta if eta is not None else self.default_retry_delay if countdown is None else countdown
        raise Retry(exc=exc, when=when)

    def update_state(
        self, task_id: str | None = None, state: str | None = None, meta: Any = None, **_: Any
    ) -> None:
        """Report a state of your own with data, for `result.state` and `result.info` while the task runs."""
        if task_id is not None and task_id != self.request.id:
            raise refuse("update_state(task_id=) of another task", "Report inside the task.")
        if self.request.is_eager or self.request.called_directly:
            return
        note = msgspec.json.encode({"state": state, "meta": pack(meta)}).decode()
        if len(note) > NOTE_CHARS_MAX:
            raise refuse(
                f"update_state with {len(note)} characters",
                f"State and meta may have {NOTE_CHARS_MAX} characters as JSON.",
            )
        known = meta if isinstance(meta, Mapping) else {}
        done, total = known.get("current", 0), known.get("total")
        progress(
            done if isinstance(done, int | float) else 0,
            total if isinstance(total, int | float) else None,
            note,
        )

    def __getattr__(self, name: str) -> Any:
        if name in _MISSING:
            raise refuse(f"Task.{name}", _MISSING[name])
        raise AttributeError(f"{type(self).__name__} {self.name!r} has no attribute {name!r}")

    # Handlers, to be overridden.

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """The task is about to run."""

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        """The task succeeded."""

    def on_retry(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: ErrorInfo) -> None:
        """The task is retried."""

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: ErrorInfo) -> None:
        """The task failed."""

    def after_return(
        self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        """The task returned or failed."""

    def on_bound(self, app: Celery) -> None:
        """The task was registered."""


_MISSING = {
    "replace": "Return the result of a chain that is built before it is sent.",
    "add_to_chord": "Build the whole group before it is sent.",
    "map": "Use a group.",
    "starmap": "Use a group.",
    "chunks": "Use a group.",
    "send_event": "Use update_state, or app.observe.",
    "request_stack": "Use self.request.",
    "signature_from_request": "Use self.retry.",
    "subtask_from_request": "Use self.retry.",
    "start_strategy": "A worker of Duetime starts tasks.",
}


class Outcome:
    """How a run ended: a state of Celery, and the value or the error."""

    def __init__(self, state: str, value: Any) -> None:
        self.state = state
        self.value = value


class Execution:
    """One run of a task, with its signals and handlers. Used by workers and by `apply`."""

    def __init__(self, task: Task, request: Request) -> None:
        self._task = task
        self._request = request

    def run(self) -> Outcome:
        task, request = self._task, self._request
        id, args, kwargs = str(request.id), request.args, request.kwargs
        token = running.set((task, request))
        outcome = Outcome(states.FAILURE, None)
        einfo: ErrorInfo | None = None
        try:
            signals.task_prerun.send(task, task_id=id, task=task, args=args, kwargs=kwargs)
            try:
                task.before_start(id, args, kwargs)
                outcome = Outcome(states.SUCCESS, self._called())
                task.on_success(outcome.value, id, args, kwargs)
                signals.task_success.send(task, result=outcome.value)
            except (*_CONTROLS, exceptions.Reject):
                raise
            except Retry as error:
                outcome, einfo = Outcome(states.RETRY, error), ErrorInfo(error)
                reason = error.exc if error.exc is not None else error
                task.on_retry(reason, id, args, kwargs, einfo)
                signals.task_retry.send(task, request=request, reason=error, einfo=einfo)
            except exceptions.Ignore:
                outcome = Outcome(states.SUCCESS, None)
            except (Exception, SystemExit) as error:
                outcome, einfo = Outcome(states.FAILURE, error), ErrorInfo(error)
                self._failed(error, einfo)
            if outcome.state != states.RETRY:
                task.after_return(outcome.state, outcome.value, id, args, kwargs, einfo)
            return outcome
        finally:
            signals.task_postrun.send(
                task,
                task_id=id,
                task=task,
                args=args,
                kwargs=kwargs,
                retval=outcome.value,
                state=outcome.state,
            )
            running.reset(token)

    def _called(self) -> Any:
        task = self._task
        try:
            return task.run(*self._request.args, **self._request.kwargs)
        except (Retry, exceptions.Ignore, exceptions.Reject, *_CONTROLS):
            raise
        except Exception as error:
            if isinstance(error, task.dont_autoretry_for) or not isinstance(error, task.autoretry_for):
                raise
            again = dict(task.retry_kwargs)
            if task.retry_backoff:
                again["countdown"] = _backoff(task, self._request.retries)
            raise task.retry(exc=error, **again) from error

    def _failed(self, error: BaseException, einfo: ErrorInfo) -> None:
        task, request = self._task, self._request
        expected = isinstance(error, task.throws)
        _logger.log(
            logging.INFO if expected else logging.ERROR,
            "Task %s[%s] raised %s: %r",
            task.name,
            request.id,
            "expected" if expected else "unexpected",
            error,
            exc_info=None if expected else error,
        )
        task.on_failure(error, request.id or "", request.args, request.kwargs, einfo)
        signals.task_failure.send(
            task,
            task_id=request.id,
            exception=error,
            args=request.args,
            kwargs=request.kwargs,
            traceback=error.__traceback__,
            einfo=einfo,
        )


def run_intent(task: Task, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a task for the current intent: returns the result as JSON data, or raises an error of Duetime."""
    context = current()
    told: dict[str, Any] = kwargs.pop(TOLD, None) or {}
    if context.delivery == 1 and told.get("delay"):
        raise Snooze(told["delay"])  # the delay counts from the end of the task before, which is now
    losses = _losses(task.app, context) if context.attempt > 1 else 0
    if losses > CELERY_LOSSES_MAX:
        raise Reject(stored_error(exceptions.WorkerLostError(f"{losses} workers died while they ran it.")))
    args, kwargs = tuple(unpack(list(args))), unpack(kwargs)
    if "take" in told:
        args = (taken(told["take"], _results(context)), *args)
    elif "errback" in told:
        failed = _failed_before(task, context)
        if failed is None:
            return None
        args = (*failed, *args)
    request = Request(task.name, args, kwargs, context, retries=context.attempt - 1 - losses)
    try:
        outcome = Execution(task, request).run()
    except exceptions.Reject as rejected:
        raise (Snooze(0) if rejected.requeue else Reject(stored_error(rejected))) from None
    value = outcome.value
    if outcome.state == states.RETRY:
        raise RetryAfter(_delay(task, value), stored_error(value.exc if value.exc is not None else value))
    if outcome.state != states.SUCCESS:
        raise Reject(stored_error(value))
    if task.app.ignores_result(task) and not told.get("keep"):
        return None
    try:
        return pack(value)
    except TypeError as error:
        raise Reject(stored_error(error)) from error


def stored_error(error: BaseException) -> str:
    """An error as text with its import path, so that `result.get()` can raise it again."""
    kind = type(error)
    path = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{path}: {error}"


def _losses(app: Celery, context: Context) -> int:
    """How many workers died while they ran this intent."""
    history = app.handle(context.intent_id).history().wait()
    return sum(entry.note.startswith("lost") for entry in history)


def _results(context: Context) -> list[Any]:
    parents = context.parents().wait()
    gone = [parent.intent_id for parent in parents if parent.status is None]
    if gone:
        raise Reject(f"The result of {gone[0]} is no longer available.")
    return [unpack(parent.result) for parent in parents]


def _failed_before(task: Task, context: Context) -> tuple[Any, ...] | None:
    """The first arguments of an error callback: the id of the failed task; or its request, error and
    traceback, if the callback takes them. None if a task before it failed: that one has its own callbacks."""
    (parent,) = context.parents().wait()
    if parent.status is not Status.DEAD_LETTERED:
        return None
    failed = AsyncResult(parent.intent_id, app=task.app)
    view = task.app.handle(parent.intent_id).view().wait()
    if not failed_itself(task.app, view):
        return None
    function = task._call if task._call is not None else task.run
    names = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if len(names) - task._takes_self > 1:
        name = "" if view.task is None else view.task.name
        request = Request(name, tuple(failed.args or ()), failed.kwargs, id=parent.intent_id)
        return request, error_of(task.app, view), failed.traceback
    return (parent.intent_id,)


def _delay(task: Task, retry: Retry) -> float:
    if isinstance(retry.when, datetime):
        now_ms = task.app.backend.now_ms()
        return max(0.0, task.app.aware(retry.when).timestamp() - now_ms / 1000)
    return float(max(0, retry.when or 0))


def _backoff(task: Task, retries: int) -> int:
    """Seconds: doubled with each retry, with full jitter as in Celery."""
    factor = 1 if task.retry_backoff is True else int(max(1.0, task.retry_backoff))
    seconds = int(min(task.retry_backoff_max, factor * 2**retries))
    return secrets.randbelow(seconds + 1) if task.retry_jitter else seconds


def _by_name(name: str) -> Task:
    return current_app().tasks[name]


def make(function: Callable[..., Any], name: str, app: Celery | None, options: Mapping[str, Any]) -> Task:
    """A task from a function and the options of its decorator."""
    for option in options:
        if option in _REFUSED and options[option] is not None:
            raise refuse(f"@task({option}=)", _REFUSED[option])
    if inspect.iscoroutinefunction(function):
        raise refuse("A coroutine function as a Celery task", "Register it with @duetime_app.task.")
    if options.get("serializer") not in (None, "json"):
        raise refuse(f"@task(serializer={options['serializer']!r})", "Arguments and results are JSON.")
    base = options.get("base") or (app.task_class if app is not None else Task)
    made: Task = type(
        function.__name__, (base,), {"__doc__": function.__doc__, "__module__": function.__module__}
    )()
    made.name, made._app, made._call = name, app, function
    made._takes_self = bool(options.get("bind"))
    for option, value in options.items():
        if (option not in ("name", "bind", "base") and value is not None) or option == "max_retries":
            setattr(made, option, value)
    made.__wrapped__ = function  # type: ignore[attr-defined]
    made.__name__ = function.__name__  # type: ignore[attr-defined]
    made.__qualname__ = function.__qualname__  # type: ignore[attr-defined]
    return made
