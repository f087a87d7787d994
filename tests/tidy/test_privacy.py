"""Tests use public names, and wait for events instead of polling. Exceptions are listed with their reason."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tidy.source import EXCUSE, ROOT, python_files, read, shown, tree

# What a name with an underscore may be in any test.
PUBLIC = {"os._exit"}

# The number of places in a file that use private names, and the reason. Lower a number when a place is gone.
PRIVATE: dict[str, tuple[int, str]] = {
    "tests/contrib/test_opentelemetry.py": (2, "removes the middleware of a running app; users cannot"),
    "tests/flaws/rig.py": (2, "kills an engine: close() would write a Drain and a checkpoint"),
    "tests/integration/test_hostile.py": (2, "breaks the kernel of a running engine; users cannot"),
    "tests/integration/test_leaps.py": (2, "compares the state before and after a restart, field by field"),
    "tests/unit/api/http/test_connection.py": (1, "a subclass that calls the method it overrides"),
    "tests/unit/api/test_load.py": (2, "no name may be left in the table: only the table shows it"),
    "tests/unit/client/http/test_transport.py": (1, "a line that arrives during a cancel, which is timing"),
    "tests/unit/client/worker/test_worker_connection.py": (
        14, "steps of a reconnect in an order that a real server gives only by chance",
    ),
    "tests/unit/engine/durability/test_checkpointer.py": (1, "waits for a checkpoint in the background"),
    "tests/unit/engine/predictions/test_predictor.py": (9, "takes the place of the process of the model"),
    "tests/unit/engine/reads/test_meter.py": (4, "no start may be left: only the table shows it"),
    "tests/unit/engine/schedules/test_calendar.py": (1, "walks over every name that the calendar knows"),
    "tests/unit/engine/schedules/test_planner.py": (4, "a clock that was set, an engine that stood still"),
    "tests/unit/engine/timing/test_window.py": (3, "heartbeats on a clock set by hand, which has none"),
    "tests/unit/kernel/test_watched.py": (1, "one invariant alone: in check() an earlier one fails first"),
    "tests/unit/log/test_file.py": (2, "waits for the thread of a sync that nobody waits for"),
}  # fmt: skip

# The same for loops that ask again and again.
ITERATES = "does something in each round, and ends by a count or by the call itself"
POLLING: dict[str, tuple[int, str]] = {
    "tests/grpc/test_deliveries.py": (1, "sends heartbeats until an event: the heartbeats are the test"),
    "tests/grpc/test_unfinished.py": (1, ITERATES),
    "tests/http/test_restart.py": (2, "a moment must pass while no server is running that could tell"),
    "tests/integration/test_client_connections.py": (1, "steps of the loop, counted"),
    "tests/services.py": (2, "a guard process: the lock of another process sends no event"),
    "tests/unit/store/sqlite/test_store.py": (1, ITERATES),
    "tests/worker/test_groups.py": (1, "next() blocks until there is a message"),
}


class Place(NamedTuple):
    line: int
    text: str


def private_places(path: Path) -> list[Place]:
    """Private fields of other objects, and private names of other modules."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _own(node.value):
            text = ast.unparse(node)
            if text not in PUBLIC:
                found.append(Place(node.lineno, text))
        elif isinstance(node, ast.ImportFrom):
            found += [Place(node.lineno, each.name) for each in node.names if _is_private(each.name)]
    return found


def polling_places(path: Path) -> list[Place]:
    """Loops in which only time passes, or that ask the same again. An excused line gives its own reason."""
    excused = {number for number, line in enumerate(read(path).split("\n"), start=1) if EXCUSE in line}
    return [
        Place(node.lineno, ast.unparse(node.test) if isinstance(node, ast.While) else ast.unparse(node.iter))
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.While) and _asks(node.test) and all(map(_idle, node.body)))
        or (isinstance(node, ast.While | ast.For) and any(map(_naps, node.body)))
        if not excused & {each.lineno for each in node.body}
    ]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _asks(test: ast.expr) -> bool:
    """A condition that calls something, and does not wait for it."""
    calls = any(isinstance(each, ast.Call) for each in ast.walk(test))
    return calls and not any(
        isinstance(each, ast.Await) or _takes_from_a_queue(each) for each in ast.walk(test)
    )


def _takes_from_a_queue(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("get", "readline", "take", "recv")
    )


def _idle(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or _naps(statement)


def _naps(statement: ast.stmt) -> bool:
    """`sleep` for longer than one turn of the loop, or a wait with a time limit whose result is ignored."""
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    first = call.args[0]
    return call.func.attr in ("sleep", "wait") and not (isinstance(first, ast.Constant) and not first.value)


# `*_can_fail.py` replace a rule of the kernel on purpose, to show that a checker notices.
FILES = [path for path in python_files("tests") if not path.name.endswith("_can_fail.py")]


@pytest.mark.parametrize(
    ("find", "allowed", "instead"),
    [
        (private_places, PRIVATE, "a public name; add one where users or operators want it"),
        (polling_places, POLLING, "an event: `Listener`, a line of the log, a pipe, a future"),
    ],
    ids=["private", "polling"],
)
def test_only_the_listed_exceptions_remain(find, allowed, instead):
    wrong = []
    for path in FILES:
        places, name = find(path), shown(path)
        most, _ = allowed.get(name, (0, ""))
        if len(places) > most:
            wrong.append(f"{name}: {len(places)} places, {most} listed: {places}")
    assert not wrong, f"use {instead}: {wrong}"


@pytest.mark.parametrize("allowed", [PRIVATE, POLLING], ids=["private", "polling"])
def test_every_exception_has_a_file_and_a_reason(allowed):
    assert all((ROOT / name).is_file() and len(reason) > 20 for name, (_, reason) in allowed.items())


@pytest.mark.parametrize(
    ("find", "code"),
    [
        (private_places, "engine._phase.fail()"),
        (private_places, "from duetime.log.file import _name"),
        (polling_places, "while not ready():\n    pass"),
        (polling_places, "for _ in range(9):\n    time.sleep(0.1)"),
        (polling_places, "while True:\n    pause.wait(0.02)"),
    ],
)
def test_a_breach_is_seen(tmp_path, find, code, monkeypatch):
    monkeypatch.setattr("tests.tidy.test_privacy.tree", lambda path: ast.parse(code))
    monkeypatch.setattr("tests.tidy.test_privacy.read", lambda path: code)
    assert len(find(tmp_path)) == 1


@pytest.mark.parametrize(
    ("find", "code"),
    [
        (private_places, "self._field = other.field"),
        (private_places, "os._exit(1)"),
        (polling_places, "while lines.get(timeout=9) != 'end':\n    pass"),
        (polling_places, "for _ in range(9):\n    await asyncio.sleep(0)"),
        (polling_places, "while queue:\n    queue.pop()"),
        (polling_places, "while not ready():\n    sleep(1)  # tidy: the server sends no event"),
    ],
)
def test_an_innocent_line_is_not_seen(tmp_path, find, code, monkeypatch):
    monkeypatch.setattr("tests.tidy.test_privacy.tree", lambda path: ast.parse(code))
    monkeypatch.setattr("tests.tidy.test_privacy.read", lambda path: code)
    assert not find(tmp_path)
