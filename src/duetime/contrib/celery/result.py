"""Celery's results, read from the intents of the tasks."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from duetime.contrib.celery import states
from duetime.contrib.celery.exceptions import (
    ChordError,
    TaskRevokedError,
    TimeLimitExceeded,
    TimeoutError,
    WorkerLostError,
    refuse,
)
from duetime.contrib.celery.graph import TOLD
from duetime.contrib.celery.state import allow_join_result, check_join, current_app
from duetime.contrib.celery.utils import uuid
from duetime.contrib.celery.values import unpack
from duetime.errors import NoSuchIntent, NotAcked, ResultGone, Unavailable, WaitTimedOut
from duetime.wire.intent import Intent, Status

if TYPE_CHECKING:
    from datetime import datetime

    from duetime.contrib.celery.app import Celery

__all__ = ["AsyncResult", "EagerResult", "GroupResult", "Result", "ResultSet", "allow_join_result"]

# A failed task is stored as "module.Class: text".
_STORED_ERROR = re.compile(r"([\w.]+): ?(.*)", re.DOTALL)
_KINDS: dict[str, type[Exception]] = {"timeout": TimeLimitExceeded, "lost": WorkerLostError}
_TRACEBACK = "Traceback (most recent call last):"


class AsyncResult:
    """The result of one task, by its id."""

    TimeoutError = TimeoutError

    def __init__(
        self,
        id: str,
        backend: object = None,
        task_name: str | None = None,
        app: Celery | None = None,
        parent: Any = None,
    ) -> None:
        self.id = id
        self._app = app
        self.parent = parent

    @property
    def app(self) -> Celery:
        return self._app if self._app is not None else current_app()

    @property
    def task_id(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<AsyncResult: {self.id}>"

    def __str__(self) -> str:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncResult) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def get(
        self,
        timeout: float | None = None,
        propagate: bool = True,
        interval: float = 0.5,
        no_ack: bool = True,
        follow_parents: bool = True,
        callback: Callable[[str, Any], Any] | None = None,
        on_message: object = None,
        on_interval: object = None,
        disable_sync_subtasks: bool = True,
    ) -> Any:
        """Wait for the result. Raises the error of the task."""
        if on_message is not None or on_interval is not None:
            raise refuse("get(on_message=, on_interval=)", "Read the state instead.")
        if disable_sync_subtasks:
            check_join()
        app = self.app
        app.connect()
        try:
            value = unpack(app.handle(self.id).result(timeout).wait())
        except WaitTimedOut:
            raise TimeoutError("The operation timed out.") from None
        except ResultGone:
            value = None
        except NotAcked as failed:
            ended: Any = failed.details["view"]
            error = error_of(app, ended)
            if propagate:
                raise error from None
            value = error
        if callback is not None:
            callback(self.id, value)
        return value

    wait = get

    # The state.

    def _view(self) -> Intent | None:
        app = self.app
        app.connect()
        try:
            return app.handle(self.id).view().wait()
        except NoSuchIntent:
            return None

    @property
    def state(self) -> str:
        view = self._view()
        custom = _custom(view)
        return states.state_of(view) if custom is None else str(custom["state"])

    status = state

    @property
    def result(self) -> Any:
        """The result, the error, or what `update_state` reported. None while there is none."""
        view = self._view()
        if view is None:
            return None
        if view.status is Status.ACKED:
            return unpack(view.result)
        if view.status.final:
            return error_of(self.app, view)
        custom = _custom(view)
        return None if custom is None else custom["meta"]

    info = result

    def ready(self) -> bool:
        return self.state in states.READY_STATES

    def successful(self) -> bool:
        return self.state == states.SUCCESS

    def failed(self) -> bool:
        return self.state == states.FAILURE

    @property
    def traceback(self) -> str | None:
        """The traceback, from the log lines of the last attempt. A worker stores them by default."""
        if self._view() is None:
            return None
        text = "\n".join(self.app.handle(self.id).logs().wait())
        begin = text.find(_TRACEBACK)
        return text[begin:] if begin >= 0 else None

    @property
    def name(self) -> str | None:
        view = self._view()
        return None if view is None or view.task is None else view.task.name

    @property
    def queue(self) -> str | None:
        view = self._view()
        return None if view is None or view.task is None else view.task.queue

    @property
    def args(self) -> list[Any] | None:
        view = self._view()
        return None if view is None else _arguments(view)[0]

    @property
    def kwargs(self) -> dict[str, Any] | None:
        view = self._view()
        return None if view is None else _arguments(view)[1]

    @property
    def retries(self) -> int | None:
        view = self._view()
        return None if view is None else max(0, view.attempts - 1)

    @property
    def date_done(self) -> datetime | None:
        view = self._view()
        return None if view is None else view.finished_at

    # Changes.

    def revoke(
        self,
        connection: None = None,
        terminate: bool = False,
        signal: object = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Cancel it. A running task is only cancelled with `terminate`."""
        self.app.control.revoke(self.id, terminate=terminate, signal=signal)

    def forget(self) -> None:
        """Refused: a result is deleted when its time is over."""
        raise refuse("forget()", "Set `result_expires`: results are deleted after that time.")

    # Structure.

    @property
    def children(self) -> None:
        """Not recorded."""
        return None

    def as_tuple(self) -> tuple[Any, Any]:
        parent = None if self.parent is None else self.parent.as_tuple()
        return (self.id, parent), None

    def as_list(self) -> list[str]:
        return [self.id, *([] if self.parent is None else self.parent.as_list())]

    def maybe_throw(self, propagate: bool = True, callback: object = None) -> Any:
        """Raise the error, if there is one already."""
        value, state = self.result, self.state
        if propagate and state in states.PROPAGATE_STATES:
            raise value
        return value

    maybe_reraise = maybe_throw

    def __getattr__(self, name: str) -> Any:
        if name in ("collect", "iterdeps", "build_graph", "graph", "then", "get_leaf"):
            raise refuse(f"AsyncResult.{name}", "Keep the results of the tasks that you send.")
        raise AttributeError(name)


