"""A server that stands still, or restarts, for longer than a lease: no live worker loses what it runs."""

from __future__ import annotations

import signal
import threading

import pytest

from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess

LEASE_S = 1.0


@pytest.mark.parametrize("guarantee", ["AT_MOST_ONCE", "AT_LEAST_ONCE"])
def test_what_a_live_worker_holds_is_not_taken_from_it(server, app, told, tmp_path, guarantee):
    held = functions.held.options(lease=f"{LEASE_S}s", guarantee=guarantee)
    with WorkerProcess(server):
        handle = held.schedule(told.address, str(tmp_path / "go")).wait()
        assert told.next()["delivery"] == 1
        server.signal(signal.SIGSTOP)
        threading.Event().wait(3 * LEASE_S)
        server.signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        assert handle.result(WAIT_S).wait() == 1
    assert handle.view().wait().delivery == 1
    assert [each["event"] for each in told.rest()] == ["ended"]


def test_what_a_worker_runs_through_a_restart_is_still_its_own_after_the_lease(server, app, told, tmp_path):
    """It comes back under another name, and its signs of life count for the earlier one, too."""
    server.stay()
    held = functions.held.options(lease="6s", guarantee="AT_MOST_ONCE")  # time enough to come back
    with WorkerProcess(server) as worker:
        handle = held.schedule(told.address, str(tmp_path / "go")).wait()
        assert told.next()["delivery"] == 1
        server.kill()
        server.start()
        functions.add.schedule(1, 2).wait().result(WAIT_S).wait()  # it is connected again
        threading.Event().wait(7)
        (tmp_path / "go").touch()
        assert handle.result(WAIT_S).wait() == 1
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
