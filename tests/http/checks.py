"""What every refusal of the API must look like."""

from __future__ import annotations

from typing import Any

from tests.http.server import Reply

FIELDS = {
    "type", "title", "status", "detail", "errorCode", "message", "retryable", "recoveryHint", "details",
}  # fmt: skip
HINT_FIELDS = {"suggestion", "endpoint", "waitMs", "currentState", "nextStates"}


def problem(answer: Reply, code: int) -> Any:
    """The problem of this code, in the shape that the contract gives it."""
    assert answer.headers["content-type"] == "application/problem+json", answer.body
    body = answer.json
    assert body["errorCode"] == code, body
    assert answer.status == body["status"] == code // 100, body
    assert set(body) == FIELDS
    assert set(body["recoveryHint"]) == HINT_FIELDS
    assert body["type"] and body["title"] and body["message"] and body["recoveryHint"]["suggestion"]
    assert body["message"] in body["detail"]
    assert "Traceback" not in answer.body.decode()
    if body["retryable"]:
        assert int(answer.headers["retry-after"]) >= 1
        assert body["recoveryHint"]["waitMs"] > 0
    else:
        assert "retry-after" not in answer.headers
    if answer.status == 429:
        assert body["details"]["retryAfterMs"] == body["recoveryHint"]["waitMs"]
    return body
