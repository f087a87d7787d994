"""Processes for CPU-bound functions are replaced between two calls, and no call is lost."""

from __future__ import annotations

from collections import Counter

from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess


def heavy_pid(mib):
    """The process and the attempt of a call that keeps some memory."""
    return functions.heavy_pid.schedule(mib).wait().result(WAIT_S).wait()


def test_a_process_is_replaced_after_its_calls(server, app):
    with WorkerProcess(server, options=("--queues", "heavy", "--max-tasks-per-child", "4")):
        handles = functions.heavy_pid.schedule_many([(0,)] * 24).wait()
        found = [handle.result(WAIT_S).wait() for handle in handles]
    assert {attempt for _, attempt in found} == {1}
    calls = Counter(pid for pid, _ in found)
    assert max(calls.values()) <= 4 and len(calls) >= 6


def test_a_process_with_too_much_memory_is_replaced(server, app):
    options = ("--queues", "heavy", "--max-memory-per-child", "300M", "--concurrency", "1")
    with WorkerProcess(server, options=options) as worker:
        first, attempt = heavy_pid(400)
        second, _ = heavy_pid(1)
        assert (first != second, attempt) == (True, 1)
        assert heavy_pid(1)[0] == second
        worker.says("MiB is replaced, after 1 call")


def test_a_wrong_size_is_reported():
    worker = WorkerProcess(options=("--max-memory-per-child", "much"))
    assert worker.wait() == 2
    assert any("--max-memory-per-child: 'much' is not a size" in line for line in worker.words)
