"""A real worker for tests: `duetime worker` in a process of its own. And the socket its functions tell to."""

from __future__ import annotations

import json
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.process import ROOT, SOURCE, Lines, environment
from tests.http.server import ServerProcess

TARGET = "tests.worker.functions:app"
WAIT_S = 30


class Told:
    """Hears what functions say."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="dt")
        self.address = f"{self._folder}/s"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._ear = threading.Thread(target=self._listen, daemon=True)
        self._ear.start()

    def _listen(self) -> None:
        while heard := self._socket.recv(65_536):  # always read: few datagrams wait in a socket
            self._heard.put(heard)

    def next(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._heard.get(timeout=WAIT_S))
        return found

    def rest(self) -> list[dict[str, Any]]:
        """What was said and not heard yet."""
        found = []
        while not self._heard.empty():
            found.append(self.next())
        return found

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(b"", self.address)
        self._ear.join(WAIT_S)
        self._socket.close()
        shutil.rmtree(self._folder)


class WorkerProcess:
    """`duetime worker` for some servers."""

    def __init__(
        self,
        *servers: ServerProcess,
        target: str = TARGET,
        cwd: Path = ROOT,
        options: tuple[str, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`variables`: more variables of its environment."""
        command = [sys.executable, "-m", "duetime", "worker", target, *options]
        for server in servers:
            command += ["--server", server.url if len(servers) == 1 else server.grpc]
        if len(servers) == 1:
            command += ["--grpc-port", servers[0].grpc.rpartition(":")[2]]
        env = environment() | {"PYTHONPATH": f"{SOURCE}:{ROOT}"} | dict(variables or {})
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env)
        assert self.process.stderr is not None
        self._lines = Lines(self.process.stderr)
        self.words = self._lines.lines

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self, pattern: str, times: int = 1) -> list[str]:
        """The lines that match, once there are this many."""
        return [match.string for match in self._lines.wait_for(pattern, times, WAIT_S)]

    def ready(self) -> WorkerProcess:
        try:
            self.says("Connected to")
        except BaseException:
            self.kill()  # the block that would end it does not begin
            raise
        return self

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        code = self.process.wait(WAIT_S)
        self._lines.join()
        return code

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    def __enter__(self) -> WorkerProcess:
        return self.ready()

    def __exit__(self, *exc: object) -> None:
        self.kill()
