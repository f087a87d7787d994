"""An engine that stops itself takes its process with it: non-zero, with the reason, and nothing is lost."""

from __future__ import annotations

import contextlib
import resource

from duetime.clock import SystemClock
from tests.http.listener import Listener
from tests.http.server import ServerProcess

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}, "ackLevel": "DURABLE", "payload": "x" * 2_000}


def create_some(server: ServerProcess, made: list[str]) -> int:
    """Fifty more; the status."""
    answer = server.ask("POST", "/v1/intents/batch", [NEW] * 50)
    if answer.status == 200:
        made += [item["intent"]["intentId"] for item in answer.json["items"] if "intent" in item]
    return answer.status


def check_all(server: ServerProcess, made: list[str]) -> None:
    assert all(server.ask("GET", f"/v1/intents/{id}").status == 200 for id in made[::50])
    assert server.ask("GET", "/v1/admin/chronoscope").json["counts"]["SCHEDULED"] >= len(made)


def test_a_removed_lock_stops_the_server(tmp_path):
    """Somebody removes the lock: another engine could write the same log, so this one stops."""
    made: list[str] = []
    with ServerProcess(tmp_path / "data") as server:
        listener = Listener(server)
        for _ in range(3):
            assert create_some(server, made) == 200
        (tmp_path / "data" / "log" / "lock").unlink()
        began_ms = SystemClock().now_ms()
        with contextlib.suppress(OSError):  # it may be gone before it can say so
            assert create_some(server, made) in (500, 503)
        assert server.wait(30) == 1
        assert SystemClock().now_ms() - began_ms < 15_000
        assert any("stopped" in line and "'lock' was removed" in line for line in server.words)
        assert listener.over.wait(20), "streams end with it"
        listener.close()
        server.start()
        assert len(made) == 150
        check_all(server, made)
        assert server.stop() == 0


def test_too_few_files_refuse_new_work_until_there_are_more(tmp_path):
    """No file can be opened any more, from outside the server's doing: the next segment cannot be made."""
    made: list[str] = []
    with ServerProcess(tmp_path / "data", log__segment_bytes_max=1 << 20, log__history_bytes=0) as server:
        files = server.open_files()
        usual = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files + 1, usual[1]))
        refused = 0
        for _ in range(200):
            try:
                refused += create_some(server, made) != 200
            except OSError:
                refused += 1  # there is no file for the connection, either
            if refused:
                break
        assert refused
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, usual)
        before = len(made)
        for _ in range(20):
            assert create_some(server, made) == 200
        assert len(made) - before == 1_000
        check_all(server, made)
        assert server.stop() == 0
