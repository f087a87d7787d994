"""Sentry: the exceptions of functions, with the task, the intent and the attempt.

sentry_sdk.init(dsn=...)
app.add_middleware(SentryMiddleware())
"""

from __future__ import annotations

import asyncio

import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger

from duetime.client.app.control import Reject, RetryAfter, Snooze
from duetime.client.app.middleware import Middleware, Run
from duetime.client.execution.handlers import RUNS_LOGGER

_SCOPE = "duetime.contrib.sentry.scope"


class SentryMiddleware(Middleware):
    """Reports exceptions of functions. Events of one task and one class of exception are one issue.

    Not reported: `Snooze`, and a `RetryAfter` before the last attempt, which are decisions of the function,
    and the cancellation of a coroutine.
    """

    def __init__(self, *, retries: bool = True) -> None:
        """`retries=False`: report an error only if there is no other attempt."""
        self._retries = retries
        # Failed attempts are also logged. Without this, the logging integration would report them again.
        ignore_logger(RUNS_LOGGER)

    def before_run(self, run: Run) -> None:
        context = run.context
        manager = sentry_sdk.isolation_scope()
        scope = manager.__enter__()
        run.state[_SCOPE] = manager
        scope.set_transaction_name(context.task, source="task")
        scope.set_tag("duetime.task", context.task)
        scope.set_tag("duetime.queue", context.queue)
        scope.set_tag("duetime.intent_id", context.intent_id)
        scope.set_tag("duetime.attempt", context.attempt)
        scope.set_context(
            "duetime",
            {
                "task": context.task,
                "queue": context.queue,
                "intent_id": context.intent_id,
                "attempt": context.attempt,
                "max_attempts": context.max_attempts,
                "delivery": context.delivery,
                "late_ms": context.late_ms,
                "tags": context.tags,
            },
        )

    def run_failed(self, run: Run, error: BaseException) -> None:
        context = run.context
        again = context.attempt < context.max_attempts
        if isinstance(error, Snooze | asyncio.CancelledError) or (again and isinstance(error, RetryAfter)):
            return
        if again and not self._retries and not isinstance(error, Reject):
            return
        kind = type(error)
        scope = sentry_sdk.get_isolation_scope()
        scope.fingerprint = ["duetime", context.task, f"{kind.__module__}.{kind.__qualname__}"]
        sentry_sdk.capture_exception(error)

    def run_ended(self, run: Run) -> None:
        manager = run.state.pop(_SCOPE, None)
        if manager is not None:
            manager.__exit__(None, None, None)
