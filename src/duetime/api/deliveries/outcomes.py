"""Outcomes that clients report, within their bounds. Texts are cut; a wrong result is rejected."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from duetime.limits import ATTEMPT_LOG_BYTES_MAX, ERROR_CHARS_MAX, ERROR_KIND_CHARS_MAX, RETRY_DELAY_MS_MAX
from duetime.protocol.outcome import Done, Failed, Outcome, Rejected, Returned, Snoozed

DONE = Done()


def done(result: bytes, bytes_max: int) -> Outcome:
    """The outcome of a finished delivery. An invalid result is rejected, because a retry would not help."""
    if not result:
        return DONE
    if len(result) > bytes_max:
        return Rejected("result", f"it is done, but its result has more than {bytes_max} bytes")
    try:
        if not result.isascii():
            result.decode()
        msgspec.json.decode(result, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Rejected("result", f"it is done, but its result is not JSON: {error}")
    return Done(result)


def failed(kind: str, message: str, delay_ms: int | None, retry_after_ms: int, now_ms: int) -> Outcome:
    wait_ms = _delay(retry_after_ms)
    return Failed(
        kind[:ERROR_KIND_CHARS_MAX] or "failed",
        message[:ERROR_CHARS_MAX],
        delay_ms=-1 if delay_ms is None else _delay(delay_ms),
        not_before_ms=now_ms + wait_ms if wait_ms else 0,
    )


def snoozed(delay_ms: int, reason: str) -> Outcome:
    return Snoozed(_delay(delay_ms), reason[:ERROR_CHARS_MAX])


def rejected(kind: str, message: str) -> Outcome:
    return Rejected(kind[:ERROR_KIND_CHARS_MAX] or "rejected", message[:ERROR_CHARS_MAX])


def returned(message: str) -> Outcome:
    return Returned(message[:ERROR_CHARS_MAX])


def attempt_log(text: str) -> str:
    """The newest part of a log, within the limit."""
    whole = text.encode()
    if len(whole) <= ATTEMPT_LOG_BYTES_MAX:
        return text
    return whole[-ATTEMPT_LOG_BYTES_MAX:].decode(errors="ignore")


def _delay(delay_ms: int) -> int:
    return min(max(0, delay_ms), RETRY_DELAY_MS_MAX)
