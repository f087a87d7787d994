"""Many senders, several workers: shares and limits hold over real processes, and far work costs nothing."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from duetime.protocol.command import Pause, Resume
from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess

BATCH = 1_000
CONCURRENCY = 10


def test_a_tenant_that_floods_does_not_delay_another(server, app, told):
    """Before the n-th of B, A starts n + 1 times at most, and what one worker holds ahead of it."""
    flood = functions.told.options(fairness_key="a")
    few = functions.told.options(fairness_key="b")
    for _ in range(3):
        flood.schedule_many([(told.address,)] * BATCH).wait()
    handles = few.schedule_many([(told.address,)] * 10).wait()
    own = {handle.id for handle in handles}
    with WorkerProcess(server, options=("--concurrency", str(CONCURRENCY))):
        for handle in handles:
            handle.result(WAIT_S).wait()
        started = [told.next()["id"] for _ in range(100)]
    places = [place for place, id in enumerate(started) if id in own]
    assert len(places) == 10, "all of them are among the first hundred of 3,010"
    for nth, place in enumerate(places, start=1):
        ahead = 2 * CONCURRENCY  # started at one time: their words may come in another order
        assert place - (nth - 1) <= (nth + 1) + ahead, f"the {nth}. of B came after {place} others"


def test_a_rate_by_key_holds_over_four_worker_processes(server, app):
    """By the server's own stamps: in no window more than the rate and the burst."""
    rate, burst, keys, each = 20, 5, 5, 30
    app.ask(Pause("task:default")).wait()
    items = [
        {
            "intentId": f"k{key}-{number}", "delayMs": 0, "task": {"name": "add"}, "payload": [[1, 2]],
            "ackLevel": "ASYNC", "limits": [{"key": f"k{key}", "rate": f"{rate}/s", "burst": burst}],
        }
        for number in range(each) for key in range(keys)
    ]  # fmt: skip
    made = server.ask("POST", "/v1/intents/batch", items).json
    assert made["created"] == len(items), made
    workers = [WorkerProcess(server) for _ in range(4)]
    try:
        for worker in workers:
            worker.ready()
        app.ask(Resume("task:default")).wait()
        for item in items:
            app.handle(item["intentId"]).result(WAIT_S).wait()
    finally:
        for worker in workers:
            worker.kill()
    for key in range(keys):
        shown = [server.ask("GET", f"/v1/intents/k{key}-{number}").json for number in range(each)]
        stamps = sorted(_ms(intent["firstDispatchAt"]) for intent in shown)
        tokens, last_ms = 1_000 * burst, stamps[0]
        for at_ms in stamps:
            tokens = min(1_000 * burst, tokens + rate * (at_ms - last_ms))
            last_ms = at_ms
            assert tokens >= 1_000, f"k{key}: one too many at {at_ms - stamps[0]} ms"
            tokens -= 1_000
        # Nobody waits longer than the next token takes to come, and a slow machine to notice.
        assert stamps[-1] - stamps[0] >= 1_000 * (each - burst) // rate


def test_a_concurrency_by_key_holds_over_four_worker_processes(server, app, told, tmp_path):
    """Two of a key at one time, whoever runs them."""
    items = [
        {
            "intentId": f"c{key}-{number}", "delayMs": 0, "task": {"name": "other", "queue": "other"},
            "payload": [[told.address, 0.02]], "limits": [{"key": f"c{key}", "concurrency": 2}],
        }
        for number in range(12) for key in range(3)
    ]  # fmt: skip
    workers = [WorkerProcess(server, options=("--queues", "other")) for _ in range(4)]
    try:
        for worker in workers:
            worker.ready()
        assert server.ask("POST", "/v1/intents/batch", items).json["created"] == len(items)
        out: Counter[str] = Counter()
        for _ in range(2 * len(items)):
            said = told.next()
            key = said["id"].partition("-")[0]
            out[key] += 1 if said["event"] == "began" else -1
            assert out[key] <= 2, f"{out[key]} of {key} run at one time"
    finally:
        for worker in workers:
            worker.kill()


def _ms(text: str) -> int:
    return round(1_000 * datetime.fromisoformat(text).timestamp())


def _rss(pid: int) -> int:
    """The memory of a process and of those it started, in bytes."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:  # it is gone
            continue
        if pid in (int(lines["Pid"]), int(lines["PPid"])):
            total += 1_024 * int(lines.get("VmRSS", "0 kB").split()[0])
    return total


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_a_hundred_thousand_far_tasks_cost_a_worker_no_memory(server, app):
    """A worker is told of what is due. Held by it, these would take 50 MB and more."""
    far = {
        "delayMs": 30 * 24 * 3_600_000,
        "task": {"name": "once"},
        "payload": [["x" * 500]],
        "ackLevel": "ASYNC",
    }
    with WorkerProcess(server) as worker:
        for handle in functions.add.schedule_many([(1, 2)] * 500).wait():  # warm
            handle.result(WAIT_S).wait()
        before = _rss(worker.pid)
        for _ in range(100):
            made = server.ask("POST", "/v1/intents/batch", [far] * BATCH).json
            assert made["created"] == BATCH, made["items"][:1]
        for handle in functions.add.schedule_many([(1, 2)] * 500).wait():  # it works, and has had its news
            handle.result(WAIT_S).wait()
        grown = _rss(worker.pid) - before
    assert grown < 8_000_000, f"it grew by {grown:,} bytes"
