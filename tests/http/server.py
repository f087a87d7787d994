"""A real server for tests: `duetime serve` in a process of its own, on free ports, with real sockets.

`ServerProcess` starts, stops (SIGTERM) and kills (SIGKILL) it, and starts it again on the same folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.process import Lines, environment

_LISTENS = r"listens on (\S+?)(?: and (\S+))?\s*$"


class Reply(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ServerProcess:
    """`duetime serve` on a data folder."""

    def __init__(self, folder: Path, *arguments: str, **settings: object) -> None:
        """Settings are named like the environment's, in lower case: log__flush_ms=20."""
        self.folder = folder
        self.url = ""
        self.grpc = ""
        self.words: list[str] = []
        self._arguments = arguments
        self.variables = {f"DUETIME_{name.upper()}": str(value) for name, value in settings.items()}
        self._process: subprocess.Popen[str] | None = None
        self._lines: Lines | None = None

    def start(self) -> ServerProcess:
        self.url = self.grpc = ""  # of the one before
        command = [sys.executable, "-m", "duetime", "serve", "--data", str(self.folder)]
        if "--port" not in self._arguments:
            command += ["--port", "0"]
        if "--grpc-port" not in self._arguments:
            command += ["--grpc-port", "0"]
        self._process = subprocess.Popen(
            [*command, *self._arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(), **self.variables},
        )
        assert self._process.stderr is not None
        self._lines = Lines(self._process.stderr, self.words)
        try:
            [listening] = self._lines.wait_for(_LISTENS)
        except BaseException:
            self.kill()
            raise
        self.url, self.grpc = listening[1], listening[2] or ""
        return self

    def says(self, pattern: str) -> None:
        """Wait until a line that it has printed since its start matches."""
        assert self._lines is not None
        self._lines.wait_for(pattern)

    def stay(self) -> None:
        """Keep the ports: the next start listens where this one did."""
        http, grpc = (each.rpartition(":")[2] for each in (self.url, self.grpc))
        self._arguments = (*self._arguments, "--port", http, "--grpc-port", grpc)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def memory_bytes(self) -> int:
        """What the process really has in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, within_s: float = 60) -> int:
        """The exit code."""
        assert self._process is not None and self._lines is not None
        code = self._process.wait(within_s)
        self._lines.join()
        return code

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self.wait()

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """One request. A body that is not bytes is sent as JSON; an error status is an answer, too."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        all_headers = {"content-type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, data=data, headers=all_headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def create(self, **fields: Any) -> Any:
        """A new intent, which must be taken. A stream target keeps it waiting unless told otherwise."""
        if not {"callback", "task", "entity", "stream"} & fields.keys():
            fields["stream"] = {"name": "nobody"}
        if not {"executeAt", "delayMs"} & fields.keys():
            fields["delayMs"] = 3_600_000
        answer = self.ask("POST", "/v1/intents", fields)
        assert answer.status in (200, 201), answer.body
        return answer.json
