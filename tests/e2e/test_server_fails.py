"""An engine that stops itself takes its process with it: non-zero, with the reason, and nothing is lost."""

from __future__ import annotations

import resource
from pathlib import Path

from duetime.clock import SystemClock
from tests.http.listener import Listener
from tests.http.server import ServerProcess

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}, "ackLevel": "DURABLE", "payload": "x" * 2_000}


def test_the_log_cannot_go_on(tmp_path):
    """No file can be opened any more, from outside the server's doing: the next segment cannot be made."""
    server = ServerProcess(tmp_path / "data", log__segment_bytes_max=1 << 20, log__history_bytes=0)
    made = []
    with server:
        listener = Listener(server)
        files = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files + 1, files + 1))
        for _ in range(200):
            try:
                answer = server.ask("POST", "/v1/intents/batch", [NEW] * 50)
            except OSError:
                break
            if answer.status != 200:
                assert answer.status in (500, 503), answer.body
                break
            made += [item["intent"]["intentId"] for item in answer.json["items"]]
        began_ms = SystemClock().now_ms()
        assert server.wait(30) not in (0, None)
        assert SystemClock().now_ms() - began_ms < 15_000
        assert any("stopped" in line for line in server.words)
        assert listener.over.wait(20), "streams end with it"
        listener.close()
        server.start()
        assert len(made) > 100
        assert all(server.ask("GET", f"/v1/intents/{id}").status == 200 for id in made[::50])
        total = server.ask("GET", "/v1/admin/chronoscope").json["counts"]["SCHEDULED"]
        assert total >= len(made)
        assert server.stop() == 0
