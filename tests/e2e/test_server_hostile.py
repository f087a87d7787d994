"""Clients that mean harm, or are broken: the server stays up, small and useful to everybody else."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.http.server import ServerProcess
from tests.worker.waiting import until

HOUR_MS = 3_600_000
NEW = {"delayMs": HOUR_MS, "stream": {"name": "nobody"}}
MB = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("hostile") / "data") as server:
        yield server
        assert server.stop() == 0
        assert not [line for line in server.words if "Traceback" in line or "Bug " in line], server.words


def connect(server: ServerProcess) -> socket.socket:
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname, place.port), timeout=30)


def until_closed(sock: socket.socket) -> bytes:
    """What came before the other side closed."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(65_536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nx: " + b"a" * 20 * MB,
        b"GET /" + b"a" * 20 * MB,
        b"GET / HTTP/1.1\r\n" + b"x: " + b"a\r\nx: " * 4 * MB,
        b"POST /v1/intents HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"a" * 20 * MB,
        b"POST /v1/intents HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"a" * 20 * MB,
    ],
    ids=["header", "path", "headers", "trailer", "extension"],
)
def test_a_head_that_never_ends(server, head):
    before = server.memory_bytes()
    with connect(server) as sock, contextlib.suppress(ConnectionError):
        sock.sendall(head)
        answer = until_closed(sock)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer[:100]
    assert server.memory_bytes() < before + 8 * MB
    assert server.ask("POST", "/v1/intents", NEW).status == 201


def test_usual_heads_are_not_too_large(server):
    """Cookies and tokens of some kilobytes, and many requests behind each other in one piece."""
    assert server.ask("POST", "/v1/intents", NEW, {"cookie": "c" * 16_000}).status == 201
    body = b'{"delayMs":3600000,"stream":{"name":"n"},"payload":"%b"}' % (b"x" * 1_000)
    one = b"POST /v1/intents HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with connect(server) as sock:
        sock.sendall(one * 100)
        answers = b""
        while answers.count(b"HTTP/1.1 201") < 100:
            part = sock.recv(65_536)
            assert part, answers[-500:]
            answers += part


def test_a_thousand_idle_connections(server):
    idle = [connect(server) for _ in range(1_000)]
    try:
        assert server.ask("POST", "/v1/intents", NEW).status == 201
        assert server.ask("GET", "/health/ready").status == 200
    finally:
        for sock in idle:
            sock.close()


def test_more_connections_than_files(tmp_path, monkeypatch):
    """Idle connections leave the log its files: the engine went down when it could not open a segment."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nulimit -n 1100\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("tests.http.server.sys.executable", str(python))
    small = {"log__segment_bytes_max": 1 << 20, "log__history_bytes": 0, "store__checkpoint_ms": 100}
    with ServerProcess(tmp_path / "data", **small) as server:
        netloc = urlsplit(server.url).netloc
        mine = http.client.HTTPConnection(netloc, timeout=30)
        mine.request("GET", "/health/live")
        mine.getresponse().read()
        idle = [connect(server) for _ in range(1_300)]
        files = server.open_files()
        assert files < 750, "most of them were closed at once"
        for _ in range(20):
            many = [{**NEW, "payload": "x" * 2_000}] * 50
            mine.request("POST", "/v1/intents/batch", json.dumps(many))
            answer = mine.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
        for sock in idle:
            sock.close()
        mine.close()
        while True:  # those that were closed make room again
            with contextlib.suppress(OSError):
                assert server.ask("POST", "/v1/intents", NEW).status == 201
                break
        assert server.stop() == 0


@pytest.mark.parametrize("line", ["GET /health", "GET /", "POST /v1/intents/batch", "POST /nowhere"])
def test_bodies_that_never_end(tmp_path, line):
    """Of strangers, 150 with 8 MiB each, all but their last byte. A new server: memory once had stays."""
    piece = b"x" * MB
    with ServerProcess(tmp_path / "data") as server, contextlib.ExitStack() as held:
        before = server.memory_bytes()
        for _ in range(150):
            sock = held.enter_context(connect(server))
            with contextlib.suppress(ConnectionError):
                sock.sendall(b"%b HTTP/1.1\r\nhost: localhost\r\n" % line.encode())
                sock.sendall(b"content-length: %d\r\n\r\n" % (8 * MB))
                for _ in range(7):
                    sock.sendall(piece)
                sock.sendall(piece[:-1])
        assert server.ask("GET", "/health/live").status == 200
        assert server.memory_bytes() < before + 300 * MB
        held.close()
        until(lambda: server.ask("POST", "/v1/intents", NEW).status == 201)  # what they held is free again


def test_half_closed(server):
    """Who closes its side after asking has asked; nothing breaks."""
    body = b'{"delayMs":3600000,"stream":{"name":"n"},"intentId":"half"}'
    with connect(server) as sock:
        sock.sendall(
            b"POST /v1/intents HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        sock.shutdown(socket.SHUT_WR)
        until_closed(sock)
    with connect(server) as sock:  # in the middle of the body
        sock.sendall(b"POST /v1/intents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 500\r\n\r\n" + body)
        sock.shutdown(socket.SHUT_WR)
        until_closed(sock)
    assert server.ask("GET", "/v1/intents/half").status in (200, 404)
    assert server.ask("POST", "/v1/intents", NEW).status == 201


def test_listeners_that_never_read(server):
    """Events that nobody takes are not piled up for them, and nobody waits for them."""
    deaf = []
    for _ in range(20):
        sock = connect(server)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.sendall(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        deaf.append(sock)
    before = server.memory_bytes()
    many = [{**NEW, "payload": "x" * 500}] * 500
    for _ in range(30):
        assert server.ask("POST", "/v1/intents/batch", many).json["created"] == 500
    assert server.memory_bytes() < before + 150 * MB
    for sock in deaf:
        sock.close()
    assert server.ask("POST", "/v1/intents", NEW).status == 201


def test_requests_that_trickle_in(server):
    """A hundred that send their bodies byte by byte do not keep others from being served."""
    slow = []
    for _ in range(100):
        sock = connect(server)
        sock.sendall(b"POST /v1/intents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
        slow.append(sock)
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(server.ask("POST", "/v1/intents", NEW).status))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for sock in slow:
        sock.sendall(b" ")
    for thread in threads:
        thread.join(30)
    assert answers == [201] * 10
    for sock in slow:
        sock.close()
