"""Redis and PostgreSQL for the peers: on free ports, with their data in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from bench.peers.install import postgres_folder, redis_server

# PostgreSQL refuses to run as root.
_USER = "postgres"
START_S = 20.0
# What makes it fast without making it forget more than Duetime's ASYNC does: a commit is on disk soon, not at
# once. The rest keeps it from writing checkpoints in the midst of a run.
POSTGRES_SETTINGS = {
    "synchronous_commit": "off",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "30min",
    "max_connections": "100",
    "autovacuum_naptime": "10min",
}


class Redis:
    """`redis-server` that writes nothing to disk: the fastest it can be, and less safe than Duetime's log."""

    def __init__(self) -> None:
        self._port = _free_port()
        self._folder = tempfile.mkdtemp(prefix="peers-redis-")
        program = redis_server()
        self.version = _version([program, "--version"], "v=")
        self._process = subprocess.Popen(
            [
                program, "--port", str(self._port), "--bind", "127.0.0.1", "--dir", self._folder,
                "--save", "", "--appendonly", "no", "--daemonize", "no",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _await_port(self._port, self._process)

    def fresh(self) -> str:
        """Empty it; its address."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            connection.recv(64)
        return f"redis://127.0.0.1:{self._port}/0"

    def close(self) -> None:
        _stop(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)


class Postgres:
    """`postgres` with a database of its own for each measurement."""

    def __init__(self) -> None:
        self._port = _free_port()
        self._programs = postgres_folder()
        self.version = _version([str(self._programs / "postgres"), "--version"], "(PostgreSQL) ")
        self._folder = Path(tempfile.mkdtemp(prefix="peers-postgres-"))
        self._user = _USER if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self._folder, self._user)
        data = self._folder / "data"
        self._run(
            "initdb", "-D", str(data), "-U", _USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        settings = [part for name, value in POSTGRES_SETTINGS.items() for part in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [
                str(self._programs / "postgres"), "-D", str(data), "-p", str(self._port), "-h", "127.0.0.1",
                "-k", str(self._folder), *settings,
            ],
            user=self._user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
        )  # fmt: skip
        _await_port(self._port, self._process)

    def fresh(self) -> str:
        """A new database, as nothing of the last one is to be seen; its address."""
        self._ask("DROP DATABASE IF EXISTS peer WITH (FORCE)")
        self._ask("CREATE DATABASE peer")
        return f"postgresql://{_USER}@127.0.0.1:{self._port}/peer"

    def _ask(self, statement: str) -> None:
        address = ("-h", "127.0.0.1", "-p", str(self._port), "-U", _USER, "-d", "postgres")
        deadline = time.monotonic() + START_S
        while True:
            try:
                self._run("psql", "-X", "-q", *address, "-c", statement)
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)  # it listens before it lets anybody in

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            user=self._user,
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        self._process.send_signal(2)  # fast: no waiting for those who are connected
        _stop(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)


class Sqlite:
    """A file."""

    version = ""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="peers-sqlite-"))
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"sqlite:///{self._folder}/{self._number}.db"

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


Service = Redis | Postgres | Sqlite
_KINDS: dict[str, type[Service]] = {"redis": Redis, "postgres": Postgres, "sqlite": Sqlite}


class Services:
    """Those that were asked for, each started once."""

    def __init__(self) -> None:
        self._running: dict[str, Service] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for service in self._running.values():
            service.close()

    def get(self, name: str) -> Service:
        """Raises Missing if it is not to be had."""
        if name not in self._running:
            self._running[name] = _KINDS[name]()
        return self._running[name]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not start")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _version(command: list[str], mark: str) -> str:
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return said.partition(mark)[2].split()[0]
