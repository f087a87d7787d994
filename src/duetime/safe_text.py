"""Makes foreign text safe to show: on a terminal, in a table, in a log.

Names, payloads, responses of receivers and error messages may contain characters that break a line, move the
cursor, change the colour, or reorder the text around them. They are shown as escapes (`\\n`, `\\x1b`,
`\\u202e`), so that a value stays in its cell and a log record stays on one line.
"""

from __future__ import annotations

import logging
import re

# C0 except the tab, DEL and C1; marks that set the direction of text; line and paragraph separators;
# invisible format characters; lone surrogates, which no stream can encode.
_BEYOND_ASCII = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
_UNSAFE = re.compile(rf"[\x00-\x08\x0a-\x1f{_BEYOND_ASCII}]")
# A JSON encoder escapes C0 itself; the remaining line ends are between values.
_UNSAFE_JSON = re.compile(f"[{_BEYOND_ASCII}]")
_SHORT = {"\n": "\\n", "\r": "\\r"}
# The indent of the other lines of a record, so that none of them looks like a record.
_INDENT = "    "

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def plain(text: str) -> str:
    """The text on one line, with control characters as escapes."""
    return _UNSAFE.sub(_escape, text)


def plain_json(encoded: bytes) -> str:
    """The same JSON, with control characters as JSON escapes: it parses to equal values."""
    return _UNSAFE_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode())


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    return _SHORT.get(sign) or (f"\\x{ord(sign):02x}" if sign < "\xa0" else f"\\u{ord(sign):04x}")


class LineFormatter(logging.Formatter):
    """One line per record; the lines of a traceback below it are indented."""

    def __init__(self) -> None:
        super().__init__(LOG_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        lines = [self.formatMessage(record) + _place(record)]
        # Does not use `record.exc_text`: other handlers share it.
        if record.exc_info:
            lines += self.formatException(record.exc_info).split("\n")
        elif record.exc_text:
            lines += record.exc_text.split("\n")
        if record.stack_info:
            lines += self.formatStack(record.stack_info).split("\n")
        return f"\n{_INDENT}".join(map(plain, lines))


def _place(record: logging.LogRecord) -> str:
    """The function that logged it, if a filter has added that (`duetime.contrib.log_context`)."""
    found = record.__dict__
    if found.get("intent_id", "-") == "-":
        return ""
    return f" [{found.get('task', '-')} {found['intent_id']} attempt {found.get('attempt', '-')}]"


def log_to_stderr() -> None:
    """Log to stderr in a process of Duetime, unless logging is configured already."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
