"""Calls in processes of their own, each of which can be killed alone."""

from __future__ import annotations

import os
import threading
from concurrent.futures.process import BrokenProcessPool

import pytest

from duetime.client.execution.processes import Processes

WAIT_S = 60


def backwards(body: bytes) -> bytes:
    return body[::-1]


def forever(body: bytes) -> bytes:
    open(body.decode(), "w").close()
    threading.Event().wait()
    return b""


def dies(body: bytes) -> bytes:
    os._exit(3)


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
