"""Files and functions stay small enough to be read, and each module says what it owns."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.source import python_files, read, shown, tree

FILE_LINES_MAX = {"src": 400, "tools": 400, "tests": 450}
FUNCTION_LINES_MAX = 70


@pytest.mark.parametrize("folder", FILE_LINES_MAX)
def test_no_file_is_too_long(folder):
    long = {
        shown(path): lines
        for path in python_files(folder)
        if (lines := read(path).count("\n")) > FILE_LINES_MAX[folder]
    }
    assert not long, (
        f"more than {FILE_LINES_MAX[folder]} lines; give one of its nouns a file of its own: {long}"
    )


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
