"""The code in README.md and docs/ runs as it stands there.

Each page's ```python blocks run in order in one fresh process in an empty folder. A block whose first line
is `# name.py` is written to that file instead, and if it is a test file, pytest runs it there. A block
behind `<!-- not run -->` is left out. What a comment behind `print(...)` says is printed. Pages with ```sh
blocks that run are in tests/e2e/test_docs_server.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from duetime.cli.main import COMMANDS
from tests.e2e.process import ROOT, environment

PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]
NOT_RUN = "<!-- not run -->"
RUN = "<!-- run"
NAMED = re.compile(r"# ([\w/]+\.py)\n")
PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)
COMMAND = re.compile(r"^\s*(?:\$ )?duetime ([a-z-]+)", re.MULTILINE)


class Block(NamedTuple):
    line: int
    language: str
    code: str
    run: bool
    mark: str
    """The line before it, where that is a comment."""


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    lines = text.split("\n")
    start, before = 0, ""
    language: str | None = None
    for number, line in enumerate(lines):
        if language is None and line.startswith("```"):
            language, start = line[3:].strip(), number + 1
            before = next((each.strip() for each in reversed(lines[:number]) if each.strip()), "")
        elif language is not None and line.startswith("```"):
            code = "\n".join(lines[start:number]) + "\n"
            found.append(Block(start, language, code, before != NOT_RUN, before))
            language = None
    assert language is None, f"a block that begins at line {start} has no end"
    return found


def shows_a_server(text: str) -> bool:
    """Whether its commands run, against a server: then tests/e2e/test_docs_server.py runs the whole page."""
    return any(block.language == "sh" and block.mark.startswith(RUN) for block in blocks_of(text))


def python_blocks(text: str) -> list[Block]:
    return [block for block in blocks_of(text) if block.language == "python" and block.run]


def run_page(text: str, name: str, folder: Path) -> None:
    script = ["namespace = {'__name__': '__main__'}"]
    tests = []
    for block in python_blocks(text):
        named = NAMED.match(block.code)
        if named:
            (folder / named[1]).write_text(block.code)
            if Path(named[1]).name.startswith("test_"):
                tests.append(named[1])
        else:
            # As many empty lines before it as in the page: an error names the page's own line.
            code = "\n" * block.line + block.code
            script.append(f"exec(compile({code!r}, {name!r}, 'exec'), namespace)")
    if len(script) > 1:
        (folder / "run_page.py").write_text("\n".join(script))
        printed = run_in(folder, [sys.executable, "run_page.py"])
        for comment in PRINTED.findall("".join(block.code for block in python_blocks(text))):
            assert shown(comment).search(printed), f"{name}: {comment!r} is not what is printed:\n{printed}"
    if tests:
        run_in(folder, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests])


def shown(comment: str) -> re.Pattern[str]:
    """A line like the one in the comment: with any times, any numbers, and with anything for `...`."""
    words = re.sub(r"\d+ (ms|s|min|h)\b", "~", comment).replace("...", "@")
    pattern = re.sub(r"\d+", r"\\d+", re.escape(words))
    pattern = pattern.replace(re.escape("~"), r"[\d.]+ (ms|s|min|h)( \d+ \w+)*").replace("@", ".*")
    return re.compile(f"^{pattern}$", re.MULTILINE)


def run_in(folder: Path, command: list[str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{' '.join(command[1:])}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if python_blocks(text := page.read_text("utf-8")) and not shows_a_server(text)],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_code_of_a_page_runs(page, tmp_path):
    run_page(page.read_text("utf-8"), page.name, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_exists(page):
    shown = [
        block.code for block in blocks_of(page.read_text("utf-8")) if block.language in ("sh", "console")
    ]
    unknown = {name for code in shown for name in COMMAND.findall(code)} - set(COMMANDS)
    assert not unknown, f"{page.name} shows commands that do not exist: {unknown}"


PAGE = """
```python
x = 1
```
<!-- not run -->

```python
x = 2
```

```sh
duetime frobnicate
```

```python
assert x == 1
{last}
```
"""


def test_a_block_that_fails_is_noticed_with_its_line(tmp_path):
    run_page(PAGE.format(last="print(x)"), "page.md", tmp_path)
    with pytest.raises(AssertionError, match=r'File "page.md", line 17'):
        run_page(PAGE.format(last="raise ValueError"), "page.md", tmp_path)


def test_a_line_that_is_not_printed_is_noticed(tmp_path):
    page = "```python\nprint('a-17 took 3 ms')  # {}\n```\n"
    run_page(page.format("a... took 250 ms"), "page.md", tmp_path)
    with pytest.raises(AssertionError, match="is not what is printed"):
        run_page(page.format("a... lasted 3 ms"), "page.md", tmp_path)


def test_a_test_that_fails_is_noticed(tmp_path):
    page = "```python\n# test_it.py\ndef test_it():\n    assert {}\n```\n"
    run_page(page.format(True), "page.md", tmp_path)
    with pytest.raises(AssertionError, match="1 failed"):
        run_page(page.format(False), "page.md", tmp_path)


def test_a_block_without_an_end_is_noticed():
    with pytest.raises(AssertionError, match="no end"):
        blocks_of("```python\nx = 1\n")
