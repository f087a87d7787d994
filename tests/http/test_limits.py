"""Limits: what is too large (413) and what is too much (429), with a wait that is worth waiting."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from urllib.parse import urlsplit

import pytest

from tests.http.checks import problem
from tests.http.life import now_s
from tests.http.raw import connected, request
from tests.http.server import ServerProcess

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server that holds little."""
    with ServerProcess(
        tmp_path_factory.mktemp("small") / "data",
        server__request_bytes_max=20_000,
        server__requests_max=3,
        intents__payload_bytes_max=1_000,
        limits__pending_max=40,
        limits__lane_pending_max=10,
        limits__entity_pending_max=3,
        limits__entities_max=4,
    ) as server:
        yield server


def test_a_large_body(small):
    problem(small.ask("POST", "/v1/intents/batch", b"[" + b" " * 20_000 + b"]"), 41301)
    problem(small.ask("POST", "/v1/intents", {**NEW, "payload": "x" * 1_000}), 41301)


def test_a_large_body_in_pieces_of_unknown_length(small):
    place = urlsplit(small.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    connection.request("POST", "/v1/intents", iter([b"x" * 9_000] * 3), encode_chunked=True,
                       headers={"transfer-encoding": "chunked"})  # fmt: skip
    answer = connection.getresponse()
    assert answer.status == 413 and json.loads(answer.read())["errorCode"] == 41301
    connection.close()


def test_a_full_lane(small):
    """FLAWS 14: limits hold under a burst, and what was refused is not there."""
    answers = []

    def create(number):
        answers.append(_patient(small, {"delayMs": 9_000_000, "task": {"name": "t", "queue": "narrow"}}))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answer.status for answer in answers) == [201] * 10 + [429] * 6
    refused = next(answer for answer in answers if answer.status == 429)
    problem(refused, 42902)
    made = [answer.json["intentId"] for answer in answers if answer.status == 201]
    assert small.ask("POST", f"/v1/intents/{made[0]}/cancel").status == 200
    assert _patient(small, {"delayMs": 9_000_000, "task": {"name": "t", "queue": "narrow"}}).status == 201
    for id in made[1:]:
        small.ask("POST", f"/v1/intents/{id}/cancel")


def _patient(server, body):
    """Create; the limit of requests under way is not what is asked about."""
    while True:
        answer = server.ask("POST", "/v1/intents", body)
        if answer.status != 429 or answer.json["errorCode"] != 42900:
            return answer


def test_a_full_entity(small):
    """Messages that are due count; those of the future do not wait for anybody yet."""
    entity = {"type": "cart", "id": "1", "message": "m"}

    def send(id="1"):
        return small.ask("POST", "/v1/intents", {"delayMs": 0, "entity": {**entity, "id": id}})

    answers = [send() for _ in range(4)]
    assert [answer.status for answer in answers] == [201, 201, 201, 429]
    problem(answers[-1], 42903)
    others = [send(str(number)) for number in range(2, 6)]
    assert [answer.status for answer in others] == [201, 201, 201, 429]
    problem(others[-1], 42903)
    for answer in (*answers[:3], *others[:3]):
        small.ask("POST", f"/v1/intents/{answer.json['intentId']}/cancel")


def test_a_lane_that_fills_within_a_batch(small):
    """What fits is taken, the rest says so item by item."""
    body = small.ask(
        "POST", "/v1/intents/batch", [{"delayMs": 9_000_000, "task": {"name": "t", "queue": "b"}}] * 13
    ).json
    assert [item["status"] for item in body["items"]] == [201] * 10 + [429] * 3
    assert {item["error"]["errorCode"] for item in body["items"] if "error" in item} == {42902}
    for item in body["items"][:10]:
        small.ask("POST", f"/v1/intents/{item['intent']['intentId']}/cancel")


def test_a_full_engine(small):
    """A batch that does not fit is refused as a whole; singles are taken up to the limit."""
    before = sum(1 for _ in _fill(small))
    assert 0 < before <= 40
    problem(small.ask("POST", "/v1/intents/batch", [NEW] * 2), 42900)
    refused = problem(small.ask("POST", "/v1/intents", NEW), 42900)
    assert "40" in refused["message"]


def _fill(server):
    """Create until there is no more room."""
    for number in range(60):
        answer = server.ask(
            "POST", "/v1/intents", {"delayMs": 9_000_000, "stream": {"name": f"s{number // 8}"}}
        )
        if answer.status != 201:
            return
        yield answer.json["intentId"]


def test_requests_without_their_bodies_do_not_block_others(small):
    """As many as there may be requests, and then some; what they ask for has not begun."""
    with contextlib.ExitStack() as open_ones:
        for _ in range(10):
            connection = open_ones.enter_context(connected(small))
            connection.sendall(request("POST", "/v1/intents", "Content-Length: 100") + b"{")
        found = {small.ask("GET", "/v1/intents/none").status for _ in range(20)}
        assert found == {404}


def test_a_tier_that_cannot_keep_its_bound(tmp_path, hooks, fresh):
    """New callbacks of a late tier are refused, with a wait; other tiers are taken."""
    path = fresh()
    url = hooks.hold(path)
    one_each = {f"tiers__{tier}": 1 for tier in ("ultra", "fast", "high", "standard", "economy")}
    with ServerProcess(tmp_path / "data", **one_each) as server:
        late = [{"executeAt": now_s(-4_000), "callback": {"url": url}, "precisionTier": "ULTRA"}] * 30
        assert server.ask("POST", "/v1/intents/batch", late).json["created"] == 30
        hooks.take(path)
        refused = server.ask("POST", "/v1/intents", {**late[0], "executeAt": None, "delayMs": 0})
        body = problem(refused, 42900)
        assert "ULTRA" in body["message"] and body["details"]["retryAfterMs"] > 0
        other = {"delayMs": 0, "callback": {"url": url}, "precisionTier": "ECONOMY"}
        assert server.ask("POST", "/v1/intents", other).status == 201
        hooks.let_go(path)


def test_a_full_disk(tmp_path):
    """New work is refused as long as the room kept back is not there; nothing else is."""
    with ServerProcess(tmp_path / "data", log__disk_reserve_bytes=2**50) as server:
        body = problem(server.ask("POST", "/v1/intents", NEW), 50305)
        assert body["retryable"]
        problem(server.ask("GET", "/v1/intents/none"), 40401)


def test_unread_pages_are_refused_before_they_fill_the_memory(tmp_path):
    """Each is some megabytes; the connections stay until their time is over."""
    large = {"delayMs": 3_600_000, "stream": {"name": "nobody"}, "payload": "x" * 15_000}
    with ServerProcess(tmp_path / "data") as server, contextlib.ExitStack() as stack:
        assert server.ask("POST", "/v1/intents/batch", [large] * 500).json["created"] == 500
        statuses: list[bytes] = []
        while b"HTTP/1.1 429" not in statuses:
            assert len(statuses) < 60, "half of 256 MiB is less than these"
            connection = stack.enter_context(connected(server))
            connection.sendall(request("GET", "/v1/intents?limit=500"))
            statuses.append(connection.recv(12))
        assert len(statuses) > 10 and server.ask("GET", "/health").status == 200
        stack.close()
        assert _patient(server, large).status == 201
