"""Move modules and rewrite everything that names them: `python -m tools.move moves.txt`.

Each line of the file has the old and the new place of a module, both below `duetime`, for example
`api.quick api.http.fast_path`. Files and their unit tests are moved with `git mv`, so that history follows.
Imports are rewritten by syntax: names that a file uses for an imported module are renamed with it. If the new
name is taken in that file, the old name stays as an alias, and the file is listed. Dotted names and paths in
texts follow too.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "duetime"
SOURCES = ("src", "tests", "tools", "bench", "examples")
TEXTS = ("**/*.md", "*.toml", "**/*.yaml", "**/*.yml", "Makefile")
SKIPPED = ("build", "node_modules")


def main(arguments: list[str]) -> int:
    moves = dict(_read(Path(arguments[0])))
    for old, new in moves.items():
        _move(_path(old), _path(new))
    for old, new in moves.items():
        if _test(old).exists():
            _move(_test(old), _test(new))
    words = _words(moves)
    kept = [line for path in _files(SOURCES, "*.py") for line in Rewriter(path, moves, words).run()]
    for path in _texts():
        text = path.read_text()
        if (changed := words(text)) != text:
            path.write_text(changed)
    sys.stdout.write("".join(f"{line}\n" for line in kept))
    return 0


def _read(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words:
            old, new = words
            yield f"{PACKAGE}.{old}", f"{PACKAGE}.{new}"


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    init = target.parent / "__init__.py"
    if target.is_relative_to(ROOT / "src") and not init.exists():
        init.write_text(f'"""{target.parent.name.replace("_", " ").capitalize()}."""\n')
        subprocess.run(["git", "add", str(init)], check=True, cwd=ROOT)
    subprocess.run(["git", "mv", str(source), str(target)], check=True, cwd=ROOT)


def _path(module: str) -> Path:
    return ROOT / "src" / (module.replace(".", "/") + ".py")


def _test(module: str) -> Path:
    """The unit test of a module stands at the same place."""
    *rooms, name = module.split(".")[1:]
    return ROOT.joinpath("tests", "unit", *rooms, f"test_{name}.py")


def _files(folders: tuple[str, ...], pattern: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob(pattern))


class Rewriter:
    """The imports of one file, and the names that follow from them."""

    def __init__(self, path: Path, moves: dict[str, str], words: Callable[[str], str]) -> None:
        self._path = path
        self._moves = moves
        self._words = words
        self._text = path.read_text()
        self._tree = ast.parse(self._text)
        self._kept: list[str] = []
        self._bound = _bound_names(self._tree)

    def run(self) -> list[str]:
        edits: list[tuple[int, int, str]] = []
        renames: dict[str, str] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                new = self._from(node, renames)
                if new is not None:
                    edits.append((*self._span(node), new))
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and node.id in renames and isinstance(node.ctx, ast.Load):
                edits.append((*self._span(node), renames[node.id]))
        text = self._text
        parts, done = [], 0
        for start, end, new in sorted(edits):  # texts outside of these are rewritten by their words
            parts += [self._words(text[done:start]), new]
            done = end
        text = "".join((*parts, self._words(text[done:])))
        if text != self._text:
            self._path.write_text(text)
        return self._kept

    def _from(self, node: ast.ImportFrom, renames: dict[str, str]) -> str | None:
        assert node.module is not None
        indent = " " * node.col_offset
        if node.module in self._moves:
            return _statement(self._moves[node.module], [_named(each) for each in node.names])
        lines: dict[str, list[str]] = {}
        moved = False
        for each in node.names:
            new = self._moves.get(f"{node.module}.{each.name}")
            if new is None:
                lines.setdefault(node.module, []).append(_named(each))
                continue
            moved = True
            package, _, name = new.rpartition(".")
            alias = each.asname
            if alias is None and name != each.name:
                if name in self._bound:
                    alias = each.name
                    self._kept.append(f"{self._path.relative_to(ROOT)}: {name} is taken, {each.name} stays")
                else:
                    renames[each.name] = name
            lines.setdefault(package, []).append(f"{name} as {alias}" if alias and alias != name else name)
        if not moved:
            return None
        return f"\n{indent}".join(_statement(module, names) for module, names in lines.items())

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        lines = self._text.splitlines(keepends=True)
        assert node.end_lineno is not None and node.end_col_offset is not None

        def place(line: int, column: int) -> int:
            before = lines[line - 1].encode()[:column].decode()
            return sum(map(len, lines[: line - 1])) + len(before)

        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)


def _bound_names(tree: ast.AST) -> set[str]:
    """Every name that the file gives to something."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update((each.asname or each.name).partition(".")[0] for each in node.names)
        elif (isinstance(node, ast.ExceptHandler) and node.name is not None) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name is not None
        ):
            bound.add(node.name)
    return bound


def _named(each: ast.alias) -> str:
    return each.name if each.asname is None else f"{each.name} as {each.asname}"


def _statement(module: str, names: list[str]) -> str:
    return f"from {module} import {', '.join(names)}"


def _words(moves: dict[str, str]) -> Callable[[str], str]:
    """Rewrites dotted names and paths in a text. The longest first: one may begin another."""
    table: dict[str, str] = {}
    for old, new in moves.items():
        table[old] = new
        below_old, below_new = (each.replace(".", "/").removeprefix(f"{PACKAGE}/") for each in (old, new))
        table[f"{below_old}.py"] = f"{below_new}.py"
        test_old, test_new = (str(_test(each).relative_to(ROOT / "tests")) for each in (old, new))
        if (ROOT / "tests" / test_new).exists():
            table[f"tests/{test_old}"] = f"tests/{test_new}"
            table[test_old] = test_new
    longest = sorted(table, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, longest))})(?![\w])")
    return lambda text: pattern.sub(lambda found: table[found[1]], text)


def _texts() -> Iterator[Path]:
    for pattern in TEXTS:
        for path in sorted(ROOT.glob(pattern)):
            if not any(part.startswith(".") or part in SKIPPED for part in path.relative_to(ROOT).parts):
                yield path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
