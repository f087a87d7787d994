"""Calls in processes of their own, each of which can be killed alone."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures.process import BrokenProcessPool

import pytest

from duetime.client.execution import processes as processes_module
from duetime.client.execution.processes import Processes
from tests.e2e.process import wait_for_end

WAIT_S = 60


def backwards(body: bytes) -> bytes:
    return body[::-1]


def forever(body: bytes) -> bytes:
    open(body.decode(), "w").close()
    threading.Event().wait()
    return b""


def dies(body: bytes) -> bytes:
    os._exit(3)


def pid(body: bytes) -> bytes:
    return str(os.getpid()).encode()


def grows(body: bytes) -> bytes:
    """Keeps as many MiB as the body says."""
    _kept.append(b"x" * (int(body) << 20))
    return pid(body)


def leaves_a_thread(body: bytes) -> bytes:
    threading.Thread(target=threading.Event().wait).start()
    return pid(body)


_kept: list[bytes] = []


@pytest.fixture
def processes():
    processes = Processes(2)
    yield processes
    processes.shutdown(wait=True, cancel_futures=True)


def test_a_killed_call_does_not_affect_others(processes, tmp_path):
    stuck = processes.submit(forever, str(tmp_path / "began").encode())
    assert processes.submit(backwards, b"abc").result(WAIT_S) == b"cba"
    processes.kill(stuck)
    with pytest.raises(BrokenProcessPool):
        stuck.result(WAIT_S)
    assert [processes.submit(backwards, b"ab").result(WAIT_S) for _ in range(3)] == [b"ba"] * 3


def test_a_process_that_dies_is_replaced(processes):
    with pytest.raises(BrokenProcessPool):
        processes.submit(dies, b"").result(WAIT_S)
    assert processes.submit(backwards, b"ab").result(WAIT_S) == b"ba"


def test_shutting_down_ends_what_runs():
    processes = Processes(1)
    stuck = processes.submit(forever, b"/dev/null")
    processes.shutdown(wait=True, cancel_futures=True)
    assert stuck.done()


def test_a_process_is_replaced_after_its_calls():
    processes = Processes(1, calls_max=3)
    pids = [int(processes.submit(pid, b"").result(WAIT_S)) for _ in range(7)]
    assert [pids.index(each) for each in pids] == [0, 0, 0, 3, 3, 3, 6]
    for old in set(pids[:6]):
        wait_for_end(old)
    processes.shutdown()


def test_a_process_with_too_much_memory_is_replaced_after_its_call(caplog):
    caplog.set_level("INFO")
    processes = Processes(1, memory_bytes_max=300 << 20)
    first = int(processes.submit(grows, b"1").result(WAIT_S))
    assert int(processes.submit(pid, b"").result(WAIT_S)) == first
    assert int(processes.submit(grows, b"400").result(WAIT_S)) == first, "the call ends before"
    second = int(processes.submit(pid, b"").result(WAIT_S))
    assert second != first
    wait_for_end(first)
    assert int(processes.submit(pid, b"").result(WAIT_S)) == second
    processes.shutdown()
    [record] = caplog.records
    assert re.match(r"A process with 4\d\d MiB is replaced, after 3 calls\.", record.getMessage())


def test_a_replaced_process_that_does_not_end_is_killed(monkeypatch):
    monkeypatch.setattr(processes_module, "CHILD_EXIT_S", 0.2)
    processes = Processes(1, calls_max=1)
    first = int(processes.submit(leaves_a_thread, b"").result(WAIT_S))
    assert int(processes.submit(pid, b"").result(WAIT_S)) != first
    wait_for_end(first)
    processes.shutdown()
