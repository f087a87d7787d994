"""The fast path of single intents gives the same responses as the router."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.http.checks import problem
from tests.http.server import Reply, ServerProcess

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}
OWN = ("intentId", "executeAt", "createdAt", "updatedAt", "nextAttemptAt")


def by_router(name: str) -> str:
    """A header with which a request does not take the fast path."""
    return f"X-Duetime-Request-Id: {name}"


def request(body: bytes, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"POST /v1/intents HTTP/{version}", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join((*lines, "", "")).encode() + body


@contextmanager
def connected(server) -> Iterator[socket.socket]:
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as connection:
        yield connection


def read(connection: socket.socket, count: int) -> list[Reply]:
    """This many responses, and nothing after them."""
    data = b""
    found: list[Reply] = []
    while len(found) < count:
        head, separator, rest = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if separator and length is not None and len(rest) >= int(length[1]):
            status, *lines = head.decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            found.append(Reply(int(status.split()[1]), headers, rest[: int(length[1])]))
            data = rest[int(length[1]) :]
        else:
            more = connection.recv(65_536)
            assert more, data
            data += more
    assert not data
    return found


def answers(connection: socket.socket, count: int) -> list[tuple[int, dict]]:
    """This many responses: status and body of each."""
    return [(answer.status, answer.json) for answer in read(connection, count)]


def post(server, new: dict | bytes, *headers: str) -> Reply:
    """In one packet, for the fast path: a request whose head comes first goes to the router."""
    with connected(server) as connection:
        connection.sendall(request(new if isinstance(new, bytes) else json.dumps(new).encode(), *headers))
        return read(connection, 1)[0]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"payload": {"a": [1, None, "é"]}},
        {"deadline": "2038-01-01T00:00:00Z", "tags": {"a": "b"}, "priority": 5},
        {"fairnessKey": "tenant", "limits": [{"key": "k", "rate": "5/s"}]},
    ],
    ids=["plain", "payload", "terms", "flow"],
)
def test_both_paths_give_the_same_response(server, fresh, more):
    short = post(server, {**NEW, **more})
    long = post(server, {**NEW, **more}, by_router(fresh()))
    assert (short.status, long.status) == (201, 201)
    assert set(short.headers) == set(long.headers)
    assert short.headers["location"] == f"/v1/intents/{short.json['intentId']}"
    shown = server.ask("GET", short.headers["location"])
    assert shown.json == short.json and shown.headers["etag"] == short.headers["etag"]
    assert short.json.keys() == long.json.keys()
    same = short.json.keys() - set(OWN)
    assert {name: short.json[name] for name in same} == {name: long.json[name] for name in same}


def test_a_duplicate_gets_the_existing_intent(server, fresh):
    new = {**NEW, "unique": {"key": fresh(), "until": "START"}}
    first, second = (post(server, new) for _ in range(2))
    assert (first.status, second.status) == (201, 200)
    assert second.headers["idempotent-replayed"] == "true" and "location" not in second.headers
    assert second.json["intentId"] == first.json["intentId"]


def test_many_in_one_packet_are_answered_in_order(server, fresh):
    ids = [fresh() for _ in range(30)]
    bodies = [json.dumps({**NEW, "intentId": id}).encode() for id in ids]
    bodies[7] = b"{"
    # Every third one goes to the router.
    sent = [request(body, *([by_router(fresh())] if n % 3 == 2 else [])) for n, body in enumerate(bodies)]
    with connected(server) as connection:
        connection.sendall(b"".join(sent))
        found = answers(connection, len(ids))
    assert found.pop(7)[0] == 400
    del ids[7]
    assert [(status, intent["intentId"]) for status, intent in found] == [(201, id) for id in ids]


def test_a_body_that_comes_in_pieces(server, fresh):
    new = {**NEW, "intentId": fresh(), "payload": "x" * 100_000}
    whole = request(json.dumps(new).encode())
    with connected(server) as connection:
        for cut in (10, 60, 200, len(whole)):
            connection.sendall(whole[:cut])
            whole = whole[cut:]
            server.ask("GET", "/health/live")  # by now it has read what came
        assert answers(connection, 1)[0][0] == 201
    assert server.ask("GET", f"/v1/intents/{new['intentId']}").status == 200


def test_a_chunked_body(server, fresh):
    body = json.dumps({**NEW, "intentId": fresh()}).encode()
    chunks = b"".join(b"1\r\n%b\r\n" % body[n : n + 1] for n in range(len(body))) + b"0\r\n\r\n"
    head = b"POST /v1/intents HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connected(server) as connection:
        connection.sendall(head + chunks)
        assert answers(connection, 1)[0][0] == 201


@pytest.mark.parametrize(("version", "headers"), [("1.0", []), ("1.1", ["Connection: close"])])
def test_the_connection_is_closed_if_the_client_wants_it(server, version, headers):
    with connected(server) as connection:
        connection.sendall(request(json.dumps(NEW).encode(), *headers, version=version))
        assert answers(connection, 1)[0][0] == 201
        assert connection.recv(1) == b""


def test_an_intent_is_created_also_if_the_client_has_gone(server, fresh):
    ids = [fresh() for _ in range(20)]
    for id in ids:
        with connected(server) as connection:
            connection.sendall(request(json.dumps({**NEW, "intentId": id, "ackLevel": "DURABLE"}).encode()))
    wanted = set(ids)
    while wanted:
        wanted -= {id for id in wanted if server.ask("GET", f"/v1/intents/{id}").status == 200}
    assert post(server, NEW).status == 201, "and the next request is not blocked"


def test_a_refusal_by_the_engine_is_the_same_on_both_paths(server, fresh):
    new = {**NEW, "intentId": fresh()}
    assert post(server, new).status == 201
    short = post(server, new)
    long = post(server, new, by_router(fresh()))
    assert short.status == 409 and short.headers["content-type"] == "application/problem+json"
    assert short.json == long.json and set(short.headers) == set(long.headers)


def test_a_request_that_is_too_large_is_refused_on_both_paths(tmp_path):
    new = json.dumps(NEW).encode()
    with ServerProcess(tmp_path / "data", server__request_bytes_max=5_000) as server:
        assert post(server, new.ljust(5_000)).status == 201
        assert problem(post(server, new.ljust(5_001)), 41301)
