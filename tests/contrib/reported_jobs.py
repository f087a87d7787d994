"""Functions that report to Sentry and whose log lines name them. REPORTS is the file for Sentry's events."""

from __future__ import annotations

import json
import logging
import os

import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from duetime import App, Retry
from duetime.contrib.log_context import LogContext
from duetime.contrib.sentry import SentryMiddleware


class ToFile(Transport):
    """Writes each event as a line."""

    def capture_envelope(self, envelope: Envelope) -> None:
        event = envelope.get_event()
        if event is not None:
            with open(os.environ["REPORTS"], "a", encoding="utf-8") as file:
                file.write(json.dumps(event, default=str) + "\n")


if "REPORTS" in os.environ:
    sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=ToFile)

app = App("http://127.0.0.1:1")
app.add_middleware(SentryMiddleware(), LogContext())
TWICE = Retry(max_attempts=2, backoff="fixed", initial_delay="10ms", jitter=False)
_logger = logging.getLogger("jobs")


def _break(word: str) -> None:
    _logger.warning("about to break %s", word)
    raise ConnectionError(f"{word} is broken")


@app.task(name="jobs.coroutine", retry=TWICE)
async def coroutine(word: str) -> None:
    _break(word)


@app.task(name="jobs.plain", retry=TWICE)
def plain(word: str) -> None:
    _break(word)


@app.task(name="jobs.heavy", queue="heavy", cpu_bound=True, retry=TWICE)
def heavy(word: str) -> None:
    _break(word)
