"""A backend for Django's tasks: `enqueue` writes an intent in the open transaction, and workers run it.

TASKS = {
    "default": {
        "BACKEND": "duetime.contrib.django.backend.DuetimeBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"url": "http://localhost:7928", "intent": {"timeout": "5m"}},
    }
}
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from duetime.client.app.payload import decode
from duetime.client.app.plan import Options
from duetime.clock import SystemClock
from duetime.contrib.django.compat import (
    Backend,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from duetime.contrib.django.registry import Registry, exception_path
from duetime.contrib.django.running import DEFAULT_QUEUE, PRIORITY_S, DjangoApp, enqueued_at
from duetime.contrib.outbox import rows
from duetime.errors import NoSuchIntent
from duetime.timefmt import moment_of
from duetime.wire.intent import Intent, Status

OPTIONS: Final = {"url", "token", "outbox", "database", "intent", "modules"}
_TRACEBACK: Final = "Traceback (most recent call last):"
_WAITING: Final = (Status.SCHEDULED, Status.DUE, Status.BLOCKED)


class DuetimeBackend(Backend):
    """Options: `url` (of a server; or a folder, which only the process with the relay can use), `token`,
    `outbox` (True: write to the outbox first), `database` (that contains the outbox), `intent` (options of
    every intent), `modules` (modules with tasks, in addition to `tasks` of each installed app)."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, object]) -> None:
        super().__init__(alias, params)
        if unknown := set(self.options) - OPTIONS:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: there is no option {sorted(unknown)[0]!r}; there are {sorted(OPTIONS)}."
            )
        self.database: str | None = self.options.get("database")
        self._outbox: bool = self.options.get("outbox", True)
        self.registry = Registry(self.options.get("modules", ()))
        self._defaults = Options().merged(**self.options.get("intent", {}))
        self._started: tuple[int, DjangoApp] | None = None
        self._starting = threading.Lock()
        self.app = self.make_app()

    def make_app(self) -> DjangoApp:
        """An App with the project's tasks, not started."""
        where = self.options.get("url", "http://localhost:7928")
        return DjangoApp(
            where, sorted(self.queues), type(self), self.registry, token=self.options.get("token")
        )

    def enqueue(self, task: Task, args: Sequence[object], kwargs: Mapping[str, object]) -> TaskResult:
        """Write the intent in the open transaction. Without the outbox, send it immediately."""
        self.validate_task(task)
        now_ms = SystemClock().now_ms()
        now = moment_of(now_ms)
        result = self._result(task, "", args, kwargs, enqueued_at=now)
        if self._outbox:
            from duetime.contrib.django import outbox  # models can be imported only after django.setup()

            planned = self.app.planned(self._timed(task, now), self._defaults)
            row = rows.of_task(planned, result.args, result.kwargs, now_ms)
            id = outbox.keep(row, self.database)
        else:
            started = self._running()
            planned = started.planned(self._timed(task, now), self._defaults)
            if self._defaults.id is None:
                planned = planned.options(id=rows.new_id(now_ms))
            id = planned.schedule(*result.args, **result.kwargs).wait().id
        object.__setattr__(result, "id", id)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """The current state, from Duetime, or from the outbox while the row waits there."""
        app = self._running()
        try:
            return self._shown(app.handle(result_id).view().wait())
        except NoSuchIntent:
            found = self._waiting(result_id) if self._outbox else None
            if found is None:
                raise TaskResultDoesNotExist(result_id) from None
            return found

    def _timed(self, task: Task, now: datetime) -> Task:
        """The task with `run_after` as a datetime in the future, or None."""
        after = task.run_after
        if after is None:
            return task
        if timezone.is_naive(after):
            after = timezone.make_aware(after)
        changed = task.using(run_after=after)
        if after <= now:
            object.__setattr__(changed, "run_after", None)
        return changed

    def _running(self) -> DjangoApp:
        """The App that queries the server: one per process, started with its first use."""
        with self._starting:
            if self._started is None or self._started[0] != os.getpid():
                app = self.make_app()
                if "://" not in app.where:
                    raise ImproperlyConfigured(
                        f"TASKS[{self.alias!r}]: {app.where!r} is a folder, which only the relay may open. "
                        "Results and tasks without the outbox need a server's url."
                    )
                app.__enter__()
                self._started = (os.getpid(), app)
            return self._started[1]

    def _shown(self, intent: Intent) -> TaskResult:
        target = intent.task
        task = None if target is None else self.registry.find(target.name)
        if task is None or target is None:
            raise TaskResultDoesNotExist(intent.intent_id)
        parts = intent.payload or [[]]
        result = self._result(
            task.using(queue_name=target.queue, priority=intent.priority // PRIORITY_S, backend=self.alias),
            intent.intent_id,
            parts[0],
            parts[1] if len(parts) > 1 else {},
            status=_status(intent.status),
            enqueued_at=enqueued_at(intent.intent_id, intent.created_at),
            started_at=intent.first_dispatch_at,
            last_attempted_at=intent.first_dispatch_at,
            finished_at=intent.finished_at,
            worker_ids=["duetime"] * intent.attempts,
        )
        if intent.last_error is not None and intent.status is not Status.ACKED:
            error = intent.last_error
            result.errors.append(
                TaskError(
                    exception_class_path=exception_path(error.kind), traceback=_traceback(error.message)
                )
            )
        if intent.result is not None:
            object.__setattr__(result, "_return_value", intent.result)
        return result

    def _waiting(self, id: str) -> TaskResult | None:
        from duetime.contrib.django.models import OutboxRow

        found = OutboxRow.objects.using(self.database or "default").filter(key=id).first()
        if found is None:
            return None
        fields = decode(found.body.encode())
        task = self.registry.find(fields["task"]["name"]) if "task" in fields else None
        if task is None:
            return None
        task = task.using(
            queue_name=fields["task"].get("queue", DEFAULT_QUEUE),
            priority=fields.get("priority", 0) // PRIORITY_S,
            backend=self.alias,
        )
        parts = fields.get("payload") or [[]]
        status = TaskResultStatus.READY if found.error is None else TaskResultStatus.FAILED
        at = enqueued_at(id, found.created_ms)
        kwargs = parts[1] if len(parts) > 1 else {}
        result = self._result(task, id, parts[0], kwargs, status=status, enqueued_at=at)
        if found.error is not None:
            result.errors.append(
                TaskError(exception_class_path="duetime.errors.Refused", traceback=found.error)
            )
        return result

    def _result(
        self, task: Task, id: str, args: Sequence[object], kwargs: Mapping[str, object], **said: object
    ) -> TaskResult:
        fields: dict[str, object] = {
            "status": TaskResultStatus.READY,
            "enqueued_at": None,
            "started_at": None,
            "finished_at": None,
            "last_attempted_at": None,
            "errors": [],
            "worker_ids": [],
        }
        fields |= said
        return TaskResult(
            task=task, id=id, args=list(args), kwargs=dict(kwargs), backend=self.alias, **fields
        )


def _status(status: Status) -> TaskResultStatus:
    if status in _WAITING:
        return TaskResultStatus.READY
    if status is Status.DISPATCHING:
        return TaskResultStatus.RUNNING
    return TaskResultStatus.SUCCESSFUL if status is Status.ACKED else TaskResultStatus.FAILED


def _traceback(message: str) -> str:
    """The traceback in the text of an error, as other Django backends return it."""
    begin = message.find(_TRACEBACK)
    return message if begin < 0 else f"{message[begin:].strip()}\n"
