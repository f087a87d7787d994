"""A subscriber that holds a delivery and says nothing: its lease runs out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.process import ROOT, environment
from tests.http.server import ServerProcess


@contextmanager
def holding(server: ServerProcess, stream: str) -> Iterator[None]:
    """A subscriber in a process of its own that holds one delivery and says nothing."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.grpc.subscriber", server.grpc, stream, "1"],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
    ) as child:  # fmt: skip
        try:
            assert child.stdout is not None and child.stdout.readline() == "held\n"
            yield
        finally:
            child.kill()
