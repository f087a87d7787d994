"""Batches whose intents have little in common: a URL, tags or a body of its own for each."""

from __future__ import annotations

import pytest

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("count", "own"),
    [
        (4_000, lambda n: {"callback": {"url": f"http://127.0.0.1:9/{n}"}}),
        (4_000, lambda n: {"stream": {"name": "n"}, "tags": {"customer": f"c{n}"}}),
        (60, lambda n: {"callback": {"url": "http://127.0.0.1:9/", "body": f"{n}" + "x" * 50_000}}),
    ],
    ids=["urls", "tags", "bodies"],
)
def test_all_are_taken(server, fresh, count, own):
    name = fresh()
    news = [{"intentId": f"{name}.{n}", "delayMs": HOUR_MS, "payload": n, **own(n)} for n in range(count)]
    answer = server.ask("POST", "/v1/intents/batch", news)
    assert answer.status == 200, answer.body[:300]
    body = answer.json
    assert (body["created"], body["failed"]) == (count, 0)
    assert [item["intent"]["intentId"] for item in body["items"]] == [new["intentId"] for new in news]
    for n in (0, count // 2, count - 1):
        shown = server.ask("GET", f"/v1/intents/{name}.{n}").json
        assert shown["payload"] == n
        for field, value in own(n).items():
            assert shown[field] == value if field == "tags" else value.items() <= shown[field].items()
