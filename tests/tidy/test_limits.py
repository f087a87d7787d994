"""Bounds are declared in `limits.py`, where each has its reason."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.source import PACKAGE, python_files, tree

BOUND = re.compile(r"(^|_)(MAX|MIN|KEPT|BYTES|MS|S)$")

# Names that look like bounds, and the reason why they are not. By module, below `src/duetime/`.
EXCUSED = {
    "api/deliveries/consumers.py": ("_MARK_BYTES", "_RANDOM_BYTES", "the parts of a consumer's name"),
    "api/grpc/message_parts.py": ("_BYTES", "a wire type of protobuf"),
    "channels/pull.py": ("_NEVER_S", "_DELIVERY_BYTES", "infinity; an estimate of a size"),
    "client/execution/schemas.py": ("_KEPT", "a set of keywords"),
    "client/remote/backend.py": ("_FOREVER_S", "infinity"),
    "client/remote/submitter.py": ("_HEAD_BYTES", "an estimate of a size"),
    "contrib/django/running.py": ("PRIORITY_S", "a factor between two scales"),
    "engine/predictions/regressor.py": ("_FLOOR_MS", "a constant of the logarithm"),
    "engine/reads/function_counts.py": ("FUNCTION_S", "the buckets of histograms"),
    "engine/reads/library.py": ("_PLACE_MAX", "the largest integer of SQLite"),
    "engine/reads/meter.py": ("LATE_MS", "TIME_MS", "TIME_S", "the buckets of histograms"),
    "engine/shell/inbox.py": ("_ITEM_BYTES", "_TIES_BYTES", "estimates of sizes"),
    "log/frame.py": ("HEADER_BYTES", "ENVELOPE_BYTES", "sizes in the file format"),
    "log/segment.py": ("SEGMENT_HEADER_BYTES", "_ENCODED_BYTES_MAX", "sizes in the file format"),
    "log/tail.py": ("SECTOR_BYTES", "the unit in which disks write"),
    "protocol/intent.py": ("PURGED_MS", "a mark in place of a time"),
    "store/store.py": ("SEQ_MAX", "a value above every sequence number"),
}
# `testing` has its own numbers, so that a wrong bound of the engine is noticed.
FOLDERS_EXCUSED = ("testing", "v1")


def bounds(module: ast.Module) -> list[str]:
    """The names of a module's constants that are bounds by their name."""
    found: list[str] = []
    for statement in module.body:
        match statement:
            case ast.Assign(targets=targets):
                pass
            case ast.AnnAssign(target=target):
                targets = [target]
            case _:
                continue
        names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        found += [name for name in names if name.isupper() and BOUND.search(name)]
    return found


def modules() -> dict[str, ast.Module]:
    found = {path.relative_to(PACKAGE).as_posix(): tree(path) for path in python_files("src/duetime")}
    return {
        name: module
        for name, module in found.items()
        if name != "limits.py" and name.split("/")[0] not in FOLDERS_EXCUSED
    }


def test_every_bound_is_in_limits():
    strays = [
        f"{name}: {bound}"
        for name, module in modules().items()
        for bound in bounds(module)
        if bound not in EXCUSED.get(name, ())[:-1]
    ]
    assert not strays, f"move these to limits.py, each with its reason: {strays}"


def test_every_excuse_is_needed():
    known = modules()
    idle = [
        f"{name}: {bound}"
        for name, (*names, _) in EXCUSED.items()
        for bound in names
        if name not in known or bound not in bounds(known[name])
    ]
    assert not idle, f"these do not exist: {idle}"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("_ROWS_MAX = 5", ["_ROWS_MAX"]),
        ("CLOSE_S: Final = 5.0", ["CLOSE_S"]),
        ("_KEPT = 5", ["_KEPT"]),
        ("WAIT_S, WAIT_S_MAX = 1, 2", ["WAIT_S", "WAIT_S_MAX"]),
        ("TABLE = 'x'\nSTATUS = 1\ndef f():\n    rows_max = 5", []),
    ],
)
def test_a_bound_is_known_by_its_name(code, found):
    assert bounds(ast.parse(code)) == found
