"""A server that stands still, or restarts, for longer than a lease: no live worker loses what it runs."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.process import stand_still
from tests.http.listener import Listener
from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess
from tests.worker.silent import holding

LEASE_S = 1.0


@pytest.mark.parametrize("guarantee", ["AT_MOST_ONCE", "AT_LEAST_ONCE"])
def test_a_live_worker_keeps_its_deliveries(server, app, told, tmp_path, guarantee):
    held = functions.held.options(lease=f"{LEASE_S}s", guarantee=guarantee)
    with WorkerProcess(server):
        handle = held.schedule(told.address, str(tmp_path / "go")).wait()
        assert told.next()["delivery"] == 1
        stand_still(server.signal, 2 * LEASE_S)
        (tmp_path / "go").touch()
        assert handle.result(WAIT_S).wait() == 1
    assert handle.view().wait().delivery == 1
    assert [each["event"] for each in told.rest()] == ["ended"]


def test_a_worker_keeps_its_delivery_through_a_restart_longer_than_the_lease(server, app, told, tmp_path):
    """It comes back under another name, and its signs of life count for the earlier one, too."""
    server.stay()
    lease_ms = 6_000  # time enough to come back
    held = functions.held.options(lease=f"{lease_ms}ms", guarantee="AT_MOST_ONCE")
    silent = server.create(delayMs=0, stream={"name": "silent"}, leaseMs=lease_ms)["intentId"]
    with WorkerProcess(server) as worker, holding(server, "silent"):
        handle = held.schedule(told.address, str(tmp_path / "go")).wait()
        assert told.next()["delivery"] == 1
        server.kill()
        server.start()
        with Listener(server) as events:
            functions.add.schedule(1, 2).wait().result(WAIT_S).wait()  # it is connected again
            # A subscriber that held as long a lease and did not come back has lost it by now.
            events.until(lambda seen: seen.data.get("intentId") == silent and seen.data["error"])
        (tmp_path / "go").touch()
        assert handle.result(WAIT_S).wait() == 1
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
