"""X-Duetime-Request-Id: any write can be repeated, and is done once."""

from __future__ import annotations

import threading

import pytest

from tests.http.checks import problem
from tests.http.server import ServerProcess

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}


def post(server, body, request, path="/v1/intents"):
    return server.ask("POST", path, body, {"X-Duetime-Request-Id": request})


def test_a_create_is_answered_again(server, fresh):
    request = fresh()
    first, again = post(server, NEW, request), post(server, NEW, request)
    assert first.status == again.status == 201 and first.body == again.body
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["location"] == first.headers["location"]


def test_at_the_same_time_it_is_done_once(server, fresh):
    request = fresh()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post(server, NEW, request))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 16 and len({answer.body for answer in answers}) == 1


def test_another_request_of_the_same_id_is_refused(server, fresh):
    request = fresh()
    post(server, NEW, request)
    problem(post(server, {**NEW, "payload": 1}, request), 40903)
    problem(post(server, [NEW], request, "/v1/intents/batch"), 40903)


def test_a_refused_request_may_be_repeated(life):
    request, id = life.fresh(), life.fresh()
    problem(post(life.server, None, request, f"/v1/intents/{id}/cancel"), 40401)
    life.server.create(intentId=id)
    assert post(life.server, None, request, f"/v1/intents/{id}/cancel").status == 200


@pytest.mark.parametrize("verb", ["cancel", "fire-now", "revive"])
def test_a_verb_is_done_once(life, verb):
    id = life.at("DEAD_LETTERED" if verb == "revive" else "SCHEDULED")
    request = life.fresh()
    first = post(life.server, {}, request, f"/v1/intents/{id}/{verb}")
    again = post(life.server, {}, request, f"/v1/intents/{id}/{verb}")
    assert first.status == again.status == 200 and first.body == again.body


def test_a_patch_is_done_once(life):
    id = life.at("SCHEDULED")
    headers = {"X-Duetime-Request-Id": life.fresh()}
    first = life.server.ask("PATCH", f"/v1/intents/{id}", {"priority": 3}, headers)
    again = life.server.ask("PATCH", f"/v1/intents/{id}", {"priority": 3}, headers)
    assert first.body == again.body and life.get(id)["revision"] == first.json["revision"]


def test_a_batch_is_done_once(server, fresh):
    request = fresh()
    first = post(server, [NEW, NEW], request, "/v1/intents/batch")
    again = post(server, [NEW, NEW], request, "/v1/intents/batch")
    assert first.status == 200 and first.json["created"] == 2 and first.body == again.body


@pytest.mark.parametrize("request_id", ["", "x" * 257, "a\tb"])
def test_a_bad_id(server, request_id):
    problem(post(server, NEW, request_id), 42208)


def test_a_create_is_not_done_twice_around_a_restart(tmp_path, fresh):
    request = fresh()
    with ServerProcess(tmp_path / "data") as server:
        first = post(server, NEW, request)
        many = post(server, [NEW, NEW], f"{request}m", "/v1/intents/batch")
        server.kill()
        server.start()
        again = post(server, NEW, request)
        assert again.status in (200, 201) and again.json["intentId"] == first.json["intentId"]
        repeated = post(server, [NEW, NEW], f"{request}m", "/v1/intents/batch")
        assert [item["intent"]["intentId"] for item in repeated.json["items"]] == [
            item["intent"]["intentId"] for item in many.json["items"]
        ]


def test_a_change_is_not_refused_when_repeated_around_a_restart(tmp_path, fresh):
    """Whoever did not hear the answer asks again, and must not be told that it is too late."""
    with ServerProcess(tmp_path / "data") as server:
        id = server.create()["intentId"]
        request = fresh()
        first = post(server, {}, request, f"/v1/intents/{id}/cancel")
        server.kill()
        server.start()
        again = post(server, {}, request, f"/v1/intents/{id}/cancel")
        assert first.status == again.status == 200, again.body
        assert again.json["status"] == "CANCELED"


def test_a_trigger_is_not_done_twice_around_a_restart(tmp_path, fresh):
    with ServerProcess(tmp_path / "data") as server:
        rule = {"everyMs": 3_600_000, "intent": {"stream": {"name": "s"}}}
        assert server.ask("PUT", "/v1/schedules/hourly", rule).status == 200
        request = fresh()
        first = post(server, {}, request, "/v1/schedules/hourly/trigger")
        server.kill()
        server.start()
        again = post(server, {}, request, "/v1/schedules/hourly/trigger")
        assert first.status == again.status == 201, again.body
        assert again.json["intentId"] == first.json["intentId"]
        assert server.ask("GET", "/v1/schedules/hourly").json["made"] == 1
