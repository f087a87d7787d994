"""The examples of docs/client.md run as they stand there, with a real server at their address."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.process import ROOT, environment
from tests.e2e.test_docs import blocks_of
from tests.http.server import ServerProcess

PAGE = (ROOT / "docs" / "client.md").read_text("utf-8")
EXAMPLES = [block for block in blocks_of(PAGE) if block.language == "python"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("docs") / "data") as server:
        yield server


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: f"line-{block.line}")
def test_an_example_runs(example, server, tmp_path):
    code = example.code.replace("http://localhost:7928", server.url)
    env = {**environment(), "DUETIME_URL": server.url}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_there_are_examples():
    assert len(EXAMPLES) == 3
