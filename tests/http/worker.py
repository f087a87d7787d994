"""A worker over HTTP: claims, settles and extends, and can wait or disappear on a connection of its own."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.http.checks import problem
from tests.http.raw import connected, read, request
from tests.http.server import Reply, ServerProcess


class HttpWorker:
    """One consumer of one queue (or `streams/NAME`, `entities/TYPE`)."""

    def __init__(
        self,
        server: ServerProcess,
        queue: str,
        consumer: str = "worker",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.server = server
        self.consumer = consumer
        self.headers = dict(headers or {})
        self._path = f"/v1/{queue if '/' in queue else f'queues/{queue}'}"

    def ask(self, verb: str, **fields: Any) -> Reply:
        body = {"consumer": self.consumer, **fields}
        return self.server.ask("POST", f"{self._path}/{verb}", body, self.headers)

    def claim(self, most: int = 1, wait_ms: int = 20_000) -> list[Any]:
        answer = self.ask("claim", max=most, waitMs=wait_ms)
        assert answer.status == 200, answer.body
        return list(answer.json["deliveries"])

    def one(self, wait_ms: int = 20_000) -> Any:
        [delivery] = self.claim(1, wait_ms)
        return delivery

    def settle(self, *outcomes: Any) -> list[bool]:
        """Which of them counted."""
        answer = self.ask("settle", outcomes=outcomes)
        assert answer.status == 200, answer.body
        counted = [each["counted"] for each in answer.json["results"]]
        assert (answer.json["counted"], answer.json["stale"]) == (sum(counted), counted.count(False))
        return counted

    def extend(self, *deliveries: Any) -> list[bool]:
        """Which of them it still holds."""
        answer = self.ask("extend", deliveries=[key(each) for each in deliveries])
        assert answer.status == 200, answer.body
        return [each["held"] for each in answer.json["results"]]

    def refused(self, verb: str, code: int, **fields: Any) -> Any:
        return problem(self.ask(verb, **fields), code)

    @contextmanager
    def waiting(self, most: int = 1, wait_ms: int = 30_000) -> Iterator[socket.socket]:
        """A claim that waits on a connection of its own."""
        body = json.dumps({"consumer": self.consumer, "max": most, "waitMs": wait_ms}).encode()
        headers = [f"{name}: {value}" for name, value in self.headers.items()]
        with connected(self.server) as connection:
            connection.sendall(request("POST", f"{self._path}/claim", *headers, body=body))
            yield connection


def key(delivery: Any) -> Any:
    return {"intentId": delivery["intentId"], "delivery": delivery["delivery"]}


def done(delivery: Any, **more: Any) -> Any:
    return {**key(delivery), "outcome": "done", **more}


def answered(connection: socket.socket) -> list[Any]:
    """The deliveries of a claim that waited."""
    [answer] = read(connection, 1)
    assert answer.status == 200, answer.body
    return list(answer.json["deliveries"])
