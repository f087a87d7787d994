"""`callback.onEnd`: a cancel and a dead letter are told to a URL. `ackMeaning`: what it survives."""

from __future__ import annotations

import pytest

from tests.http.checks import problem
from tests.receiver import Say


@pytest.mark.parametrize("end", ["CANCELED", "DEAD_LETTERED"])
def test_an_end_without_success_is_told(life, server, end):
    id, ended = life.fresh(), life.fresh()
    life.hooks.says(id, Say(418))
    callback = {"url": life.hooks.url(id), "onEnd": life.hooks.url(ended)}
    delay_ms = 0 if end == "DEAD_LETTERED" else 3_600_000
    made = server.create(intentId=id, delayMs=delay_ms, callback=callback)
    assert made["callback"]["onEnd"] == callback["onEnd"]
    if end == "CANCELED":
        assert life.do("cancel", id).status == 200
    told = life.hooks.take(ended).json
    assert told["payload"]["intentId"] == id and told["payload"]["status"] == end
    assert told["intentId"].startswith(f"{id}.end")
    assert ("418" in told["payload"]["reason"]) == (end == "DEAD_LETTERED")


def test_on_end_must_be_a_url(server):
    body = {"delayMs": 0, "callback": {"url": "http://localhost:9/a", "onEnd": "ftp://localhost/b"}}
    assert "$.callback.onEnd" in str(problem(server.ask("POST", "/v1/intents", body), 42216))


@pytest.mark.parametrize(("level", "words"), [("ASYNC", "may lose"), ("DURABLE", "and a power loss")])
def test_a_response_says_what_an_intent_survives(life, server, level, words):
    body = {"delayMs": 3_600_000, "callback": {"url": life.hooks.url("x")}, "ackLevel": level}
    made = server.ask("POST", "/v1/intents", body).json
    assert made["ackLevel"] == level and words in made["ackMeaning"]
    assert life.get(made["intentId"])["ackMeaning"] == made["ackMeaning"]
