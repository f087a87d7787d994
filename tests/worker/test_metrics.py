"""`duetime worker --metrics-port`: the runs of each function, measured where they happen."""

from __future__ import annotations

import re
import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from duetime.errors import NotAcked
from duetime.insight.worker_metrics import WORKER_METRICS
from tests.worker import functions
from tests.worker.process import WorkerProcess
from tests.worker.waiting import until

LABELS = ("queue", "function", "outcome")
SERVED = r"Metrics are served at (http://\S+)\."


def url_of(worker: WorkerProcess) -> str:
    found = re.search(SERVED, worker.says(SERVED)[0])
    assert found is not None
    return found[1]


def scrape(url: str) -> dict[tuple[str, ...], float]:
    """Each sample by its name, and its queue, function and outcome where it has them."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def worker(server):
    with WorkerProcess(server, options=("--metrics-port", "0", "--concurrency", "7")) as worker:
        yield worker


def test_runs_are_counted_by_function_and_outcome(server, app, worker, told, tmp_path):
    for function in (functions.add, functions.plain, functions.heavy):
        function.schedule(1, 2).wait().result("30s").wait()
    functions.moody.schedule("fail").wait().result("30s").wait()
    with pytest.raises(NotAcked):
        functions.moody.schedule("reject").wait().result("30s").wait()
    functions.accounts("7").tell("deposit", told.address, 1).wait().result("30s").wait()
    held = functions.held.schedule(told.address, str(tmp_path / "go")).wait()
    told_by = [told.next()["id"] for _ in range(3)]  # the account began and ended, the last one began
    assert told_by[-1] == held.id
    seen = scrape(url_of(worker))
    runs = {labels[1:]: count for labels, count in seen.items() if labels[0] == "duetime_worker_runs_total"}
    assert runs == {
        ("default", "add", "done"): 1,
        ("default", "plain", "done"): 1,
        ("heavy", "heavy", "done"): 1,
        ("default", "moody", "failed"): 1,
        ("default", "moody", "done"): 1,
        ("default", "moody", "rejected"): 1,
        ("", "Account.deposit", "done"): 1,
    }
    assert seen["duetime_worker_run_seconds_count", "default", "moody"] == 3
    assert seen["duetime_worker_running", "default", "held"] == 1
    assert seen["duetime_worker_running", "default", "add"] == 0
    assert seen[("duetime_worker_concurrency",)] == 7 and seen[("duetime_worker_memory_bytes",)] > 1_000_000
    names = {re.sub(r"_(bucket|sum|count)$", "", labels[0]) for labels in seen}
    assert {spec.name for spec in WORKER_METRICS} <= names
    (tmp_path / "go").touch()
    held.result("30s").wait()
    counted = app.metrics().wait()["duetime_function_deliveries_total"]["values"]
    assert {"labels": {"queue": "heavy", "function": "heavy", "outcome": "done"}, "value": 1} in counted


def test_a_cancelled_run_is_not_running_any_more(app, worker, told, tmp_path):
    held = functions.held.schedule(told.address, str(tmp_path / "go")).wait()
    told.next()
    held.cancel().wait()
    url = url_of(worker)
    until(lambda: scrape(url)["duetime_worker_running", "default", "held"] == 0)


def test_each_process_has_its_own_port(server, app):
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        two.bind(("127.0.0.1", port + 1))
    options = ("--metrics-port", str(port), "--processes", "2")
    with WorkerProcess(server, options=options) as worker:
        lines = worker.says(SERVED, times=2)
        assert {line.rpartition(" ")[2] for line in lines} == {
            f"http://127.0.0.1:{port}/metrics.",
            f"http://127.0.0.1:{port + 1}/metrics.",
        }
        worker.says("Connected to", times=2)
        assert worker.stop() == 0


def test_a_port_that_is_taken_is_refused(server, app):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        worker = WorkerProcess(server, options=("--metrics-port", str(port)))
        assert worker.wait() != 0
    worker.says(f"Metrics cannot be served at 127.0.0.1:{port}")
