"""Predicted durations with a real server, a real worker and the model's own process, which is killed."""

from __future__ import annotations

import os
import signal
from random import Random
from typing import Any

import pytest

from tests.e2e.process import wait_for_end
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.worker.process import WorkerProcess
from tests.worker.waiting import until

pytest.importorskip("sklearn")

LANE = "/v1/admin/lanes/task:default"
TARGET = "tests.worker.naps:app"


def nap(ms: int, **more: Any) -> dict[str, Any]:
    return {"delayMs": 0, "task": {"name": "nap"}, "payload": [[ms]], "precisionTier": "FAST", **more}


def told(server: ServerProcess) -> dict[str, Any]:
    found: dict[str, Any] = server.ask("GET", "/v1/admin/predictions").json
    return found


def batch(server: ServerProcess, items: list[dict[str, Any]]) -> list[str]:
    answer = server.ask("POST", "/v1/intents/batch", items).json
    assert answer["created"] == len(items), answer
    return [each["intent"]["intentId"] for each in answer["items"]]


def all_done(events: Listener, ids: list[str]) -> None:
    for id in ids:
        events.reached(id, "ACKED")


def anomalies(server: ServerProcess) -> list[str]:
    return [each["code"] for each in server.ask("GET", "/health").json["anomalies"]]


def test_with_the_model_killed_in_mid_run_nothing_is_lost_or_stuck(tmp_path):
    random = Random(11)
    with (
        ServerProcess(tmp_path / "data", store__checkpoint_ms=100) as server,
        Listener(server) as events,
        WorkerProcess(server, target=TARGET, options=("--concurrency", "20")),
    ):
        assert server.ask("PATCH", LANE, {"order": "EXPECTED"}).json["order"] == "EXPECTED"
        assert anomalies(server) == []
        ids = batch(server, [nap(random.choice((5, 50, 250))) for _ in range(400)])
        all_done(events, ids)
        until(lambda: told(server)["model"]["state"] == "IN_USE")
        model = told(server)["model"]
        assert model["modelError"] < model["sketchError"] and model["rows"] >= 200
        assert told(server)["lanes"][0]["source"] == "model"

        # It is asked, and answers within the few milliseconds that a submit waits.
        def answered() -> bool:  # one that is late is predicted by the sketch
            server.create(**nap(60, delayMs=3_600_000))
            return bool(told(server)["predicted"]["model"])

        until(answered)

        # Killed while work is submitted and done.
        ids = batch(server, [nap(random.choice((1, 5, 20, 60))) for _ in range(300)])
        os.kill(model["pid"], signal.SIGKILL)
        ids += [server.create(**nap(random.choice((1, 5, 20))))["intentId"] for _ in range(100)]
        ids += batch(server, [nap(5) for _ in range(200)])
        server.says("The duration model is down")
        assert told(server)["model"]["state"] == "DOWN"
        assert "NO_MODEL" in anomalies(server)
        assert told(server)["lanes"][0]["source"] == "sketch"
        before = told(server)["predicted"]["sketch"]
        ids += batch(server, [nap(5) for _ in range(20)])
        assert told(server)["predicted"]["sketch"] == before + 20
        all_done(events, ids)
        counts = server.ask("GET", "/v1/admin/chronoscope").json["counts"]
        assert (counts["ACKED"], counts["DEAD_LETTERED"], counts["DUE"]) == (400 + len(ids), 0, 0)

        # It comes back by itself.
        until(lambda: told(server)["model"]["pid"] not in (None, model["pid"]))
        until(lambda: told(server)["model"]["state"] in ("IN_USE", "WORSE"))
        again = told(server)["model"]
        assert again["version"] != model["version"]
        assert server.stop() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(again["pid"], 0)


def test_the_model_process_ends_when_it_is_not_needed_and_when_the_server_is_killed(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        assert told(server)["model"] == {
            "state": "OFF", "detail": "", "version": None, "trainedAt": None, "rows": 0,
            "modelError": None, "sketchError": None, "pid": None,
        }  # fmt: skip
        server.ask("PATCH", LANE, {"order": "SHADOW"})
        until(lambda: told(server)["model"]["pid"] is not None)
        assert told(server)["model"]["state"] == "LEARNING"
        first = told(server)["model"]["pid"]
        server.ask("PATCH", LANE, {"order": "FIFO"})
        assert told(server)["model"]["state"] == "OFF"
        wait_for_end(first)
        server.ask("PATCH", LANE, {"order": "EXPECTED"})
        until(lambda: told(server)["model"]["pid"] is not None)
        second = told(server)["model"]["pid"]
        server.kill()
        wait_for_end(second)
