"""The direction of imports, as pyproject.toml draws it."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib

import pytest

from tests.tidy.source import PACKAGE, ROOT, python_files, shown, tree

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
def test_extras_that_call_a_server_include_httptools(extra):
    """`client.connections` needs it, and whoever installs one extra has no other."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][extra]
    assert any(need.startswith("httptools") for need in needs), needs


# What only the engine reads. Others ask `engine.reads`, `engine.reads.gauges` or a named method of `Engine`.
ENGINE_ROOMS = ("engine", "kernel", "testing/sim", "testing/laws")
ENGINE_NAMES = {"engine", "_engine", "running"}


def private_reads(module: ast.Module) -> list[tuple[int, str]]:
    """Reads of an engine's pump, of a kernel's state, and of private fields of an engine."""
    found = []
    for node in ast.walk(module):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        named = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if (
            node.attr in ("pump", "_pump")
            or (node.attr == "state" and named == "kernel")
            or (named in ENGINE_NAMES and node.attr.startswith("_"))
        ):
            found.append((node.lineno, f"{named}.{node.attr}"))
    return found


def test_only_the_engine_reads_its_internals():
    rooms = tuple(f"src/duetime/{room}/" for room in ENGINE_ROOMS)
    places = [
        f"{shown(path)}:{line} {what}"
        for path in python_files("src")
        if not shown(path).startswith(rooms)
        for line, what in private_reads(tree(path))
    ]
    assert not places, f"ask a named method of Engine: {places}"


@pytest.mark.parametrize(
    "code", ["engine.pump.position", "self._engine._log", "kernel.state.out", "service.running._inbox"]
)
def test_a_look_inside_is_seen(code):
    assert private_reads(ast.parse(code))


@pytest.mark.parametrize(
    "code", ["engine.position", "self._engine.held(name)", "self._engine", "model.state"]
)
def test_an_innocent_read_is_not(code):
    assert not private_reads(ast.parse(code))
