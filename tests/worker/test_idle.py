"""A worker that is connected and does nothing while there is work for it is seen (pain 4)."""

from __future__ import annotations

import signal
from typing import Any

from duetime.insight.rules import RULES
from duetime.limits import HEARTBEAT_MS
from tests.http.listener import Listener
from tests.worker import functions
from tests.worker.process import WorkerProcess

RULE = {rule.code: rule for rule in RULES}
# A worker that gave no sign of life for this long is silent, with some room.
SILENT_MS = HEARTBEAT_MS + 2_500


def anomalies(server) -> Any:
    return {(each["code"], each["subject"]): each for each in server.ask("GET", "/health").json["anomalies"]}


def metric(server, name: str) -> float:
    answer = server.ask("GET", "/metrics", headers={"accept": "application/json"}).json
    found: float = answer[name]["values"][0]["value"]
    return found


def test_a_stopped_worker_is_an_anomaly_until_it_continues(server, app, told, clock):
    with WorkerProcess(server, options=("--name", "sleepy")) as worker:
        functions.told.schedule(told.address).wait().result(timeout="30s").wait()
        worker.signal(signal.SIGSTOP)
        try:
            handle = functions.told.schedule(told.address).wait()
            clock.advance(SILENT_MS)
            assert not anomalies(server), "health sees it, and waits whether it stays"
            clock.advance(RULE["WORKER_IDLE"].after_ms)
            seen = anomalies(server)["WORKER_IDLE", "sleepy"]
            assert "no sign of life" in seen["detail"] and "holds 1 delivery" in seen["detail"]
            assert seen["severity"] == "DEGRADED" and seen["since"] and seen["meaning"] and seen["advice"]
            assert metric(server, "duetime_workers") == metric(server, "duetime_workers_idle") == 1
        finally:
            worker.signal(signal.SIGCONT)
        handle.result(timeout="30s").wait()
        assert anomalies(server), "health sees that it is over, and waits whether it stays so"
        clock.advance(RULE["WORKER_IDLE"].until_ms)
        assert not anomalies(server)
        assert metric(server, "duetime_workers_idle") == 0


def test_work_of_a_queue_for_which_no_worker_is_connected_is_an_anomaly(server, app, told, clock):
    with WorkerProcess(server, options=("--queues", "default")), Listener(server) as events:
        events.reached(functions.other.schedule(told.address, 0).wait().id, "DUE")
        assert not anomalies(server), "health sees it, and waits whether it stays"
        clock.advance(RULE["NO_CONSUMER"].after_ms)
        seen = anomalies(server)["NO_CONSUMER", "task:other"]
        assert "no worker takes it" in seen["detail"]
        assert not [code for code, _ in anomalies(server) if code == "WORKER_IDLE"], (
            "the worker is for another"
        )
        assert metric(server, "duetime_workers_idle") == 0
