"""Finds the files of the repository and reads their code without its texts and comments."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "duetime"

# A line that ends in this comment, with a reason, is excused from the banned words.
EXCUSE = "# tidy: "

FOLDERS = ("src", "tests", "tools", "docs", "examples", "deploy", ".ci")
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".txt",
    ".toml",
    ".json",
    ".html",
    ".js",
    ".css",
    ".sh",
    ".yml",
    ".yaml",
    ".service",
}
TEXT_NAMES = {"Makefile", "Dockerfile", "LICENSE", "run", ".gitignore"}


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    """Everything a person may read here, found without asking git."""
    found = list(ROOT.iterdir())
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*")
    return sorted(
        path for path in found if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES)
    )


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def read(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(read(path), shown(path))


@cache
def code_lines(path: Path) -> tuple[tuple[int, str], ...]:
    """The lines of a file with texts emptied and comments gone, without the excused ones."""
    text = read(path)
    return tuple(
        (number, line)
        for number, (line, whole) in enumerate(zip(_blanked(text), text.split("\n"), strict=True), start=1)
        if line.strip() and EXCUSE not in whole
    )


def _blanked(text: str) -> Iterator[str]:
    lines = [list(line) for line in text.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.STRING, tokenize.COMMENT):
            continue
        (first, start), (last, end) = token.start, token.end
        for row in range(first, last + 1):
            left = start if row == first else 0
            right = end if row == last else len(lines[row - 1])
            lines[row - 1][left:right] = " " * (right - left)
    return ("".join(line) for line in lines)
