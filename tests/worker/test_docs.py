"""The example of docs/workers.md runs as it stands there, with a real server and a real worker."""

from __future__ import annotations

import subprocess
import sys

from tests.e2e.process import ROOT, environment
from tests.e2e.test_docs import blocks_of
from tests.worker.process import WAIT_S, WorkerProcess


def test_the_example_runs(server, tmp_path):
    page = (ROOT / "docs" / "workers.md").read_text("utf-8")
    for block in blocks_of(page):
        if block.language == "python":
            name = block.code.split("\n")[0].removeprefix("# ")
            (tmp_path / name).write_text(block.code.replace("http://localhost:7928", server.url))
    with WorkerProcess(server, target="jobs:app", cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, "send.py"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=2 * WAIT_S,
            check=False,
        )
    *said, first, second = done.stdout.splitlines()
    assert said == ["hello you, delivery 1", "3", "6", "apple is in cart 7", "2 files"], done.stderr
    assert first.endswith("INFO jobs: copied a.txt") and second.endswith("INFO jobs: copied b.txt")
