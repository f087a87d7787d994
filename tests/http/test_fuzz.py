"""Random, broken and cut requests over real connections: never a 500, nothing secret gets out, and the server
is there afterwards."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.http.server import ServerProcess
from tests.http.test_auth import make_token

USUAL, MANY = 2_000, 10_000
ROUTES = (
    *[("POST", "/v1/intents")] * 8, *[("POST", "/v1/intents/batch")] * 4,
    *[("PATCH", "/v1/intents/known")] * 3,
    ("GET", "/v1/intents"), ("GET", "/v1/intents/known"), ("POST", "/v1/intents/known/cancel"),
    ("POST", "/v1/intents/known/fire-now"), ("POST", "/v1/intents/known/revive"),
    ("GET", "/v1/intents/known/history"), ("GET", "/v1/intents/known/why"),
    ("GET", "/v1/admin/dead-letters"), ("POST", "/v1/admin/dead-letters/revive"),
    ("POST", "/v1/admin/dead-letters/purge"), ("GET", "/v1/admin/lanes"),
    ("POST", "/v1/admin/lanes/task:x/pause"), ("POST", "/v1/admin/lanes/task:x/resume"),
    ("PATCH", "/v1/admin/tiers/FAST"), ("GET", "/v1/admin/chronoscope"), ("GET", "/v1/admin/log/segments"),
    ("GET", "/v1/admin/timeline"), ("GET", "/v1/admin/replay"), ("GET", "/v1/events"), ("GET", "/health"),
    ("GET", "/health/ready"), ("GET", "/health/deep"), ("GET", "/metrics"), ("GET", "/openapi.json"),
    ("GET", "/docs"), ("GET", "/"),
)  # fmt: skip
METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE")
WHOLE: dict[str, Any] = {
    "delayMs": 3_600_000, "intentId": "x", "deadline": "2040-01-01T00:00:00Z", "expiredAction": "DISCARD",
    "precisionTier": "HIGH", "slo": None, "callback": {"url": "http://127.0.0.1:9/", "headers": {"a": "b"}},
    "payload": {"a": [1, 2.5, "x", None]}, "priority": 5, "redelivery": {"maxAttempts": 3, "jitter": False},
    "timeoutMs": 5, "after": [], "idempotencyKey": "k", "tags": {"a": "b"}, "traceparent": "t",
    "intentIds": ["a"], "filter": {"status": "DEAD_LETTERED"}, "limit": 5, "concurrency": 50,
}  # fmt: skip
CREATE = [
    name for name in WHOLE if name not in ("callback", "intentIds", "filter", "limit", "concurrency", "slo")
]
HEADERS = (
    "X-Duetime-Request-Id", "X-Duetime-Expected-Revision", "If-Match", "Idempotency-Key", "Last-Event-ID",
    "Content-Type", "Accept", "X-Duetime-Token", "Authorization", "Expect", "X-Anything",
)  # fmt: skip
QUERIES = ("status", "tier", "queue", "task", "entity", "tag.a", "from", "to", "order", "limit", "cursor",
           "intentId", "at", "slots", "other")  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**30, -(10**19), 1e308, "", "x" * 5_000, "\u0000", "\ud800", "\U0001f600",
    [], {}, [[]], {"": ""}, "2040-01-01", "NaN", float("inf"), {"$ref": "#"}, "../../etc/passwd", "%s%n",
    "'\";--",
)  # fmt: skip


class Fuzz:
    """Makes requests out of one seed."""

    def __init__(self, seed: int, token: str) -> None:
        self.dice = random.Random(seed)
        self.token = token

    def request(self) -> bytes:
        dice = self.dice
        method, path = dice.choice(ROUTES)
        if dice.random() < 0.05:
            method = dice.choice(METHODS)
        body = self.body() if dice.random() < 0.9 else b""
        lines = [f"{method} {self.target(path)} HTTP/1.1".encode("latin-1"), b"Host: localhost"]
        if dice.random() < 0.95:
            lines.append(b"X-Duetime-Token: " + self.token.encode())
        for _ in range(dice.choice((0, 0, 1, 1, 2, 5))):
            lines.append(dice.choice(HEADERS).encode() + b": " + self.header())
        lines.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def target(self, path: str) -> str:
        dice = self.dice
        if dice.random() < 0.1:
            path += dice.choice(("/", "//", "/%00", "/%ff", "/..", "/a%2Fb", "/" + "x" * 300, "?", ";a", "%"))
        if dice.random() < 0.4:
            pairs = [f"{dice.choice(QUERIES)}={self.word()}" for _ in range(dice.choice((1, 1, 2, 3)))]
            path += "?" + "&".join(pairs)
        return path

    def word(self) -> str:
        """Something for a query: printable, perhaps escaped, perhaps wrongly."""
        dice = self.dice
        return dice.choice(
            ("", "0", "-1", "5", "9" * 40, "9" * 5_000, "x", "%ff", "%00", "%", "%zz", "ACKED", "FAST", "a/b",
             "/", "2040-01-01T00:00:00Z", "1e999", "nan", "%F0%9F%98%80", "%D9%A5", "known", "due",
             "AAAA", "=", "+")
        )  # fmt: skip

    def header(self) -> bytes:
        dice = self.dice
        kind = dice.randrange(4)
        if kind == 0:
            return bytes(dice.choice(range(0x21, 0x7F)) for _ in range(dice.choice((1, 10, 300))))
        if kind == 1:
            return bytes(dice.choice(range(0x80, 0x100)) for _ in range(dice.choice((1, 5, 50))))
        return dice.choice(
            (b"", b"1", b'"1"', b"*", b"W/", b"9" * 5_000, b"\xb2", b"1.1", b"Bearer", b"Bearer x", b"a\tb",
             b"application/json", b"application/x-ndjson", b"text/plain;;;", b"0.0", b'"""', b"-1")
        )  # fmt: skip

    def body(self) -> bytes:
        dice = self.dice
        kind = dice.randrange(6)
        if kind == 0:
            return dice.randbytes(dice.choice((1, 10, 200, 3_000)))
        whole = self.odd()
        if kind == 1:
            return whole
        if kind == 2:
            return whole[: dice.randrange(len(whole))]
        changed = bytearray(whole)
        for _ in range(dice.choice((1, 2, 10))):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed)

    def odd(self) -> bytes:
        """JSON with some fields of a real request, and odd values among them."""
        dice = self.dice
        creates = dice.random() < 0.6
        names = dice.sample(CREATE if creates else list(WHOLE), dice.randrange(1, 8))
        said = {name: WHOLE[name] for name in names}
        if creates:
            said |= {"delayMs": 3_600_000, "stream": {"name": "s"}}
        if dice.random() < 0.6:
            place = dice.choice(list(said))
            said[place] = dice.choice(ODD)
        text = json.dumps([said] * 2 if dice.random() < 0.2 else said).encode()
        return b"[" * 3_000 if dice.random() < 0.01 else text

    def broken(self) -> bytes:
        """Something that is not quite HTTP."""
        dice, whole = self.dice, self.request()
        return dice.choice(
            (
                whole[: dice.randrange(1, 60)],
                dice.randbytes(dice.choice((1, 50, 2_000))),
                whole.replace(b"HTTP/1.1", b"HTTP/9.9"),
                whole.replace(b"\r\n", b"\n"),
                whole.replace(b"Content-Length: ", b"Content-Length: -"),
                whole.replace(b"Content-Length: ", b"Content-Length: 99999999999999999999"),
                whole.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nX"),
                whole.replace(b"Host:", b"Host\x00:"),
                b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000 + b"\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            )
        )


class Wire:
    """A connection that is opened again when the server closed it."""

    def __init__(self, server: ServerProcess) -> None:
        place = urlsplit(server.url)
        self._address = (place.hostname, place.port)
        self._socket: socket.socket | None = None

    def ask(self, request: bytes) -> tuple[int, str, bytes]:
        method = request.split(b" ", 1)[0].decode()
        for _ in range(2):  # the one kept may just have been closed
            if self._socket is None:
                self._socket = socket.create_connection(self._address, timeout=30)
            try:
                self._socket.sendall(request)
                answer = http.client.HTTPResponse(self._socket, method=method)
                answer.begin()
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
                continue
            media_type = answer.headers.get("content-type", "")
            if media_type.startswith("text/event-stream"):  # it would never end
                self.close()
                return answer.status, media_type, b""
            body = answer.read()
            if answer.will_close:
                self.close()
            return answer.status, media_type, body
        return 0, "", b""

    def throw(self, junk: bytes) -> bytes:
        """Send something on a connection of its own, say that this was all, and read what comes."""
        got = b""
        with socket.create_connection(self._address, timeout=30) as own, contextlib.suppress(OSError):
            own.sendall(junk)
            own.shutdown(socket.SHUT_WR)
            while part := own.recv(65_536):
                got += part
        return got

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "data"
    token = make_token(folder, "admin")
    with ServerProcess(folder) as server:
        yield server, token


def fuzz(guarded, seed: int, count: int) -> Counter[int]:
    server, token = guarded
    made, wire, statuses = Fuzz(seed, token), Wire(server), Counter[int]()
    headers = {"X-Duetime-Token": token}
    server.ask(
        "POST", "/v1/intents", {"intentId": "known", "delayMs": 9_000_000, "stream": {"name": "s"}}, headers
    )
    for number in range(count):
        if number % 20 == 0:
            junk = made.broken()
            got = wire.throw(junk)
            assert b"Traceback" not in got and token.encode() not in got, junk
            assert not got.startswith(b"HTTP/1.1 5"), (junk, got)
            continue
        request = made.request()
        status, media_type, body = wire.ask(request)
        statuses[status] += 1
        assert status < 500, (request, status, body)
        assert b"Traceback" not in body and token.encode() not in body, request
        if status >= 400 and body and media_type == "application/problem+json":
            assert json.loads(body)["errorCode"] // 100 == status
    wire.close()
    assert server.ask("GET", "/health/ready").status == 200
    assert server.ask("POST", "/v1/intents", {"delayMs": 1, "stream": {"name": "s"}}, headers).status == 201
    words = "\n".join(server.words)
    assert "Traceback" not in words and token not in words, words[-3_000:]
    return statuses


def test_random_requests_do_not_break_the_server(guarded):
    statuses = fuzz(guarded, 1, USUAL)
    assert statuses[0] == 0, "whatever is HTTP gets an answer"
    assert {200, 201, 400, 401, 404, 405, 422} <= set(statuses), statuses


@pytest.mark.slow
def test_many_random_requests_do_not_break_the_server(guarded):
    assert sum(fuzz(guarded, 2, MANY).values()) > 9_000
