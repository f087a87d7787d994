"""Every example runs as its first lines say, and says what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import ROOT, environment

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What each must have said; an example without an entry here is one that nobody checks.
SAID = {
    "account_entity.py": ["['ada closed with 5050', 'bob closed with 100']"],
    "charge_in_30_days.py": ["planned: Its time has not come", "charged ada 19.00, request "],
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
    program = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if example.stem.startswith("test_") else []
    done = subprocess.run(
        [sys.executable, *program, str(example)],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False,
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
