"""The direction of imports, as pyproject.toml draws it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.tidy.source import PACKAGE, ROOT

# In a process of its own: import-linter changes sys.path and keeps state.
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None))"


def test_imports_go_down_only():
    run = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_room_is_in_the_plan():
    """A new room must be given its place, or nothing holds it."""
    plan = (ROOT / "pyproject.toml").read_text("utf-8")
    rooms = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    rooms -= {"__init__", "__main__", "__pycache__"}
    missing = [
        room for room in sorted(rooms) if f'duetime.{room}"' not in plan and f"duetime.{room} " not in plan
    ]
    assert not missing, f"give these a layer in [tool.importlinter]: {missing}"


@pytest.mark.parametrize("extra", ["client", "server", "sqlalchemy", "django"])
def test_who_reaches_a_server_brings_what_reads_its_answers(extra):
    """`client.connections` needs it, and whoever installs one extra has no other."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][extra]
    assert any(need.startswith("httptools") for need in needs), needs
