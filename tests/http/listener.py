"""Reads a server's events (SSE) in a thread, so that tests wait for what happens instead of asking again."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.http.server import ServerProcess

WAIT_S = 20


class Seen(NamedTuple):
    """One event of the stream."""

    id: str
    event: str
    data: Any


class Listener:
    """A stream of events that is open, and everything that came over it."""

    def __init__(
        self, server: ServerProcess, query: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        place = urlsplit(server.url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._connection.connect()
        self._socket = self._connection.sock  # the connection forgets it when the answer has no end
        self._connection.request("GET", f"/v1/events{query}", headers=dict(headers or {}))
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = {name.lower(): value for name, value in self._answer.getheaders()}
        self.seen: list[Seen] = []
        self.over = threading.Event()
        self.retry = ""
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        if self.status == 200:
            self._thread.start()

    def __enter__(self) -> Listener:
        assert self.status == 200, self._answer.read()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(WAIT_S)
        self._answer.close()
        self._connection.close()

    def until(self, found: Callable[[Seen], bool], within_s: float = WAIT_S) -> Seen:
        """The first event, past or to come, of which this is true."""
        with self._news:
            there = self._news.wait_for(lambda: any(map(found, self.seen)), within_s)
            assert there, f"it did not come within {within_s} s; the newest were {self.seen[-5:]}"
            return next(filter(found, self.seen))

    def more(self, seen: int, within_s: float = WAIT_S) -> None:
        """Wait until more than this many events have come."""
        with self._news:
            there = self._news.wait_for(lambda: len(self.seen) > seen, within_s)
            assert there, f"nothing came within {within_s} s; the newest were {self.seen[-5:]}"

    def when(self, true: Callable[[], bool]) -> None:
        """Wait until this is true. It is asked once, and after every event."""
        while True:
            seen = len(self.seen)
            if true():
                return
            self.more(seen)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Take nothing in meanwhile."""
        with self._news:
            yield

    def reached(self, id: str, status: str, within_s: float = WAIT_S) -> Any:
        """Wait until the intent has been in this status; gives the event."""
        return self.until(
            lambda seen: seen.data.get("intentId") == id and seen.data["status"] == status, within_s
        ).data

    def of(self, id: str) -> list[str]:
        """The statuses of an intent so far."""
        with self._news:
            return [seen.data["status"] for seen in self.seen if seen.data.get("intentId") == id]

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            while line := self._answer.readline():
                text = line.decode().rstrip("\n")
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                    continue
                self.retry = fields.get("retry", self.retry)
                if "data" in fields:
                    seen = Seen(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
                    with self._news:
                        self.seen.append(seen)
                        self._news.notify_all()
                fields = {}
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed, here or there
        self.over.set()


def wait_until_ended(server: ServerProcess, query: str = "") -> None:
    """Wait until no intent waits or runs; `query` selects the intents."""
    with Listener(server, "?status=ACKED,CANCELED,EXPIRED,DEAD_LETTERED") as events:
        while True:
            seen = len(events.seen)
            page = server.ask("GET", f"/v1/intents?status=SCHEDULED,DUE,DISPATCHING&limit=1{query}").json
            # A page may be empty, and yet not the last one.
            if not page["items"] and page["nextCursor"] is None:
                return
            if page["items"]:
                events.more(seen, 60)
