"""Killed anywhere between the transaction and the engine, an outbox loses and doubles nothing."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa

from tests.contrib.shop import metadata, orders, outbox, shop_of
from tests.contrib.shop import sell as sell_orders
from tests.e2e.process import ROOT, SOURCE, environment
from tests.http.listener import Listener
from tests.http.server import ServerProcess

KILLED = -signal.SIGKILL
WAIT_S = 60


@pytest.fixture
def engine(database):
    engine = sa.create_engine(database)
    metadata.create_all(engine)
    yield engine
    engine.dispose()


class Shop:
    """Runs the shop in processes of its own."""

    def __init__(self, *where: str) -> None:
        self._command = [sys.executable, "-m", "tests.contrib.shop", *where]
        self._env = environment() | {"PYTHONPATH": f"{SOURCE}:{ROOT}"}

    def start(self, *what: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *what], cwd=ROOT, env=self._env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *what: str) -> int:
        """The exit code."""
        with self.start(*what) as process:
            try:
                _, said = process.communicate(timeout=WAIT_S)
            finally:
                process.kill()
        assert process.returncode in (0, KILLED), said
        return process.returncode


@pytest.fixture
def shop(database, server, queue) -> Shop:
    return Shop(database, server.url, queue)


@pytest.fixture
def sell(engine, server, queue):
    _, receipt = shop_of(server.url, queue)
    return lambda count: sell_orders(engine, receipt, count)


@pytest.fixture
def relay(engine, server, queue):
    """Relay what is there, in this process."""
    app, _ = shop_of(server.url, queue)
    return lambda: outbox.relay(app, engine).run(once=True)


@pytest.fixture
def receipts(server, queue):
    """The orders there is a receipt for, as the server has them."""

    def receipts() -> list[int]:
        found = server.ask("GET", f"/v1/intents?queue={queue}&limit=500").json["items"]
        return sorted(intent["payload"][0][0] for intent in found)

    return receipts


def rows(engine: sa.Engine, table: sa.Table) -> int:
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_killed_behind_the_commit(shop, relay, engine, receipts):
    assert shop.run("sell-and-die") == KILLED
    assert rows(engine, orders) == 3 and receipts() == []
    relay()
    assert receipts() == [0, 1, 2]
    assert rows(engine, outbox.table) == 0


def test_killed_within_the_transaction(shop, relay, engine, receipts):
    assert shop.run("die-selling") == KILLED
    relay()
    assert rows(engine, orders) == 0 and receipts() == []


def test_killed_between_submit_and_delete(shop, sell, relay, engine, receipts):
    sell(25)
    assert shop.run("relay-and-die") == KILLED
    assert receipts() == list(range(10))
    assert rows(engine, outbox.table) == 25
    relay()
    assert receipts() == list(range(25))
    assert rows(engine, outbox.table) == 0


def test_rows_of_a_killed_relay_are_taken_by_the_others(shop, sell, relay, engine, receipts):
    sell(60)
    with shop.start("relay-on") as other:
        try:
            killed = threading.Thread(target=shop.run, args=("relay-and-die",))
            killed.start()
            try:
                relay()
            finally:
                killed.join()  # its process ends with it
            assert other.stdout is not None and other.stdout.readline() == "relaying\n"
            other.send_signal(signal.SIGTERM)
            other.communicate(timeout=WAIT_S)
        finally:
            other.kill()
    assert other.returncode == 0
    relay()
    assert receipts() == list(range(60))
    assert rows(engine, outbox.table) == 0


def test_the_command(shop, sell, engine, database, server, receipts):
    sell(3)
    with engine.begin() as connection:
        row = {"key": "k", "body": "nonsense", "created_ms": 0, "retry_ms": 0}
        connection.execute(outbox.table.insert().values(row))

    def relay(*options: str) -> str:
        command = [sys.executable, "-m", "duetime", "relay", database, "--url", server.url, *options]
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert relay("--once", "--batch", "2") == "3 relayed, 1 refused.\n"
    assert receipts() == [0, 1, 2]
    assert relay("--status", "--retry-refused") == "1 waiting, 0 refused.\n"


def test_the_command_waits_for_its_server(sell, engine, database, tmp_path):
    sell(3)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "-m", "duetime", "relay", database, "--url", f"http://127.0.0.1:{port}"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as relay:  # fmt: skip
        try:
            assert relay.stderr is not None
            assert any("waits for the server" in line for line in relay.stderr)
            with ServerProcess(tmp_path / "later", "--port", str(port)) as server:
                with Listener(server) as events:
                    events.when(lambda: len(server.ask("GET", "/v1/intents").json["items"]) == 3)
                relay.send_signal(signal.SIGTERM)
                said, _ = relay.communicate(timeout=WAIT_S)
        finally:
            relay.kill()
    assert relay.returncode == 0 and said == "3 relayed, 0 refused.\n"
    assert rows(engine, outbox.table) == 0


def test_the_command_stops_while_it_waits_for_its_server(engine, database):
    with subprocess.Popen(
        [sys.executable, "-m", "duetime", "relay", database, "--url", "http://127.0.0.1:1"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as relay:  # fmt: skip
        try:
            assert relay.stderr is not None
            assert any("waits for the server" in line for line in relay.stderr)
            relay.send_signal(signal.SIGTERM)
            relay.communicate(timeout=WAIT_S)
        finally:
            relay.kill()
    assert relay.returncode == 0


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("nonsense", "The database cannot be used"),
        ("nosuch://db", "The database cannot be used"),
        ("sqlite://", "The outbox cannot be read: no such table: duetime_outbox."),
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", "The outbox cannot be read: connection failed"),
    ],
)
def test_the_command_says_what_is_wrong(database, said):
    done = subprocess.run(
        [sys.executable, "-m", "duetime", "relay", database, "--status"],
        env=environment(), capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("hint: ") == 1
