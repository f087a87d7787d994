"""The current app and the running task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from duetime.contrib.celery.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from duetime.contrib.celery.app import Celery
    from duetime.contrib.celery.request import Request
    from duetime.contrib.celery.task import Task

apps: list[Celery] = []
"""All apps; the last one is the current app."""
running: ContextVar[tuple[Task, Request] | None] = ContextVar("duetime_celery_running", default=None)
_may_join: ContextVar[bool] = ContextVar("duetime_celery_may_join", default=False)


def current_app() -> Celery:
    """The app that was created last."""
    if not apps:
        raise ImproperlyConfigured("There is no app. Import the module that creates Celery(...) first.")
    return apps[-1]


def set_current_app(app: Celery) -> None:
    if app in apps:
        apps.remove(app)
    apps.append(app)


def current_task() -> Task | None:
    """The task that runs here, or None."""
    found = running.get()
    return None if found is None else found[0]


class Proxy:
    """`current_app` and `current_task` as objects, as Celery has them."""

    def __init__(self, get: Any) -> None:
        object.__setattr__(self, "_get", get)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_get")(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_get")(), name, value)

    def __bool__(self) -> bool:
        return object.__getattribute__(self, "_get")() is not None

    def __repr__(self) -> str:
        return repr(object.__getattribute__(self, "_get")())


@contextmanager
def allow_join_result() -> Iterator[None]:
    """Allow `result.get()` inside a task. It blocks a thread of the worker."""
    token = _may_join.set(True)
    try:
        yield
    finally:
        _may_join.reset(token)


def check_join() -> None:
    """Refuse to wait for a result inside a task, as Celery does."""
    if running.get() is not None and not _may_join.get():
        raise RuntimeError(
            "Never call result.get() within a task: it blocks a thread of the worker. "
            "Use a chain or a chord, or `with allow_join_result():`."
        )
