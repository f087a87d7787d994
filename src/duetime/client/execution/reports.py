"""Progress reports and log lines of running functions.

Both belong to the delivery in the function's context; threads that the function starts itself have no such
context. A report never blocks: the newest one is stored, and the sender collects it from time to time. A
function without reports costs nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from duetime.client.app.control import Context, current_context
from duetime.errors import Closed, InvalidField
from duetime.limits import (
    ATTEMPT_LOG_LINES_BYTES_MAX,
    ATTEMPT_LOG_LINES_MAX,
    ATTEMPT_LOGS_KEPT,
    NOTE_CHARS_MAX,
)
from duetime.protocol.effect import DeliveryKey
from duetime.protocol.outcome import Settlement
from duetime.safe_text import LOG_FORMAT

if TYPE_CHECKING:
    from duetime.client.app.call import Call
    from duetime.wire.history import Parent

Word = tuple[float, float | None, str]
"""The amount done, the total, and a note."""


class Reports:
    """The reports and log lines of an app's running functions."""

    def __init__(self) -> None:
        self.keeps_logs = False
        """Whether log lines in the processes of functions are stored too."""
        self._lock = threading.Lock()
        self._words: dict[DeliveryKey, Word] = {}
        self._logs: dict[DeliveryKey, Lines] = {}
        self._asked = False
        self._ask: Callable[[], object] | None = None
        self.parents: Callable[[str], Call[list[Parent]]] | None = None
        """Reads the parents of an intent from the app."""

    def on_news(self, ask: Callable[[], object] | None) -> None:
        """Set the function that is called, from any thread, when the first new report can be taken."""
        self._ask, self._asked = ask, False

    def progress(self, place: DeliveryKey, word: Word) -> None:
        with self._lock:
            self._words[place] = word
            asked, self._asked = self._asked, True
        if not asked and self._ask is not None:
            self._ask()

    def take(self) -> dict[DeliveryKey, Word]:
        """The newest report of each delivery with a report since the last call."""
        with self._lock:
            words, self._words = self._words, {}
            self._asked = False
        return words

    def log(self, place: DeliveryKey, text: str) -> None:
        lines = self._logs.get(place)
        if lines is None:
            # Deliveries that have ended and still log are among the oldest.
            if len(self._logs) >= ATTEMPT_LOGS_KEPT:
                with self._lock:
                    self._logs.pop(next(iter(self._logs)), None)
            lines = self._logs[place] = Lines()
        lines.add(text)

    def with_logs(self, settlements: list[Settlement]) -> list[Settlement]:
        """The outcomes with the log lines of their attempts."""
        logs = self._logs
        if not logs:
            return settlements
        return [
            each
            if (lines := logs.pop((each.id, each.delivery), None)) is None
            else replace(each, log=lines.text())
            for each in settlements
        ]

    def text(self, place: DeliveryKey) -> str | None:
        """Remove and return the log lines."""
        lines = self._logs.pop(place, None)
        return None if lines is None else lines.text()


class Lines:
    """The newest lines of a log, within the limits."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._bytes = 0
        self._dropped = 0

    def add(self, text: str) -> None:
        for line in text.splitlines() or [""]:
            line = _cut(line)
            self._lines.append(line)
            self._bytes += len(line.encode()) + 1
        while len(self._lines) > ATTEMPT_LOG_LINES_MAX or self._bytes > ATTEMPT_LOG_LINES_BYTES_MAX:
            self._bytes -= len(self._lines.popleft().encode()) + 1
            self._dropped += 1

    def text(self) -> str:
        text = "\n".join(self._lines)
        return f"({self._dropped} earlier lines were not kept)\n{text}" if self._dropped else text


def _cut(line: str) -> str:
    """A line that can be stored: valid text of limited length."""
    whole = line.encode("utf-8", "backslashreplace")
    return whole[: ATTEMPT_LOG_LINES_BYTES_MAX - 1].decode("utf-8", "ignore")


class Running(Context, frozen=True, kw_only=True):
    """The context of a running function, and the receiver of its reports."""

    reports: Reports | None = None

    def parents(self) -> Call[list[Parent]]:
        if self.reports is None or self.reports.parents is None:
            return super().parents()
        return self.reports.parents(self.intent_id)


class LogHandler(logging.Handler):
    """Stores the log lines of functions with their intents. Add it to the root logger, or to your own.

    A worker adds it by itself. Lines that are logged outside a function are ignored.
    """

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        formatter = logging.Formatter(LOG_FORMAT)
        formatter.converter = time.gmtime
        formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        context = current_context.get(None)
        if type(context) is Running and context.reports is not None:
            try:
                context.reports.log((context.intent_id, context.delivery), self.format(record))
            except Exception:
                self.handleError(record)


def keep_logs() -> None:
    """Add a handler to the root logger if it has none yet."""
    root = logging.getLogger()
    if not any(type(each) is LogHandler for each in root.handlers):
        root.addHandler(LogHandler())


def progress(done: float, total: float | None = None, note: str = "") -> None:
    """Report the progress of the running function. The server, the command line and `handle.view()` show it.

    It is cheap and never blocks. Call it as often as you like; the newest report counts.
    """
    try:
        context = current_context.get()
    except LookupError:
        raise Closed("No intent is running here.", hint="Call progress() inside a task.") from None
    if type(context) is Running and context.reports is not None:
        word = (_number(done, "done"), None if total is None else _number(total, "total"), str(note))
        context.reports.progress((context.intent_id, context.delivery), word)


def _number(value: object, what: str) -> float:
    if isinstance(value, int | float) and abs(value) < 2**53:  # also false for values that are not numbers
        return value
    raise InvalidField(f"progress: {what}={value!r} is not a finite number.")


def note_of(text: str) -> str:
    """A note that can be shown: valid text of limited length."""
    return text[:NOTE_CHARS_MAX].encode("utf-8", "backslashreplace").decode()


def words_of(words: Iterable[tuple[DeliveryKey, Word]]) -> dict[DeliveryKey, Word]:
    """Reports with notes that can be shown."""
    return {place: (done, total, note_of(note)) for place, (done, total, note) in words}
