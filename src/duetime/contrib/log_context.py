"""The task, the intent and the attempt in every log line of a function.

app.add_middleware(LogContext())
logging.basicConfig(format="%(levelname)s %(task)s %(intent_id)s %(attempt)s: %(message)s")
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from duetime.client.app.control import current_context
from duetime.client.app.middleware import Middleware, Run

NONE = "-"


class LogContextFilter(logging.Filter):
    """Adds `task`, `queue`, `intent_id` and `attempt` to log records; `-` outside of functions.

    It keeps values that the program gave with `extra=`. Add it to handlers: filters of a logger do not see
    the records of the loggers below it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        context = current_context.get(None)
        found = record.__dict__
        if context is None:
            for name in ("task", "queue", "intent_id", "attempt"):
                found.setdefault(name, NONE)
        else:
            found.setdefault("task", context.task)
            found.setdefault("queue", context.queue)
            found.setdefault("intent_id", context.intent_id)
            found.setdefault("attempt", context.attempt)
        return True


class LogContext(Middleware):
    """Adds the filter to all handlers of these loggers (default: the root logger), now and before each run.

    So handlers that are added later have it too, and those in the processes of CPU-bound functions.
    """

    def __init__(self, loggers: Sequence[str] = ("",)) -> None:
        self._loggers = [logging.getLogger(name) for name in loggers]
        self._filter = LogContextFilter()
        self._add()

    def before_run(self, run: Run) -> None:
        self._add()

    def _add(self) -> None:
        for logger in self._loggers:
            for handler in logger.handlers:
                if self._filter not in handler.filters:
                    handler.addFilter(self._filter)
