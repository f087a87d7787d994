"""Every example runs as its first lines say, and says what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import ROOT, environment
from tests.http.server import ServerProcess

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What each must have said; an example without an entry here is one that nobody checks.
SAID = {
    "account_entity.py": ["['ada closed with 5050', 'bob closed with 100']"],
    "charge_in_30_days.py": ["planned: Its time has not come", "charged ada 19.00, request "],
    "server_stream.py": ["handled: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]"],
    "server_webhook.py": [
        "Its time has not come",
        "delivery 1 of {'order': 7}, ",
        "delivery 2 of {'order': 7}, ",
        "'DISPATCHING', 'SCHEDULED', 'DUE', 'DISPATCHING', 'ACKED']",
        "result: {'shipped': True}",
    ],
    "plain_script.py": ["cat.png is out", "'cat.png at 400'", "Its time has not come", "CANCELED"],
    "test_thirty_days.py": ["2 passed"],
    "webhook_with_backoff.py": [
        "attempt 1: shop answers 503",
        "attempt 2: shop answers 429",
        "told: 200",
        "the server is gone for good",
        "dead letters: [True]",
    ],
}


def run(example: Path, folder: Path) -> str:
    if example.stem.startswith("server_"):
        with ServerProcess(folder / "server-data") as server:
            address = [server.grpc.removeprefix("grpc://")] if "grpc" in example.read_text() else []
            return run_program([str(example), *address], folder, DUETIME_URL=server.url)
    program = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if example.stem.startswith("test_") else []
    return run_program([*program, str(example)], folder)


def run_program(arguments: list[str], folder: Path, **variables: str) -> str:
    env = {**environment(), **variables}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example, tmp_path):
    assert f"examples/{example.name}" in example.read_text(), "its first lines say how to run it"
    shown = run(example, tmp_path)
    for said in SAID[example.name]:
        assert said in shown


def test_the_second_run_finds_the_first_ones_charge(tmp_path):
    example = ROOT / "examples" / "charge_in_30_days.py"
    first, second = run(example, tmp_path), run(example, tmp_path)
    assert "planned" not in second
    assert first.splitlines()[-1] == second.splitlines()[-1]
