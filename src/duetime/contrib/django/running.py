"""Runs Django's tasks as functions of Duetime: finds them by import path and sends Django's signals."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async

from duetime.client.app.app import App
from duetime.client.app.control import Reject, RetryAfter, Snooze, current
from duetime.client.app.options import OptionFields
from duetime.client.app.payload import Signature, decode, encode
from duetime.client.app.plan import Options
from duetime.client.app.task import Planned
from duetime.client.execution.functions import Functions
from duetime.client.execution.handlers import FunctionHandler
from duetime.client.execution.run_policy import RunPolicy
from duetime.clock import SystemClock
from duetime.contrib.django.compat import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_finished,
    task_started,
)
from duetime.contrib.django.connections import DjangoConnections
from duetime.contrib.django.registry import Registry, exception_path
from duetime.contrib.outbox import rows
from duetime.errors import DuetimeError
from duetime.protocol.bounds import ERROR_CHARS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.terms import Task as TaskTarget
from duetime.timefmt import moment_of

# Django's priorities go from -100 to 100; Duetime's are seconds of head start, and HIGH is 300.
PRIORITY_S = 3
DEFAULT_QUEUE = "default"


def anything(*args: Any, **kwargs: Any) -> Any:
    """Accepts any arguments: Django has already checked them."""


class DjangoFunctions(Functions):
    """The project's tasks. Each is looked up at its first use."""

    def __init__(self, sender: type, registry: Registry) -> None:
        super().__init__()
        self._sender = sender
        self._registry = registry
        self._found: dict[str, FunctionHandler] = {}

    def find(self, delivery: Deliver) -> FunctionHandler | None:
        found = super().find(delivery)
        target = delivery.terms.target
        if found is not None or not isinstance(target, TaskTarget):
            return found
        if target.name not in self._found:
            task = self._registry.find(target.name)
            if task is None:
                return None
            run = TaskRun(task, self._sender)
            function: Callable[..., Any] = run.on_loop if inspect.iscoroutinefunction(task.func) else run.here
            signature = Signature(anything, target.name)
            self._found[target.name] = self._handler(function, signature, RunPolicy(), False)
        return self._found[target.name]


class DjangoApp(App):
    """An App with the project's tasks as its functions."""

    def __init__(
        self, where: str, queues: Iterable[str], sender: type, registry: Registry, token: str | None = None
    ) -> None:
        super().__init__(where, token=token)
        self._task_queues = set(queues)
        self.any_queue = not self._task_queues
        self._registry = registry
        self.functions = DjangoFunctions(sender, registry)
        self.add_middleware(DjangoConnections())
        self.rewire(where, token=token)

    def queues(self) -> list[str]:
        """The queues in the settings. An empty list allows any queue: then the queues of all tasks."""
        self._registry.load()  # called when a worker starts, so that import errors are reported early
        named = self._task_queues or {DEFAULT_QUEUE, *self._registry.queues()}
        return sorted({*super().queues(), *named})

    def planned(self, task: Task, defaults: Options) -> Planned[Any, Any]:
        """A task of the project, as a task of Duetime."""
        options: OptionFields = {}
        if task.priority:
            options["priority"] = PRIORITY_S * task.priority
        if task.run_after is not None:
            options["at"] = task.run_after
        target = TaskTarget(task.module_path, task.queue_name)
        signature = Signature(anything, task.module_path)
        return Planned(self, target, signature, defaults.merged(**options), task.module_path)


def enqueued_at(id: str, otherwise: datetime | None = None) -> datetime | None:
    """The time of `enqueue`, read from the id. The intent itself is created when its row is relayed."""
    made_ms = rows.made_ms(id)
    return moment_of(made_ms) if made_ms else otherwise


class TaskRun:
    """Calls one task and sends its signals."""

    def __init__(self, task: Task, sender: type) -> None:
        self._task = task
        self._sender = sender

    def here(self, *args: object, **kwargs: object) -> object:
        """Call it in a thread."""
        result = self._started(args, kwargs)
        try:
            value = self._task.call(*self._args(result), **kwargs)
        except (Exception, SystemExit) as error:
            raise self._failed(result, error) from error
        return self._done(result, value)

    async def on_loop(self, *args: object, **kwargs: object) -> object:
        # Receivers may use the database, and Django's connections must not be used in the event loop's
        # thread.
        result = await sync_to_async(self._started)(args, kwargs)
        try:
            value = await self._task.acall(*self._args(result), **kwargs)
        except (Exception, SystemExit) as error:
            raise await sync_to_async(self._failed)(result, error) from error
        return await sync_to_async(self._done)(result, value)

    def _started(self, args: Sequence[object], kwargs: Mapping[str, object]) -> TaskResult:
        me, now = current(), moment_of(SystemClock().now_ms())
        result = TaskResult(
            task=self._task,
            id=me.intent_id,
            status=TaskResultStatus.RUNNING,
            enqueued_at=enqueued_at(me.intent_id),
            started_at=now,
            finished_at=None,
            last_attempted_at=now,
            args=list(args),
            kwargs=kwargs,
            backend=self._task.backend,
            errors=[],
            worker_ids=["duetime"] * me.attempt,
        )
        task_started.send(sender=self._sender, task_result=result)
        return result

    def _args(self, result: TaskResult) -> list[object]:
        context = [TaskContext(task_result=result)] if self._task.takes_context else []
        return [*context, *result.args]

    def _failed(self, result: TaskResult, error: BaseException) -> BaseException:
        """The error as Duetime stores it: its import path, and the end of the traceback."""
        if isinstance(error, Snooze):
            return error
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        text = f"{error}\n\n{''.join(traceback.format_exception(error))}"
        if len(text) > ERROR_CHARS_MAX:
            text = f"{text[:500]}\n...\n{text[-(ERROR_CHARS_MAX - 510) :]}"
        result.errors.append(TaskError(exception_class_path=path, traceback=text))
        self._end(result, TaskResultStatus.FAILED)
        if isinstance(error, Reject | RetryAfter):
            return error
        named: type[Exception] = type(path, (Exception,), {})
        return named(text)

    def _done(self, result: TaskResult, value: object) -> object:
        try:
            kept = None if value is None else decode(encode(value, "The return value"))
        except DuetimeError as error:  # the handler finds this error too and dead-letters the intent
            said = f"Unsupported type: {error.message}"
            result.errors.append(TaskError(exception_class_path=exception_path("result"), traceback=said))
            self._end(result, TaskResultStatus.FAILED)
            return value
        object.__setattr__(result, "_return_value", kept)
        self._end(result, TaskResultStatus.SUCCESSFUL)
        return kept

    def _end(self, result: TaskResult, status: TaskResultStatus) -> None:
        object.__setattr__(result, "finished_at", moment_of(SystemClock().now_ms()))
        object.__setattr__(result, "status", status)
        task_finished.send(sender=self._sender, task_result=result)
