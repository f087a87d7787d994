"""The bounds of what workers and running functions report about themselves."""

from __future__ import annotations

from duetime.limits import (
    ATTEMPT_LOG_BYTES_MAX,
    ATTEMPT_LOG_LINES_MAX,
    FUNCTION_BYTES_MAX,
    FUNCTIONS_MAX,
    NAME_CHARS_MAX,
    NOTE_CHARS_MAX,
    PROGRESS_MAX,
    PROGRESS_MS,
)

__all__ = [
    "ATTEMPT_LOG_BYTES_MAX",
    "ATTEMPT_LOG_LINES_MAX",
    "FUNCTIONS_MAX",
    "FUNCTION_BYTES_MAX",
    "NAME_CHARS_MAX",
    "NOTE_CHARS_MAX",
    "PROGRESS_MAX",
    "PROGRESS_MS",
]
