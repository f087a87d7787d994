"""A disk that fills up under a server: new work is refused, nothing is lost, and it goes on with room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.checks import problem
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.receiver import Hooks

HOUR_MS = 3_600_000
NEW = {"delayMs": HOUR_MS, "stream": {"name": "nobody"}, "ackLevel": "DURABLE", "payload": "x" * 20_000}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of twelve megabytes; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("a disk of its own cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk(small_disk):
    """FLAWS 14: what was refused is not there afterwards, and what was taken is."""
    settings = {"log__disk_reserve_bytes": 0, "log__segment_bytes_max": 1 << 20, "log__history_bytes": 0}
    with (
        Hooks() as hooks,
        ServerProcess(small_disk / "data", store__checkpoint_ms=200, **settings) as server,
    ):
        waits = server.create(delayMs=HOUR_MS, callback={"url": hooks.url("waits")})["intentId"]
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(4 * 1024 * 1024))
        taken, refused = [], []
        for number in range(2_000):
            answer = server.ask("POST", "/v1/intents", {**NEW, "intentId": f"n{number}"})
            if answer.status == 201:
                taken.append(f"n{number}")
            else:
                problem(answer, 50305)
                refused.append(f"n{number}")
            if len(refused) == 5:
                break
        assert len(taken) > 50 and len(refused) == 5
        assert server.ask("GET", f"/v1/intents/{taken[-1]}").status == 200, "reads go on"
        assert server.ask("GET", "/health/live").status == 200
        ballast.unlink()
        while (again := server.ask("POST", "/v1/intents", {**NEW, "intentId": "again"})).status == 503:
            problem(again, 50305)
        assert again.status == 201
        assert server.ask("POST", f"/v1/intents/{waits}/fire-now").status == 200
        hooks.take("waits")
        server.kill()
        server.start()
        assert all(server.ask("GET", f"/v1/intents/{id}").status == 200 for id in [*taken, "again"])
        assert all(server.ask("GET", f"/v1/intents/{id}").status == 404 for id in refused)
        assert server.stop() == 0


def test_the_room_kept_back_lets_work_under_way_finish(small_disk):
    """New work is refused early, and there is still room for the outcomes of what was taken."""
    with (
        Hooks() as hooks,
        ServerProcess(
            small_disk / "data", log__disk_reserve_bytes=3 * 1024 * 1024, log__segment_bytes_max=1 << 20
        ) as server,
    ):
        url = hooks.hold("held")
        held = server.create(delayMs=0, callback={"url": url})["intentId"]
        hooks.take("held")
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        (small_disk / "ballast").write_bytes(bytes(free - 2 * 1024 * 1024))
        answers = [server.ask("POST", "/v1/intents", {**NEW, "payload": 1}) for _ in range(600)]
        assert answers[-1].status == 503
        problem(answers[-1], 50305)
        with Listener(server) as events:
            hooks.let_go("held")
            events.reached(held, "ACKED")
        assert server.stop() == 0
