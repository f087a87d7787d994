"""Functions stay small enough to be read, and each module says what it owns."""

from __future__ import annotations

import ast

from tests.tidy.source import python_files, shown, tree

FUNCTION_LINES_MAX = 70


def test_no_function_is_too_long():
    long = []
    for path in python_files("src", "tests", "tools"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long.append(f"{shown(path)}:{node.lineno} {node.name} has {lines}")
    assert not long, (
        f"more than {FUNCTION_LINES_MAX} lines; keep the ifs and move the straight parts out: {long}"
    )


def test_every_module_says_what_it_owns():
    silent = [
        shown(path) for path in python_files("src", "tests", "tools") if not ast.get_docstring(tree(path))
    ]
    assert not silent, f"these begin without a docstring: {silent}"
