"""Celery's signals of tasks. The other signals are refused when a receiver is connected."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from duetime.contrib.celery.exceptions import refuse

F = TypeVar("F", bound=Callable[..., Any])

_logger = logging.getLogger("duetime.celery")


class Signal:
    """Calls its receivers. An error of a receiver is logged."""

    def __init__(self, name: str, missing: str | None = None) -> None:
        """`missing`: the signal is never sent; the text says what to use instead."""
        self.name = name
        self._missing = missing
        self._receivers: dict[object, tuple[Callable[..., Any], object]] = {}

    def __repr__(self) -> str:
        return f"<Signal: {self.name}>"

    @property
    def receivers(self) -> list[Callable[..., Any]]:
        return [receiver for receiver, _ in self._receivers.values()]

    def connect(
        self,
        receiver: Callable[..., Any] | None = None,
        sender: object = None,
        weak: bool = False,
        dispatch_uid: object = None,
        retry: bool = False,
    ) -> Any:
        """Add a receiver; also as a decorator, with or without arguments."""
        if self._missing is not None:
            raise refuse(f"The signal {self.name}", self._missing)

        def add(receiver: F) -> F:
            self._receivers[dispatch_uid or (id(receiver), id(sender))] = (receiver, sender)
            return receiver

        return add if receiver is None else add(receiver)

    def disconnect(
        self, receiver: Callable[..., Any] | None = None, sender: object = None, dispatch_uid: object = None
    ) -> bool:
        key = dispatch_uid or (id(receiver), id(sender))
        return self._receivers.pop(key, None) is not None

    def has_listeners(self, sender: object = None) -> bool:
        return bool(self._receivers)

    def send(self, sender: object, **named: object) -> list[tuple[Callable[..., Any], object]]:
        """Call the receivers of this sender, with the result or the error of each."""
        answers: list[tuple[Callable[..., Any], object]] = []
        for receiver, wanted in list(self._receivers.values()):
            if wanted is not None and wanted is not sender and wanted != getattr(sender, "name", sender):
                continue
            try:
                answers.append((receiver, receiver(signal=self, sender=sender, **named)))
            except Exception as error:
                _logger.exception("A receiver of %s failed: %r", self.name, receiver)
                answers.append((receiver, error))
        return answers


before_task_publish = Signal("before_task_publish")
after_task_publish = Signal("after_task_publish")
task_prerun = Signal("task_prerun")
task_postrun = Signal("task_postrun")
task_success = Signal("task_success")
task_retry = Signal("task_retry")
task_failure = Signal("task_failure")
task_revoked = Signal("task_revoked", "Use app.observe(function).")

_IMPORT = "Run the code when the module of the app is imported, or in app.on_after_finalize."
_LOGS = "Configure logging in the module of the app."
_OBSERVE = "Use app.observe(function)."
_MISSING = {
    "celeryd_after_setup": _IMPORT,
    "celeryd_init": _IMPORT,
    "worker_init": _IMPORT,
    "worker_process_init": _IMPORT,
    "worker_ready": _IMPORT,
    "worker_before_create_process": _IMPORT,
    "import_modules": _IMPORT,
    "worker_process_shutdown": "Use atexit in the module of the app.",
    "worker_shutdown": "Use atexit in the module of the app.",
    "worker_shutting_down": "Use atexit in the module of the app.",
    "heartbeat_sent": "See `duetime health`.",
    "setup_logging": _LOGS,
    "after_setup_logger": _LOGS,
    "after_setup_task_logger": _LOGS,
    "beat_init": "There is no beat: schedules are registered when the app starts.",
    "beat_embedded_init": "There is no beat: schedules are registered when the app starts.",
    "task_received": _OBSERVE,
    "task_rejected": _OBSERVE,
    "task_unknown": _OBSERVE,
    "task_internal_error": _OBSERVE,
    "task_sent": "Use before_task_publish or after_task_publish.",
}


def __getattr__(name: str) -> Signal:
    if name not in _MISSING:
        raise AttributeError(name)
    return Signal(name, _MISSING[name])
