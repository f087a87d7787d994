"""Calls that users of other libraries write out of habit, with what to write instead.

A name in these tables does not exist here. Asking for it raises an `AttributeError` that shows the Duetime
way, and `hasattr` stays false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from duetime.client.app.times import delay_ms
from duetime.errors import InvalidField

P = ParamSpec("P")
R = TypeVar("R")

_CONTRIB = "A Celery project can keep its calls: import from duetime.contrib.celery."
_CALL = "write task.schedule(...); await it, or call .wait() in plain code"
_LATER = 'write task.delay("30s").schedule(...) or task.at(moment).schedule(...)'
_BIND = "write task.bind(...), for app.chain and app.group"
_RESULT = 'write `await handle.result("30s")`, or handle.result("30s").wait() in plain code'
_STATUS = "write `await handle.status()`, or handle.status().wait() in plain code"

TASKS: Mapping[str, str] = {
    "apply_async": f"{_CALL}. With a time, {_LATER}",
    "apply": "call it as a function to run it here: task(...)",
    "s": _BIND,
    "si": _BIND,
    "signature": _BIND,
    "subtask": _BIND,
    "retry": "raise RetryAfter(delay) in the function, or give the task a retry=Retry(...)",
    "request": "use duetime.current() in the function",
    "update_state": "use duetime.progress(done, total, note) in the function",
    "send": _CALL,
    "send_with_options": f"{_CALL}. With a time, {_LATER}",
    "enqueue": _CALL,
}
HANDLES: Mapping[str, str] = {
    "get": _RESULT,
    "wait": _RESULT,
    "get_result": _RESULT,
    "state": _STATUS,
    "ready": "compare the status: `(await handle.status()).final`",
    "successful": "compare the status: `await handle.status() is Status.ACKED`",
    "failed": "compare the status: `await handle.status() is Status.DEAD_LETTERED`",
    "revoke": "write handle.cancel()",
    "info": "write handle.view(); its progress has what the function reported",
    "traceback": "write handle.logs(), or read last_error of handle.view()",
}
APPS: Mapping[str, str] = {
    "send_task": f"{_CALL}. Without the function, use Client(url).create(task=...)",
    "conf": "pass options to @app.task(...) and settings to App(config=...)",
    "config_from_object": "pass options to @app.task(...) and settings to App(config=...)",
    "autodiscover_tasks": "import the modules of the tasks where the app is created",
    "AsyncResult": "write app.handle(id)",
    "control": "write app.handle(id).cancel(), app.ask(Pause(...)), or use the command line",
    "signature": _BIND,
    "worker_main": "run `duetime worker module:app`",
    "actor": "write @app.task",
    "add_job": "write @app.cron(...) or @app.every(...), or task.at(moment).schedule(...)",
    "scheduled_job": "write @app.cron(...) or @app.every(...)",
    "enqueue": _CALL,
    "enqueue_job": _CALL,
}


def missing(kind: str, instead: Mapping[str, str]) -> Callable[[object, str], Any]:
    """A `__getattr__` for a class: the error for a name that the class does not have."""

    def get(self: object, name: str) -> Any:
        hint = instead.get(name)
        if hint is None:
            raise AttributeError(f"{kind} has no {name!r}.", name=name, obj=self)
        said = f"{hint[0].upper()}{hint[1:]}."
        raise AttributeError(f"{kind} has no {name!r}. {said} {_CONTRIB}", name=name, obj=self)

    return get


def takes_a_delay(method: Callable[P, R]) -> Callable[P, R]:
    """`task.delay` takes a duration. Celery's takes the arguments of the function, and schedules the call."""

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = (*args[1:], *kwargs.values())
        if len(given) != 1 or kwargs.keys() - {"delay"}:
            raise _no_delay("delay() takes one duration", *args, **kwargs)
        if isinstance(given[0], str):
            try:
                delay_ms(given[0])
            except InvalidField as error:
                raise _no_delay(error.message.removesuffix("."), *args, **kwargs) from None
        return method(*args, **kwargs)

    return checked


def _no_delay(problem: str, task: Any, *args: object, **kwargs: object) -> InvalidField:
    call = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
    name = task.name.rpartition(".")[2]
    return InvalidField(
        f"{name}.delay({call}) schedules nothing: {problem}.",
        hint=f'Write {name}.schedule({call}) to run it now, or {name}.delay("30s").schedule({call}) '
        f"to run it later. {_CONTRIB}",
    )