class EagerResult(AsyncResult):
    """The result of a task that ran in this thread."""

    def __init__(self, id: str, value: Any, state: str, traceback: str | None = None) -> None:
        super().__init__(id)
        self._value = value
        self._state = state
        self._traceback = traceback

    def __repr__(self) -> str:
        return f"<EagerResult: {self.id}>"

    def get(self, timeout: float | None = None, propagate: bool = True, *_: Any, **__: Any) -> Any:
        if self._state in states.PROPAGATE_STATES and propagate:
            raise self._value
        return self._value

    wait = get

    @property
    def state(self) -> str:
        return self._state

    status = state

    @property
    def result(self) -> Any:
        return self._value

    info = result

    @property
    def traceback(self) -> str | None:
        return self._traceback

    def revoke(self, *args: object, **kwargs: object) -> None:
        self._state = states.REVOKED

    def forget(self) -> None:
        """Nothing is stored."""


class GroupResult:
    """The results of a group, in order."""

    def __init__(
        self, id: str | None = None, results: list[Any] | None = None, parent: Any = None, app: Any = None
    ) -> None:
        self.id = id if id is not None else uuid()
        self.results: list[Any] = list(results or [])
        self.parent = parent
        self.app = app

    def __repr__(self) -> str:
        return f"<GroupResult: {self.id} [{', '.join(map(str, self.results))}]>"

    def __len__(self) -> int:
        return len(self.results)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __getitem__(self, number: int) -> Any:
        return self.results[number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupResult) and (other.id, other.results) == (self.id, self.results)

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def children(self) -> list[Any]:
        return self.results

    def get(
        self,
        timeout: float | None = None,
        propagate: bool = True,
        interval: float = 0.5,
        callback: Callable[[str, Any], Any] | None = None,
        no_ack: bool = True,
        on_message: None = None,
        disable_sync_subtasks: bool = True,
        on_interval: None = None,
    ) -> list[Any]:
        """The results in order. Raises the error of the first that failed."""
        if disable_sync_subtasks:
            check_join()
        with allow_join_result():
            return [
                each.get(timeout=timeout, propagate=propagate, callback=callback) for each in self.results
            ]

    join = join_native = get

    def add(self, result: Any) -> None:
        if result not in self.results:
            self.results.append(result)

    def ready(self) -> bool:
        return all(each.ready() for each in self.results)

    def successful(self) -> bool:
        return all(each.successful() for each in self.results)

    def failed(self) -> bool:
        return any(each.failed() for each in self.results)

    def waiting(self) -> bool:
        return any(not each.ready() for each in self.results)

    def completed_count(self) -> int:
        return sum(each.successful() for each in self.results)

    def revoke(self, *args: Any, **kwargs: Any) -> None:
        for each in self.results:
            each.revoke(*args, **kwargs)

    def as_tuple(self) -> Any:
        parent = None if self.parent is None else self.parent.as_tuple()
        return (self.id, parent), [each.as_tuple() for each in self.results]

    def as_list(self) -> list[str]:
        return [self.id, *([] if self.parent is None else self.parent.as_list())]

    def __getattr__(self, name: str) -> Any:
        if name in ("save", "delete", "restore", "then", "iter_native", "forget"):
            raise refuse(f"GroupResult.{name}", "Store the ids of its results.")
        raise AttributeError(name)


