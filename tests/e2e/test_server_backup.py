"""A backup taken while intents pour in: it opens elsewhere, and has all that was acknowledged before."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from duetime.clock import SystemClock
from tests.e2e.process import environment
from tests.http.server import ServerProcess

ROUNDS = 3
BATCH = 50
HOUR_MS = 3_600_000
# Small segments, no history and frequent checkpoints: the log is cut under the hands of whoever copies it.
BUSY = {
    "log__segment_bytes_max": 1 << 20,
    "log__history_bytes": 0,
    "store__checkpoint_ms": 200,
    "store__horizon_ms": 1_000,
}


class Source:
    """Creates intents in one thread, as fast as they are taken."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.made: dict[str, int] = {}
        """What was acknowledged: the payload by id."""
        self.cancelled: set[str] = set()
        self.asked = 0
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self._changed = threading.Condition()
        self._name = name
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        self._thread = threading.Thread(target=self._run)
        self.started_ms = SystemClock().now_ms()

    def __enter__(self) -> Source:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop.set()
        self._thread.join(60)
        self._connection.close()
        assert self.failure is None, self.failure

    def wait_until_made(self, count: int) -> None:
        """Wait until this many are acknowledged, or creating them has failed."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.made) >= count or self.failure is not None, 60)

    def _run(self) -> None:
        try:
            while not self.stop.is_set():
                self._batch()
        except BaseException as error:
            with self._changed:
                self.failure = error
                self._changed.notify_all()

    def _batch(self) -> None:
        numbers = range(self.asked, self.asked + BATCH)
        self.asked += BATCH
        news = [
            {
                "intentId": f"{self._name}-{number}",
                "delayMs": HOUR_MS,
                "stream": {"name": "nobody"},
                "ackLevel": "DURABLE",
                "payload": number,
            }
            for number in numbers
        ]
        answer = self._ask("/v1/intents/batch", news)
        assert answer["created"] == BATCH, answer
        with self._changed:
            for item in answer["items"]:
                self.made[item["intent"]["intentId"]] = item["intent"]["payload"]
            self._changed.notify_all()
        id = f"{self._name}-{numbers[0]}"
        assert self._ask(f"/v1/intents/{id}/cancel", None)["status"] == "CANCELED"
        self.cancelled.add(id)

    def _ask(self, path: str, body: Any) -> Any:
        text = None if body is None else json.dumps(body)
        self._connection.request("POST", path, text, {"content-type": "application/json"})
        return json.loads(self._connection.getresponse().read())


def back_up(folder: Path, to: Path) -> None:
    command = [sys.executable, "-m", "duetime", "backup", "--data", str(folder), str(to)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr


def everything(server: ServerProcess) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cursor = ""
    while True:
        page = server.ask("GET", f"/v1/intents?limit=500{cursor}").json
        found |= {each["intentId"]: each for each in page["items"]}
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


def check_copy(copy: Path, made: dict[str, int], cancelled: set[str], most: int) -> int:
    """The copy, opened elsewhere; how many intents are in it."""
    with ServerProcess(copy) as other:
        found = everything(other)
        lost = made.keys() - found.keys()
        assert not lost, f"{len(lost)} of {len(made)} acknowledged before are not in it: {sorted(lost)[:5]}"
        assert all(found[id]["payload"] == payload for id, payload in made.items())
        assert all(found[id]["status"] == "CANCELED" for id in cancelled)
        assert len(found) <= most, "nothing is in it that nobody asked for"
        some = next(id for id in made if id not in cancelled)
        assert other.ask("POST", f"/v1/intents/{some}/cancel").status == 200, "it can be worked with"
        assert other.create()["status"] == "SCHEDULED"
        assert other.stop() == 0
    return len(found)


def test_a_backup_under_load(tmp_path, record_property):
    figures: list[dict[str, int]] = []
    with ServerProcess(tmp_path / "data", **BUSY) as server, Source(server, "s") as source:
        for number in range(ROUNDS):
            source.wait_until_made(1_000 * (number + 1))
            made, cancelled = dict(source.made), set(source.cancelled)
            to = tmp_path / f"copy{number}"
            began_ms = SystemClock().now_ms()
            back_up(tmp_path / "data", to)
            took_ms = SystemClock().now_ms() - began_ms
            more = len(source.made) - len(made)
            found = check_copy(to, made, cancelled, source.asked)
            figures.append({"before": len(made), "in it": found, "per s": more * 1000 // took_ms})
        with pytest.raises(AssertionError, match="not in it"):
            check_copy(tmp_path / "copy0", dict(source.made), set(), source.asked)
    record_property("figures", figures)
    sys.stderr.write(f"{figures}\n")
    assert max(each["per s"] for each in figures) > 100, "it was taken under load"
