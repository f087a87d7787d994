"""The types of users' functions go through `schedule` to `result`, and wrong calls are found by mypy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRONG = HERE / "wrong.txt"
ERROR = re.compile(r":(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)


@pytest.fixture(scope="module")
def checked(tmp_path_factory) -> str:
    """What mypy says of both files, in one run."""
    folder = tmp_path_factory.mktemp("mypy")
    # Kept under another name, so that the check of the whole tree does not stumble over it.
    (folder / "wrong.py").write_text(WRONG.read_text())
    files = [str(HERE / "user.py"), str(folder / "wrong.py")]
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    options += ["--cache-dir", str(folder / "cache")]
    out, err, _ = api.run([*options, "--no-pretty", "--follow-imports", "silent", *files])
    assert not err, err
    return out


def said_of(name: str, checked: str) -> list[tuple[int, str]]:
    lines = "\n".join(line for line in checked.splitlines() if f"{name}:" in line)
    return [(int(number), code) for number, code in ERROR.findall(lines)]


def test_types_go_through(checked):
    assert said_of("user.py", checked) == [], checked


def test_mistakes_are_found(checked):
    wanted = [
        (number, line.split("# error: ")[1])
        for number, line in enumerate(WRONG.read_text().splitlines(), 1)
        if "# error: " in line
    ]
    assert said_of("wrong.py", checked) == wanted, checked
