"""Converts HTTP responses into outcomes, by the status. The response to a batch may list its items."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from duetime import limits
from duetime.channels.webhook.calls import is_json
from duetime.json_types import Json
from duetime.protocol.outcome import Done, Expired, Failed, Outcome, Rejected

# Statuses that ask for a retry.
_TRY_AGAIN = frozenset((408, 425, 429))


class WebhookResponse(msgspec.Struct, frozen=True, gc=False):
    """The received response."""

    status: int
    body: bytes = b""
    whole: bool = True
    """Whether the body is complete: not cut off, not too long, not too slow."""
    retry_after: str | None = None


def outcome_of(answer: WebhookResponse, now_ms: int, result_bytes_max: int) -> Outcome:
    """The outcome of a single call."""
    status = answer.status
    if 200 <= status < 300:
        return Done(_result(answer, result_bytes_max)) if answer.body else Done()
    text = _words(answer)
    if status in _TRY_AGAIN or status >= 500:
        return Failed("http", text, status, not_before_ms=not_before_ms(answer.retry_after, now_ms))
    if status < 200:  # 1xx, such as 101: no other protocol was requested
        return Failed("protocol", text, status)
    return Rejected("http", text, status)


def outcomes_of_batch(answer: WebhookResponse, ids: list[str], now_ms: int) -> dict[str, Outcome]:
    """The outcome of each of these intents after a batch call."""
    rest = outcome_of(answer, now_ms, 0)
    said: Json = {}
    if answer.whole:
        said = _results(answer.body)
    elif type(rest) is Done and answer.body.lstrip()[:1] == b"{":
        # The response began to list the items, but it is unknown which: a retry is the safe choice.
        rest = Failed("protocol", "the answer to the batch was cut off or too long", answer.status)
    if not said:
        return dict.fromkeys(ids, rest)
    return {id: _outcome_of_item(said[id], answer, now_ms) if id in said else rest for id in ids}


def not_before_ms(retry_after: str | None, now_ms: int) -> int:
    """The moment of a `Retry-After`, given in seconds or as a date. 0: it is absent or invalid."""
    if not retry_after:
        return 0
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        at_ms = now_ms + int(text[:12]) * 1000
    else:
        try:
            at_ms = int(parsedate_to_datetime(text).timestamp() * 1000)
        except (ValueError, TypeError, OverflowError, IndexError):
            return 0
    return min(at_ms, now_ms + limits.RETRY_AFTER_MS_MAX) if at_ms > now_ms else 0


def readable(text: str, chars: int = limits.ERROR_CHARS_MAX) -> str:
    """Foreign text as one line that can be stored."""
    return " ".join(text[: chars * 4].encode("utf-8", "replace").decode().split())[:chars]


def _result(answer: WebhookResponse, bytes_max: int) -> bytes | None:
    if not answer.whole or len(answer.body) > bytes_max or not is_json(answer.body):
        return None
    return answer.body


def _words(answer: WebhookResponse) -> str:
    try:
        phrase = f"HTTP {answer.status} {HTTPStatus(answer.status).phrase}"
    except ValueError:
        phrase = f"HTTP {answer.status}"
    excerpt = readable(
        answer.body[: limits.EXCERPT_CHARS_MAX * 4].decode("utf-8", "replace"), limits.EXCERPT_CHARS_MAX
    )
    return f"{phrase}: {excerpt}" if excerpt else phrase


def _results(body: bytes) -> Json:
    """The items of `{"results": [...]}`, by intent; empty if the body has another form."""
    try:
        document = msgspec.json.decode(body) if body else None
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return {}
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list):
        return {}
    return {
        each["intentId"]: each
        for each in results
        if isinstance(each, dict) and isinstance(each.get("intentId"), str)
    }


def _outcome_of_item(said: Json, answer: WebhookResponse, now_ms: int) -> Outcome:
    status, error = said.get("status"), said.get("error")
    text = "" if error is None else readable(error if isinstance(error, str) else str(error))
    if status == "ACKED":
        return Done()
    if status == "DEAD_LETTER":
        return Rejected("http", text or "the receiver said DEAD_LETTER", answer.status)
    if status == "EXPIRED":
        return Expired(text or "the receiver said EXPIRED")
    if status != "RETRY":
        shown = readable(str(status), 32)
        text = f"the receiver said {shown}, which is no status we know{': ' if text else ''}{text}"
    not_before = not_before_ms(answer.retry_after, now_ms)
    return Failed("http", text or "the receiver said RETRY", answer.status, not_before_ms=not_before)
