"""Strangers who open connections and say nothing: the server keeps its files, and says that it is short."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from duetime.v1 import intents_pb2
from tests.grpc.subscriber import calling
from tests.http.server import ServerProcess
from tests.worker.waiting import until

FILES, STRANGERS = 700, 1_200
NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}, "payload": "x" * 2_000}


@pytest.fixture(params=["plain", "tls"])
def small(request, tmp_path, monkeypatch) -> Iterator[tuple[ServerProcess, ssl.SSLContext | None]]:
    """A server that may open few files and needs many log segments."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nulimit -n {FILES}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("tests.http.server.sys.executable", str(python))
    settings: dict[str, object] = {
        "log__segment_bytes_max": 1 << 20,
        "log__history_bytes": 0,
        "store__checkpoint_ms": 100,
    }
    trusting = None
    if request.param == "tls":
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1")
        certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
        for part in certificate.cert_chain_pems:
            part.write_to_path(str(tmp_path / "cert.pem"), append=True)
        settings |= {"server__tls_cert": tmp_path / "cert.pem", "server__tls_key": tmp_path / "key.pem"}
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
    with ServerProcess(tmp_path / "data", **settings) as server:
        yield server, trusting


class Caller:
    """An honest client with one connection."""

    def __init__(self, server: ServerProcess, trusting: ssl.SSLContext | None) -> None:
        place = urlsplit(server.url)
        host, port = place.hostname or "", place.port
        self._http = (
            http.client.HTTPConnection(host, port, timeout=30)
            if trusting is None
            else http.client.HTTPSConnection(host, port, timeout=30, context=trusting)
        )

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        text = None if body is None else json.dumps(body)
        self._http.request(method, path, text, {"content-type": "application/json"})
        answer = self._http.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        self._http.close()


def gets_in(server: ServerProcess, trusting: ssl.SSLContext | None) -> bool:
    with contextlib.closing(Caller(server, trusting)) as newcomer:
        try:
            return newcomer.ask("GET", "/v1/intents")[0] == 200
        except (OSError, http.client.HTTPException):
            return False


def strangers(url: str) -> list[socket.socket]:
    place = urlsplit(url)
    found = []
    for _ in range(STRANGERS):
        with contextlib.suppress(OSError):
            found.append(socket.create_connection((place.hostname, place.port), timeout=30))
    return found


async def health_of(address: str) -> None:
    async with calling(address) as stub:
        await stub.Health(intents_pb2.HealthRequest(), wait_for_ready=True, timeout=60)


@pytest.mark.parametrize("port", ["http", "grpc"])
def test_silent_connections_leave_the_engine_its_files(small, port):
    server, trusting = small
    caller = Caller(server, trusting)
    assert caller.ask("GET", "/v1/intents")[0] == 200
    silent = strangers(server.url if port == "http" else server.grpc)
    segments = server.folder / "log"
    before = {each.name for each in segments.iterdir()}
    for _ in range(20):
        assert caller.ask("POST", "/v1/intents/batch", [NEW] * 50)[0] == 200
        assert caller.ask("GET", "/v1/intents")[0] == 200
    assert {each.name for each in segments.iterdir()} - before, "a new segment was made"
    assert server.open_files() < FILES // 2
    _, health = caller.ask("GET", "/health")
    (short,) = [each for each in health["anomalies"] if each["code"] == "FILES_SHORT"]
    assert health["status"] == "DEGRADED" and short["subject"] == port
    # Their time runs out, and honest newcomers get in again, while the strangers still hold on.
    until(lambda: gets_in(server, trusting))
    if port == "grpc" and trusting is None:
        asyncio.run(health_of(server.grpc))
    for each in silent:
        each.close()
    caller.close()
    assert server.stop() == 0
    assert len(server.words) < 20, "\n".join(server.words)
    assert not [line for line in server.words if "Traceback" in line], server.words