class ResultSet(GroupResult):
    """Results that belong together."""

    def __init__(self, results: list[Any], app: Any = None, **_: object) -> None:
        super().__init__(None, results, app=app)


Result = AsyncResult | GroupResult


def result_from_tuple(given: Any, app: Any = None) -> Any:
    """A result from `as_tuple()`."""
    if isinstance(given, AsyncResult | GroupResult):
        return given
    (id, parent), members = given
    before = None if parent is None else result_from_tuple(parent, app)
    if members is None:
        return AsyncResult(id, app=app, parent=before)
    return GroupResult(id, [result_from_tuple(each, app) for each in members], before, app)


def error_of(app: Celery, intent: Intent) -> BaseException:
    """The exception with which a task ended."""
    if intent.status is Status.CANCELED:
        return TaskRevokedError("revoked")
    if intent.status is Status.EXPIRED:
        return TaskRevokedError("expired")
    error = intent.last_error
    if error is None:
        return WorkerLostError("The task has no result.")
    if error.kind == "dependency":
        return _error_before(app, intent)
    if error.kind in _KINDS:
        return _KINDS[error.kind](error.message)
    stored = _STORED_ERROR.fullmatch(error.message) if error.kind == "rejected" else None
    if stored is not None:
        return _rebuilt(stored[1], stored[2])
    return _rebuilt(error.kind, error.message)


def failed_itself(app: Celery, intent: Intent) -> bool:
    """Whether a failed task is the reason, or the callback of a chord with a member that is the reason. False
    for the later steps of a chain, which never ran."""
    if intent.last_error is None or intent.last_error.kind != "dependency":
        return intent.last_error is not None
    if not _is_callback(intent):
        return False
    members = app.handle(intent.intent_id).parents().wait()
    failed = (
        app.handle(each.intent_id).view().wait() for each in members if each.status is Status.DEAD_LETTERED
    )
    return any(each.last_error is not None and each.last_error.kind != "dependency" for each in failed)


def _error_before(app: Celery, intent: Intent) -> BaseException:
    """The error of the task for which this one waited. A chord wraps it."""
    with suppress(NoSuchIntent, Unavailable):
        for parent in app.handle(intent.intent_id).parents().wait():
            if parent.status is None or parent.status is Status.ACKED or not parent.status.final:
                continue
            error = error_of(app, app.handle(parent.intent_id).view().wait())
            if _is_callback(intent):
                return ChordError(f"Dependency {parent.intent_id} raised {error!r}")
            return error
    return ChordError(intent.last_error.message if intent.last_error is not None else "")


def _rebuilt(path: str, text: str) -> BaseException:
    """An exception by its import path, if its module is loaded; otherwise a new class of that name."""
    module, _, name = path.rpartition(".")
    loaded = sys.modules.get(module or "builtins")
    found: Any = None if loaded is None else vars(loaded).get(name)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        found = type(name, (Exception,), {"__module__": module or __name__})
    error: BaseException
    try:
        error = found(text)
    except Exception:  # its constructor takes other arguments
        error = found.__new__(found)
        error.args = (text,)
    return error


def _arguments(view: Intent) -> tuple[list[Any], dict[str, Any]]:
    parts = view.payload or [[]]
    kwargs = dict(parts[1]) if len(parts) > 1 else {}
    kwargs.pop(TOLD, None)
    return unpack(parts[0]), unpack(kwargs)


def _is_callback(view: Intent) -> bool:
    """Whether it takes the list of the results of a group."""
    parts = view.payload
    told = parts[1].get(TOLD) if isinstance(parts, list) and len(parts) > 1 else None
    return told is not None and isinstance(told.get("take"), str | list)


def _custom(view: Intent | None) -> dict[str, Any] | None:
    """The state that `update_state` reported, while the task runs."""
    if view is None or view.status is not Status.DISPATCHING or view.progress is None:
        return None
    try:
        found = msgspec.json.decode(view.progress.note or "")
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) and {"state", "meta"} == found.keys() else None
