"""Many at once: the same key, the same id, the same request; a cancel or a patch against the delivery."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

import pytest

from duetime.clock import SystemClock
from tests.e2e.hook import Hook
from tests.http.listener import Listener, wait_until_ended
from tests.http.server import Reply, ServerProcess

MANY = 50
HOUR_MS = 3_600_000
T = TypeVar("T")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("races") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with Hook() as hook:
        yield hook


def at_once(*calls: Callable[[], T]) -> list[T]:
    """All of them together, each over a connection of its own; their answers in order."""
    answers: dict[int, T] = {}
    barrier = threading.Barrier(len(calls))

    def run(number: int) -> None:
        barrier.wait(30)
        answers[number] = calls[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [answers[number] for number in range(len(calls))]


def post(server: ServerProcess, body: Any, **headers: str) -> Callable[[], Reply]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: server.ask("POST", "/v1/intents", body, named)


def test_one_key_makes_one_intent(server, hook):
    body = {"delayMs": 0, "callback": {"url": hook.url("plain")}, "payload": {"mark": "key"}}
    answers = at_once(*[post(server, {**body, "onDuplicate": "return"}, Idempotency_Key="one")] * MANY)
    assert Counter(answer.status for answer in answers) == {201: 1, 200: MANY - 1}
    (id,) = {answer.json["intentId"] for answer in answers}
    with Listener(server) as events:
        events.when(lambda: server.ask("GET", f"/v1/intents/{id}").json["status"] == "ACKED")
    assert [arrival.id for arrival in hook.arrivals if arrival.mark == "key"] == [id]


def test_one_id_is_made_once(server):
    body = {"delayMs": HOUR_MS, "stream": {"name": "n"}, "intentId": "own"}
    answers = at_once(*[post(server, {**body, "payload": number}) for number in range(MANY)])
    assert Counter(answer.status for answer in answers) == {201: 1, 409: MANY - 1}
    assert {answer.json.get("errorCode", 0) for answer in answers} == {0, 40904}
    made = next(answer.json["payload"] for answer in answers if answer.status == 201)
    assert server.ask("GET", "/v1/intents/own").json["payload"] == made


def test_a_request_id_is_executed_once_and_refused_for_another_request(server):
    body = {"delayMs": HOUR_MS, "stream": {"name": "n"}}
    same = [post(server, body, X_Duetime_Request_Id="r")] * (MANY // 2)
    other = [post(server, {**body, "payload": 1}, X_Duetime_Request_Id="r")] * (MANY // 2)
    answers = at_once(*same, *other)
    assert Counter(answer.status for answer in answers) == {201: MANY // 2, 409: MANY // 2}
    assert len({answer.json["intentId"] for answer in answers if answer.status == 201}) == 1


def test_an_item_of_a_batch_is_not_mistaken_for_another_request(server):
    body = {"delayMs": HOUR_MS, "stream": {"name": "n"}}
    many = server.ask("POST", "/v1/intents/batch", [body], {"X-Duetime-Request-Id": "b"}).json
    for name in ("b/0", "b0", "b 0"):
        one = post(server, {**body, "payload": 2}, X_Duetime_Request_Id=name)()
        assert one.status == 201 and one.json["intentId"] != many["items"][0]["intent"]["intentId"]


def test_fired_by_many_it_is_delivered_once(server, hook):
    server.create(
        intentId="fire", delayMs=HOUR_MS, callback={"url": hook.url("slow")}, payload={"mark": "fire"}
    )
    with Listener(server) as events:
        answers = at_once(*[lambda: server.ask("POST", "/v1/intents/fire/fire-now")] * 20)
        assert Counter(answer.status for answer in answers) == {200: 1, 422: 19}
        events.reached("fire", "ACKED")
    assert len([arrival for arrival in hook.arrivals if arrival.mark == "fire"]) == 1


def _soon(server: ServerProcess, hook: Hook, kind: str, count: int) -> list[str]:
    """Intents that become due over the next half second."""
    now_ms = SystemClock().now_ms()
    ids = [f"{kind}{number}" for number in range(count)]
    news = [
        {
            "intentId": id,
            "executeAt": (now_ms + 300 + 5 * number) / 1000,
            "callback": {"url": hook.url("plain")},
            "precisionTier": "FAST",
            "payload": {"mark": id},
        }
        for number, id in enumerate(ids)
    ]
    assert server.ask("POST", "/v1/intents/batch", news).json["created"] == count
    return ids


def test_cancel_against_delivery(server, hook):
    ids = _soon(server, hook, "cancel", 100)
    answers = {id: server.ask("POST", f"/v1/intents/{id}/cancel") for id in ids}
    wait_until_ended(server, "&tier=FAST")
    came = Counter(arrival.mark for arrival in hook.arrivals)
    for id, answer in answers.items():
        status = server.ask("GET", f"/v1/intents/{id}").json["status"]
        if answer.status == 200:
            assert status == "CANCELED"
            if answer.json["delivery"] == 0:
                assert came[id] == 0, f"{id} was cancelled before it was handed out, and came"
        else:
            assert answer.json["errorCode"] == 42204 and status == "ACKED" and came[id] == 1


def test_patch_against_delivery(server, hook):
    ids = _soon(server, hook, "patch", 100)
    later_s = (SystemClock().now_ms() + 2_500) / 1000
    answers = {id: server.ask("PATCH", f"/v1/intents/{id}", {"executeAt": later_s}) for id in ids}
    wait_until_ended(server, "&tier=FAST")
    came = {arrival.mark: arrival for arrival in hook.arrivals}
    assert all(
        count == 1 for mark, count in Counter(a.mark for a in hook.arrivals).items() if mark in answers
    )
    for id, answer in answers.items():
        if answer.status == 200:
            assert came[id].at_ms >= round(later_s * 1000), f"{id} came before its new time"
            assert datetime.fromisoformat(came[id].execute_at).timestamp() == pytest.approx(
                later_s, abs=0.001
            )
        else:
            assert answer.json["errorCode"] == 42211 and came[id].at_ms < round(later_s * 1000)
    assert {answer.status for answer in answers.values()} <= {200, 422}


def test_a_webhook_to_the_server_itself(server):
    inner = {"intentId": "inner", "delayMs": HOUR_MS, "stream": {"name": "n"}}
    headers = {"content-type": "application/json"}
    with Listener(server, "?status=ACKED,DEAD_LETTERED") as events:
        server.create(
            intentId="outer",
            delayMs=0,
            callback={"url": f"{server.url}/v1/intents", "headers": headers, "body": inner},
        )
        events.until(lambda seen: seen.data.get("intentId") == "outer")
    outer = server.ask("GET", "/v1/intents/outer").json
    assert outer["status"] == "ACKED" and outer["result"]["intentId"] == "inner"
    assert server.ask("GET", "/v1/intents/inner").status == 200
