"""What a running function says of itself: how far it is, and what it logs.

Both go by the delivery the function runs for, found in its context; what is said in a thread of the
function's own is not heard. Saying something never waits for anybody: the newest word is kept, and whoever
hands it on comes for it now and then. A function that says nothing costs nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from duetime.client.app.control import Context, current_context
from duetime.errors import Closed, InvalidField
from duetime.limits import ATTEMPT_LOG_BYTES_MAX, ATTEMPT_LOG_LINES_MAX, NOTE_CHARS_MAX
from duetime.plain import LOG_FORMAT
from duetime.protocol.outcome import Settlement

if TYPE_CHECKING:
    from duetime.client.app.call import Call
    from duetime.client.app.handle import Parent

Place = tuple[str, int]
"""The id of an intent, and the number of its delivery."""
Word = tuple[float, float | None, str]
"""How much is done, of how much, and a note."""

# What lines may take; the rest is for the word that some were dropped.
_BYTES_MAX = ATTEMPT_LOG_BYTES_MAX - 64
# Of so many deliveries at a time it is kept what they log.
_KEPT = 1_000


class Reports:
    """What the functions of one app say while they run."""

    def __init__(self) -> None:
        self.keeps_logs = False
        """Whether processes of functions keep what is logged in them, too."""
        self._lock = threading.Lock()
        self._words: dict[Place, Word] = {}
        self._logs: dict[Place, Lines] = {}
        self._asked = False
        self._ask: Callable[[], object] | None = None
        self.parents: Callable[[str], Call[list[Parent]]] | None = None
        """Asks the app for those that an intent came after."""

    def on_news(self, ask: Callable[[], object] | None) -> None:
        """Call this, from any thread, when there is something to `take` and nobody was told yet."""
        self._ask, self._asked = ask, False

    def progress(self, place: Place, word: Word) -> None:
        with self._lock:
            self._words[place] = word
            asked, self._asked = self._asked, True
        if not asked and self._ask is not None:
            self._ask()

    def take(self) -> dict[Place, Word]:
        """The newest word of each delivery that said something since."""
        with self._lock:
            words, self._words = self._words, {}
            self._asked = False
        return words

    def log(self, place: Place, text: str) -> None:
        lines = self._logs.get(place)
        if lines is None:
            if len(self._logs) >= _KEPT:  # those that ended and still log are among the oldest
                with self._lock:
                    self._logs.pop(next(iter(self._logs)), None)
            lines = self._logs[place] = Lines()
        lines.add(text)

    def with_logs(self, settlements: list[Settlement]) -> list[Settlement]:
        """Outcomes, each with what its attempt logged."""
        logs = self._logs
        if not logs:
            return settlements
        return [
            each
            if (lines := logs.pop((each.id, each.delivery), None)) is None
            else replace(each, log=lines.text())
            for each in settlements
        ]

    def text(self, place: Place) -> str | None:
        """What was logged, taken out."""
        lines = self._logs.pop(place, None)
        return None if lines is None else lines.text()


class Lines:
    """The newest lines of a log, as many as are kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._bytes = 0
        self._dropped = 0

    def add(self, text: str) -> None:
        for line in text.splitlines() or [""]:
            line = _cut(line)
            self._lines.append(line)
            self._bytes += len(line.encode()) + 1
        while len(self._lines) > ATTEMPT_LOG_LINES_MAX or self._bytes > _BYTES_MAX:
            self._bytes -= len(self._lines.popleft().encode()) + 1
            self._dropped += 1

    def text(self) -> str:
        text = "\n".join(self._lines)
        return f"({self._dropped} earlier lines were not kept)\n{text}" if self._dropped else text


def _cut(line: str) -> str:
    """A line that can be stored: as text, and no longer than all of them may be."""
    whole = line.encode("utf-8", "backslashreplace")
    return whole[: _BYTES_MAX - 1].decode("utf-8", "ignore")


class Running(Context, frozen=True, kw_only=True):
    """The context of a function that runs, with who hears what it says."""

    reports: Reports | None = None

    def parents(self) -> Call[list[Parent]]:
        if self.reports is None or self.reports.parents is None:
            return super().parents()
        return self.reports.parents(self.intent_id)


class LogHandler(logging.Handler):
    """Keeps what functions log with their intents: put it on the root logger, or on one of your own.

    A worker does so by itself. What is logged outside of a function is not its business.
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
    """Put a handler on the root logger, if there is none yet."""
    root = logging.getLogger()
    if not any(type(each) is LogHandler for each in root.handlers):
        root.addHandler(LogHandler())


def progress(done: float, total: float | None = None, note: str = "") -> None:
    """Say how far the running function is: shown by the server, the command line and `handle.view()`.

    Costs next to nothing and waits for nobody; say it as often as you like, the newest counts.
    """
    try:
        context = current_context.get()
    except LookupError:
        raise Closed("No intent is running here.", hint="Call progress() inside a task.") from None
    if type(context) is Running and context.reports is not None:
        word = (_number(done, "done"), None if total is None else _number(total, "total"), str(note))
        context.reports.progress((context.intent_id, context.delivery), word)


def _number(value: Any, what: str) -> float:
    if isinstance(value, int | float) and abs(value) < 2**53:  # also false for what is not a number
        return value
    raise InvalidField(f"progress: {what}={value!r} is not a finite number.")


def note_of(text: str) -> str:
    """A note that can be shown: of bounded length, and text."""
    return text[:NOTE_CHARS_MAX].encode("utf-8", "backslashreplace").decode()


def words_of(words: Iterable[tuple[Place, Word]]) -> dict[Place, Word]:
    """Words with notes that can be shown."""
    return {place: (done, total, note_of(note)) for place, (done, total, note) in words}
