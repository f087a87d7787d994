"""POST /v1/intents/batch: a JSON array or a line each, an answer for each in order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.http.checks import problem

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}
NDJSON = {"content-type": "application/x-ndjson"}


def post(server, body, headers=None):
    return server.ask("POST", "/v1/intents/batch", body, headers)


def test_an_answer_for_each_in_order(server, fresh):
    taken, key = server.create(intentId=fresh())["intentId"], fresh()
    news: list[Any] = [
        {**NEW, "intentId": fresh()},
        {**NEW, "intentId": taken},
        {"stream": {"name": "n"}},
        {**NEW, "bad": 1},
        {**NEW, "idempotencyKey": key},
        {**NEW, "idempotencyKey": key},
        {**NEW, "precisionTier": "SLOW"},
        {**NEW, "task": {"name": "t"}},
        7,
        {**NEW, "payload": "x" * 300_000},
        {**NEW, "executeAt": "2001-01-01T00:00:00Z", "delayMs": None},
    ]
    answer = post(server, news)
    assert answer.status == 200, answer.body
    body = answer.json
    assert [item["status"] for item in body["items"]] == [
        201, 409, 422, 422, 201, 200, 422, 422, 422, 413, 422,
    ]  # fmt: skip
    codes = [item["error"]["errorCode"] for item in body["items"] if "error" in item]
    assert codes == [40904, 42201, 42208, 42210, 42209, 42208, 41301, 42206]
    assert (body["created"], body["existing"], body["failed"]) == (2, 1, 8)
    assert body["items"][0]["intent"]["intentId"] == news[0]["intentId"]
    assert body["items"][4]["intent"] == body["items"][5]["intent"]
    assert body["items"][3]["error"]["details"]["path"] == "$[3]"
    assert body["items"][8]["error"]["details"]["path"] == "$[8]"


def test_a_line_each(server):
    lines = "\n".join(json.dumps({**NEW, "payload": number}) for number in range(5))
    for text in (lines, lines + "\n", "\n" + lines.replace("\n", "\r\n\r\n")):
        body = post(server, text.encode(), NDJSON).json
        assert [item["intent"]["payload"] for item in body["items"]] == list(range(5))


def test_a_bad_item_does_not_affect_the_others(server):
    body = post(server, json.dumps(NEW).encode() + b"\n{oops\n" + json.dumps(NEW).encode(), NDJSON).json
    assert [item["status"] for item in body["items"]] == [201, 400, 201]
    assert body["items"][1]["error"]["errorCode"] == 40003


def test_many_in_one(server):
    news = [{**NEW, "payload": number} for number in range(2_000)]
    body = post(server, news).json
    assert body["created"] == 2_000
    assert [item["intent"]["payload"] for item in body["items"]] == list(range(2_000))
    ids = [item["intent"]["intentId"] for item in body["items"]]
    assert ids == sorted(ids)


def test_of_different_terms(server):
    tiers = ["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"] * 3
    body = post(server, [{**NEW, "precisionTier": tier} for tier in tiers]).json
    assert [item["intent"]["precisionTier"] for item in body["items"]] == tiers


@pytest.mark.parametrize("body", [b"", b"  ", b"[]", b"\n\n"])
def test_an_empty_batch_is_refused(server, body):
    problem(post(server, body), 40003)


@pytest.mark.parametrize("body", [b"[", b"[1", b'[{"a":}]', b"\xff", b"[1,]"])
def test_not_json(server, body):
    answer = post(server, body)
    if answer.status == 200:  # read as lines: each says so by itself
        assert all(item["error"]["errorCode"] == 40003 for item in answer.json["items"])
    else:
        problem(answer, 40003)


def test_too_many(server):
    problem(post(server, b"[" + b",".join([b"{}"] * 10_001) + b"]"), 41301)


def test_one_may_wait_for_another_of_the_same_batch(server, fresh):
    first, second = fresh(), fresh()
    body = post(server, [{**NEW, "intentId": first}, {**NEW, "intentId": second, "after": [first]}]).json
    assert [item["status"] for item in body["items"]] == [201, 201]
    assert body["items"][1]["intent"]["status"] == "BLOCKED"


def test_prefer_minimal_gives_short_answers(server):
    one = {"delayMs": 3_600_000, "stream": {"name": "brief"}}
    answer = server.ask("POST", "/v1/intents/batch", [one, {"delayMs": -1}], {"Prefer": "return=minimal"})
    assert answer.status == 200 and answer.headers["preference-applied"] == "return=minimal"
    body = answer.json
    assert (body["created"], body["failed"]) == (1, 1)
    intent = body["items"][0]["intent"]
    assert set(intent) == {"intentId", "status", "executeAt", "revision"}
    assert server.ask("GET", f"/v1/intents/{intent['intentId']}").json["revision"] == intent["revision"]
    assert body["items"][1]["error"]["errorCode"] == 42208


def test_ten_thousand_unknown_fields_are_refused_without_a_search_for_each(server):
    """What was meant is said of the first ones; each is refused at its place."""
    items = [{"stream": {"name": "x"}, "delayMs": 3_600_000, "prioriti": 1}] * 10_000
    answer = server.ask("POST", "/v1/intents/batch", items)
    assert answer.status == 200 and answer.json["failed"] == 10_000
    errors = [each["error"] for each in answer.json["items"]]
    meant = ["Did you mean priority?" in each["recoveryHint"]["suggestion"] for each in errors]
    assert meant == [True] * 20 + [False] * 9_980
    assert errors[-1]["details"]["path"] == "$[9999]" and "prioriti" in errors[-1]["message"]
