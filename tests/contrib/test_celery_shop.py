"""The example that came from Celery: its own tests pass on virtual time, and killed workers lose nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.e2e.process import ROOT, WAIT_S, environment
from tests.http.listener import Listener, Seen
from tests.http.server import ServerProcess
from tests.worker.process import WorkerProcess

SHOP = ROOT / "examples" / "celery_shop"
ORDERS = 30
STEPS = ("placed", "reserved", "charged", "label:post", "mail:receipt", "mail:invoice", "closed")


def test_the_tests_of_the_shop_pass(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "run")],
        cwd=SHOP, env=environment(), capture_output=True, text=True, timeout=WAIT_S * 3, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout


def test_killed_workers_of_the_shop_lose_nothing(tmp_path, monkeypatch):
    database = tmp_path / "shop.db"
    with ServerProcess(tmp_path / "data") as server:
        monkeypatch.setenv("SHOP_DB", str(database))
        monkeypatch.setenv("DUETIME_URL", server.url)
        with Listener(server) as events, place_orders() as orders:
            for tasks in (20, 50, 90):  # each worker is killed in the middle of its work
                with WorkerProcess(server, target="shop.app:app", cwd=SHOP) as worker:
                    wait_for_tasks(events, tasks)
                    worker.kill()
            with WorkerProcess(server, target="shop.app:app", cwd=SHOP):
                said, problems = orders.communicate(timeout=WAIT_S)
    assert orders.returncode == 0, problems
    assert said.count("'done': ['post', 'receipt to ada', 'invoice to ada']") == ORDERS
    assert counted(database) == dict.fromkeys(STEPS, ORDERS)


def wait_for_tasks(events: Listener, count: int) -> None:
    """Wait until so many tasks have succeeded."""
    done: set[str] = set()

    def enough(event: Seen) -> bool:
        if event.data["status"] == "ACKED":
            done.add(event.data["intentId"])
        return len(done) >= count

    events.until(enough)


def place_orders() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shop.place", str(ORDERS)],
        cwd=SHOP, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def counted(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as found:
        return dict(found.execute("SELECT step, count(*) FROM steps GROUP BY step").fetchall())
