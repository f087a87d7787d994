"""`app.control`: what of Celery's remote control Duetime has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contrib.celery.exceptions import refuse
from duetime.errors import NoSuchIntent, Refused
from duetime.wire.intent import Status

if TYPE_CHECKING:
    from duetime.contrib.celery.app import Celery

_LINES = {
    "inspect": "Use `duetime top`, `duetime list` and `duetime health`.",
    "ping": "Use `duetime health`.",
    "purge": "Use `duetime cancel`.",
    "discard_all": "Use `duetime cancel`.",
    "rate_limit": "Use app.ask(SetLane(...)) or limits= of a Duetime task.",
    "time_limit": "Use time_limit= of the task.",
    "broadcast": "There is no broadcast.",
    "shutdown": "Stop the workers with SIGTERM.",
    "pool_grow": "Use `duetime worker --concurrency`.",
    "pool_shrink": "Use `duetime worker --concurrency`.",
    "pool_restart": "Restart the workers.",
    "autoscale": "Use `duetime worker --concurrency`.",
    "add_consumer": "Use `duetime worker --queues`.",
    "cancel_consumer": "Use `duetime worker --queues`.",
    "enable_events": "Events are always on.",
    "disable_events": "Events are always on.",
    "terminate": "Use revoke(id, terminate=True).",
}


class Control:
    """Revokes tasks."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def revoke(self, task_id: Any, terminate: bool = False, signal: object = None, **kwargs: Any) -> None:
        """Cancel tasks that have not started; with `terminate`, also those that run."""
        if kwargs.pop("destination", None) or kwargs:
            raise refuse("revoke(destination=, ...)", "A task is revoked on the server, for all workers.")
        app = self._app
        app.connect()
        for id in task_id if isinstance(task_id, list | tuple | set) else [task_id]:
            handle = app.handle(str(id))
            try:
                if terminate or handle.status().wait() is not Status.DISPATCHING:
                    handle.cancel().wait()
            except (NoSuchIntent, Refused):
                continue  # as in Celery: it does not exist, or has ended

    def __getattr__(self, name: str) -> Any:
        if name in _LINES:
            raise refuse(f"app.control.{name}", _LINES[name])
        raise AttributeError(name)
