"""Celery's exceptions, as far as Duetime raises or understands them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from duetime.client.app.control import SoftTimeout
from duetime.errors import Unavailable


class CeleryError(Exception):
    """The base class of these exceptions."""


class NotSupported(CeleryError, NotImplementedError):
    """A part of Celery that this layer does not have. The text says what to use instead."""


class ImproperlyConfigured(CeleryError):
    """A setting that cannot be used."""


class TaskPredicate(CeleryError):
    """The base class of exceptions with which a task controls its outcome."""


class Retry(TaskPredicate):
    """The task is retried later. `self.retry(...)` raises it."""

    def __init__(
        self, message: str | None = None, exc: BaseException | None = None, when: Any = None, **_: object
    ) -> None:
        self.message = message
        self.exc = exc
        self.when = when
        super().__init__(message, exc, when)

    def __str__(self) -> str:
        if self.message:
            return self.message
        when = self.when if isinstance(self.when, datetime) else f"in {self.when}s"
        return f"Retry {when}{f': {self.exc!r}' if self.exc is not None else ''}"


class Ignore(TaskPredicate):
    """The task ends without a result."""


class Reject(TaskPredicate):
    """The message is rejected: dead-lettered, or delivered again with `requeue=True`."""

    def __init__(self, reason: object = None, requeue: bool = False) -> None:
        self.reason = reason
        self.requeue = requeue
        super().__init__(reason, requeue)

    def __repr__(self) -> str:
        return f"reject requeue={self.requeue}: {self.reason}"


class TaskError(CeleryError):
    """The base class of errors of tasks."""


class NotRegistered(KeyError, TaskError):
    """There is no task of this name."""

    def __repr__(self) -> str:
        return f"{self!s} is not a task of the app. Import the module of the task."


class TimeoutError(TaskError):
    """The result was not there in time."""


class MaxRetriesExceededError(TaskError):
    """The task has no retries left."""

    def __init__(self, *args: object, **kwargs: Any) -> None:
        self.task_args = kwargs.pop("task_args", [])
        self.task_kwargs = kwargs.pop("task_kwargs", {})
        super().__init__(*args)


class TaskRevokedError(CeleryError):
    """The task was revoked, or has expired."""


class ChordError(CeleryError):
    """A member of a chord failed, so that its callback does not run."""


class WorkerLostError(Exception):
    """The worker died while it ran the task, too often."""


class TimeLimitExceeded(Exception):
    """The task ran longer than its time limit."""


class EncodeError(TypeError):
    """A value cannot be written as JSON."""


# The task has run longer than its soft time limit. Raised inside the task.
SoftTimeLimitExceeded = SoftTimeout

# The server cannot be reached.
OperationalError = Unavailable


def refuse(what: str, hint: str) -> NotSupported:
    """The error for a part of Celery that is missing here."""
    return NotSupported(f"{what} is not supported by duetime.contrib.celery. {hint}")
