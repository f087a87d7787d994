"""A FastAPI application under a real uvicorn, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from typing import Any

from tests.e2e.process import ROOT, SOURCE, Lines, environment

WAIT_S = 60


class Web:
    """The application; `variables` are those of its environment."""

    def __init__(self, target: str, **variables: str) -> None:
        env = environment() | {"PYTHONPATH": f"{SOURCE}:{ROOT}"} | variables
        command = [sys.executable, "-m", "uvicorn", target, "--port", "0"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        self._lines = Lines(self.process.stdout)
        self.said = self._lines.lines
        self.url = ""

    def says(self, pattern: str) -> str:
        found = self._lines.wait_for(pattern)[-1]
        return found[1] if found.groups() else found[0]

    def ask(self, path: str, method: str = "POST") -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.loads(answer.read())

    def stop(self) -> None:
        """SIGTERM, and wait for the graceful shutdown."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_S)
        assert code in (0, -signal.SIGTERM), "".join(self.said)  # uvicorn's own choice

    def __enter__(self) -> Web:
        try:
            self.url = self.says(r"running on (http://\S+)")
        except BaseException:
            self.__exit__()  # the block that would end it does not begin
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        self._lines.join()
