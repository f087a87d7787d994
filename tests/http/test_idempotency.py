"""Idempotency keys: twins that live, twins that have ended, other bodies."""

from __future__ import annotations

import threading

import pytest

from tests.http.checks import problem

REPLAYED = "idempotent-replayed"


def body(key, **more):
    return {"delayMs": 3_600_000, "stream": {"name": "nobody"}, "idempotencyKey": key, **more}


def post(server, fields, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.ask("POST", "/v1/intents", fields, named)


def test_a_live_twin_is_given_back(server, fresh):
    key = fresh()
    first = post(server, body(key))
    assert first.status == 201 and REPLAYED not in first.headers
    again = post(server, body(key))
    assert again.status == 200 and again.headers[REPLAYED] == "true"
    assert again.json == first.json and again.headers["etag"] == first.headers["etag"]


def test_the_header_says_the_same(server, fresh):
    key = fresh()
    first = post(server, {"delayMs": 9_000_000, "stream": {"name": "n"}}, Idempotency_Key=key)
    assert first.status == 201 and first.json["idempotencyKey"] == key
    again = post(server, {"delayMs": 9_000_000, "stream": {"name": "n"}}, Idempotency_Key=key)
    assert again.status == 200 and again.json["intentId"] == first.json["intentId"]


def test_header_and_field_agree_or_are_refused(server, fresh):
    key = fresh()
    assert post(server, body(key), Idempotency_Key=key).status == 201
    problem(post(server, body(key), Idempotency_Key=key + "x"), 42208)


@pytest.mark.parametrize("key", ["k" * 257])
def test_a_bad_header(server, key):
    problem(post(server, {"delayMs": 9_000, "stream": {"name": "n"}}, Idempotency_Key=key), 42208)


def test_the_same_words_in_another_order_are_the_same_body(server, fresh):
    key = fresh()
    text = '{"stream":{"name":"n"}, "idempotencyKey":"%s","payload":{"b":1,"a":2},"delayMs":3600000}'
    first = server.ask("POST", "/v1/intents", (text % key).encode())
    other = '{"delayMs":3600000,"payload":{"a":2,"b":1},\n"idempotencyKey":"%s","stream":{"name":"n"}}'
    again = server.ask("POST", "/v1/intents", (other % key).encode())
    assert (first.status, again.status) == (201, 200)


@pytest.mark.parametrize(
    "more", [{"payload": 1}, {"delayMs": 3_600_001}, {"stream": {"name": "other"}}, {"tags": {"a": "b"}}]
)
def test_another_body_is_refused(server, fresh, more):
    key = fresh()
    assert post(server, body(key)).status == 201
    problem(post(server, body(key, **more)), 40903)


def test_a_finished_twin(life):
    key = life.fresh()
    said = {"delayMs": 0, "idempotencyKey": key, "precisionTier": "FAST"}
    said["callback"] = {"url": life.hooks.says(key)}
    first = post(life.server, said).json
    life.events.reached(first["intentId"], "ACKED")
    refused = problem(post(life.server, said), 40901)
    assert "onDuplicate" in refused["recoveryHint"]["endpoint"]
    back = post(life.server, {**said, "onDuplicate": "return"})
    assert back.status == 200 and back.headers[REPLAYED] == "true"
    assert back.json["intentId"] == first["intentId"] and back.json["status"] == "ACKED"
    problem(post(life.server, {**said, "onDuplicate": "reject"}), 40901)


def test_reject_refuses_live_twins_too(server, fresh):
    key = fresh()
    assert post(server, body(key, onDuplicate="reject")).status == 201
    problem(post(server, body(key, onDuplicate="reject")), 40901)
    assert post(server, body(key, onDuplicate="return")).status == 200


def test_at_the_same_time_there_is_one(server, fresh):
    key = fresh()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post(server, body(key)))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answer.status for answer in answers) == [200] * 15 + [201]
    assert len({answer.json["intentId"] for answer in answers}) == 1


def test_a_key_is_remembered_by_a_restart(tmp_path, fresh):
    from tests.http.server import ServerProcess

    key = fresh()
    with ServerProcess(tmp_path / "data") as server:
        first = post(server, body(key))
        server.kill()
        server.start()
        again = post(server, body(key))
        assert again.status == 200 and again.json["intentId"] == first.json["intentId"]
