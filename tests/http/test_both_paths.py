"""The same request through the fast path and through the router: thousands of pairs with equal responses.

The fast path takes a request only if it arrives at once. So each request is sent in one packet, and again
with its last byte in a second packet.
"""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from duetime.api.access import tokens
from tests.http.raw import answers, connected
from tests.http.server import ServerProcess

PAIRS = 2_000
ROLES = ("admin", "submit", "read", "worker")
# What differs by nature: ids and times. The rest must be the same, byte by byte.
OWN = re.compile(rb"[0-9a-f]{11}-[0-9a-f]{8}-[0-9a-f]+|\d{4}-\d\d-\d\dT[0-9:.]+Z")


@pytest.fixture(scope="module", params=["open", "tokens"])
def door(request, tmp_path_factory) -> Iterator[tuple[ServerProcess, list[str]]]:
    folder = tmp_path_factory.mktemp("ways") / "data"
    known = [] if request.param == "open" else [tokens.new(folder, role, role) for role in ROLES]
    with ServerProcess(folder, server__request_bytes_max=4_096, server__hosts="duetime.example") as server:
        yield server, known


class Dice:
    """Makes requests, most of them nearly right."""

    def __init__(self, seed: int, known: list[str]) -> None:
        self._random = random.Random(seed)
        self._known = known
        self._number = 0

    def request(self) -> bytes:
        headers = self._hosts() + self._types() + self._token() + self._browser() + self._more()
        body = self._body()
        if self._one_in(15):
            headers.append(b"Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, self._trailer()) if body else b"0\r\n\r\n"
        else:
            headers.append(b"Content-Length: %d" % len(body))
        self._random.shuffle(headers)
        path = self._often(b"/v1/intents", b"/v1/intents?brief=true", b"/v1/intents/", b"/v1/intents?")
        method = self._often(b"POST", b"PUT", b"GET")
        return b"\r\n".join([b"%b %b HTTP/1.1" % (method, path), *headers, b"", b""]) + body

    def _one_in(self, count: int) -> bool:
        return self._random.randrange(count) == 0

    def _often(self, usual: Any, *others: Any) -> Any:
        return self._random.choice(others) if others and self._one_in(20) else usual

    def _hosts(self) -> list[bytes]:
        usual = self._random.choice([b"localhost", b"127.0.0.1:7928", b"duetime.example", b"[::1]:1"])
        host = self._often(usual, b"evil.example", b"", b"localhost:x", b"LOCALHOST", b"duetime.example.")
        return [b"%b: %b" % (self._often(b"Host", b"HOST", b"hosT"), host)] * self._often(1, 0, 2)

    def _types(self) -> list[bytes]:
        if self._one_in(4):
            return []
        kind = self._often(
            b"application/json", b"Application/JSON", b"application/json; charset=utf-8",
            b"application/a+json", b"text/plain",
            b"application/x-www-form-urlencoded", b"application/x-ndjson", b"", b"json",
        )  # fmt: skip
        return [b"Content-Type: " + kind] * self._often(1, 2)

    def _token(self) -> list[bytes]:
        if not self._known:
            return [b"X-Duetime-Token: any"] if self._one_in(10) else []
        token = self._often(self._random.choice(self._known[:2]), *self._known, "wrong", "").encode()
        scheme = self._often(b"Bearer ", b"bearer ", b"Basic ", b"Bearer")
        field = self._random.choice([b"X-Duetime-Token: " + token, b"Authorization: " + scheme + token])
        return [field] * self._often(1, 0, 2)

    def _browser(self) -> list[bytes]:
        found = []
        if self._one_in(15):
            site = self._random.choice([b"same-origin", b"none", b"same-site", b"cross-site", b""])
            found.append(b"Sec-Fetch-Site: " + site)
        if self._one_in(15):
            place = self._random.choice(
                [b"localhost", b"evil.example", b"duetime.example", b"127.0.0.1:7928"]
            )
            found.append(
                b"Origin: " + self._random.choice([b"null", b"http://" + place, b"https://" + place])
            )
        return found

    def _more(self) -> list[bytes]:
        odd = [
            b"Cookie: a=b", b"Accept: */*", b"User-Agent: x", b"Connection: keep-alive", b"X-Empty:",
            b"Upgrade: h2c", b"Connection: Upgrade", b"Expect: 100-continue", b"Connection: close",
            b"If-Match: 3",
        ]  # fmt: skip
        return self._random.sample(odd, self._random.randrange(3)) if self._one_in(4) else []

    def _trailer(self) -> bytes:
        return (
            b"X-Duetime-Token: %b\r\n" % self._known[0].encode() if self._known and self._one_in(2) else b""
        )

    def _body(self) -> bytes:
        self._number += 1
        if self._one_in(12):
            odd = [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b'{"a":1}', b"x" * 4_097, b" " * 4_096]
            return self._random.choice(odd)
        new: dict[str, Any] = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}
        new |= self._often(
            self._random.choice([{}, {"payload": {"a": 1}}, {"tags": {"a": "b"}}, {"payload": "é"}]),
            {"delayMs": -1}, {"delayMs": "soon"}, {"deadline": "1999-01-01T00:00:00Z"}, {"stream": None},
            {"task": {"name": "t"}}, {"precisionTier": "SLOW"}, {"unknown": 1}, {"ackLevel": "REPLICATED"},
            {"callback": {"url": "ftp://x"}}, {"intentId": "a b"}, {"executeAt": "2001-01-01T00:00:00Z"},
        )  # fmt: skip
        return json.dumps(new, ensure_ascii=self._one_in(2)).encode()


def exchange(server: ServerProcess, sent: list[bytes]) -> list[tuple[int, bytes, bytes]]:
    """The answers to one request that is sent in these pieces, with what differs by nature made alike."""
    with connected(server) as connection:
        for number, piece in enumerate(sent):
            if number:
                server.ask("GET", "/health/live")  # by now it has read what came
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        data = b""
        while more := connection.recv(65_536):
            data += more
    data = data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    found, left = answers(data)
    assert not left, left
    masked = []
    for each in found:
        headers = sorted(b"%b: %b" % (name.encode(), value.encode()) for name, value in each.headers.items())
        masked.append((each.status, OWN.sub(b"#", b"\n".join(headers)), OWN.sub(b"#", each.body)))
    return masked


def test_both_ways_give_the_same(door):
    server, known = door
    for host in ("localhost", "127.0.0.1:7928", "duetime.example", "[::1]:1"):  # names that are known by now
        server.ask("GET", "/health/live", None, {"host": host})
    dice = Dice(4_711, known)
    statuses: dict[int, int] = {}
    for number in range(PAIRS // 2):
        sent = dice.request()
        short, long = exchange(server, [sent]), exchange(server, [sent[:-1], sent[-1:]])
        assert short == long, (number, sent)
        assert len(short) == 1, (number, sent, short)
        statuses[short[0][0]] = statuses.get(short[0][0], 0) + 1
    wanted = {201, 400, 403, 404, 405, 413, 415, 422} | ({401} if known else set())
    assert wanted <= statuses.keys(), statuses
    assert statuses[201] > PAIRS // 20, statuses
