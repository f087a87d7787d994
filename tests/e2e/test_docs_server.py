"""The commands of pages that show a server run as they stand there, against a real one.

A page's blocks run in order in one shell, as somebody would type them, in a folder in which a server runs on
`duetime-data`. The ports of the page (7928, 7929 and 9000 for a receiver) are replaced by free ones. The
comment before a ```sh block says what to do with it:

    <!-- run -->                                          run it; it must succeed
    <!-- run in another terminal -->                      start it, and leave it running
    <!-- run in another terminal, which shows: TEXT -->   and before the page ends, TEXT must come out of it
    <!-- not run -->                                      leave it out

```python blocks run at their place, each in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from duetime import limits
from duetime.cli.commands.receive import PORT as RECEIVER_PORT
from tests.e2e.process import ROOT, environment
from tests.e2e.test_docs import NAMED, NOT_RUN, PAGES, Block, blocks_of, shows_a_server
from tests.http.server import ServerProcess

MARK = re.compile(r"<!-- run(?P<aside> in another terminal(?:, which shows: (?P<shows>.+))?)? -->")
SERVED = [page for page in PAGES if shows_a_server(page.read_text("utf-8"))]
WAIT_S, PAGE_S = 60, 180

# Says which block failed; ends what was started aside.
HEAD = """\
set -euo pipefail
trap 'echo "the block at line $LINE failed" >&2' ERR
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
"""
ASIDE = """\
( {code} ) >aside{number} 2>&1 &
timeout {wait} grep -q -m1 . <(tail --pid=$$ -n +1 -F aside{number} 2>/dev/null)
"""
SHOWN = """\
timeout {wait} grep -qm1 -e {text} <(tail --pid=$$ -n +1 -F aside{number}) || {{ cat aside{number}; exit 1; }}
"""


def script_of(blocks: list[Block], folder: Path, ports: dict[int, int]) -> str:
    """The page as one shell script."""
    lines, shown = [HEAD], []
    for number, block in enumerate(blocks):
        if not block.run or block.language not in ("sh", "python"):
            continue
        lines.append(f"LINE={block.line}\n")
        code = ported(block.code, ports)
        if block.language == "python":
            lines.append(python_line(code, f"block{number}.py", folder))
            continue
        mark = MARK.fullmatch(block.mark)
        assert mark, f"line {block.line}: say before the block whether it is run, or {NOT_RUN}"
        if not mark["aside"]:
            lines.append(code)
            continue
        lines.append(ASIDE.format(code=code.strip(), number=number, wait=WAIT_S))
        if mark["shows"]:
            text = shlex.quote(mark["shows"])
            shown.append(f"LINE={block.line}\n" + SHOWN.format(text=text, number=number, wait=WAIT_S))
    return "".join([*lines, *shown])


def python_line(code: str, name: str, folder: Path) -> str:
    named = NAMED.match(code)
    file = named[1] if named else name
    (folder / file).write_text(code)
    if named and not Path(file).name.startswith("test_"):
        return ""
    pytest = "-m pytest -q -p no:cacheprovider " if named else ""
    return f"{shlex.quote(sys.executable)} {pytest}{file}\n"


def ported(code: str, ports: dict[int, int]) -> str:
    for old, new in ports.items():
        code = re.sub(rf"\b{old}\b", str(new), code)
    return code


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def run_page(text: str, folder: Path) -> None:
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, module in (("duetime", "-m duetime "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module}"$@"\n')
        (programs / name).chmod(0o755)
    with ServerProcess(folder / "duetime-data") as server:
        ports = {
            limits.HTTP_PORT: int(server.url.rpartition(":")[2]),
            limits.GRPC_PORT: int(server.grpc.rpartition(":")[2]),
            RECEIVER_PORT: free_port(),
        }
        (folder / "page.sh").write_text(script_of(blocks_of(text), folder, ports))
        env = {**environment(), "DUETIME_URL": server.url}
        env["PATH"] = f"{programs}:{env['PATH']}"
        with subprocess.Popen(
            ["bash", "page.sh"], cwd=folder, env=env, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as shell:  # fmt: skip
            try:
                said, _ = shell.communicate(timeout=PAGE_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)  # what it started aside, if it is still there
    assert shell.returncode == 0, said


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="the pages use curl")


@needs_curl
@pytest.mark.parametrize("page", SERVED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run(page, tmp_path):
    run_page(page.read_text("utf-8"), tmp_path)


def test_the_pages_that_show_a_server_are_here():
    names = {page.relative_to(ROOT).as_posix() for page in SERVED}
    assert {"README.md", "docs/server.md", "docs/operations.md"} <= names


def test_make_run_starts_the_server():
    for arguments in ("", "--port 7930"):
        # The tests themselves may run under make, which tells its children what it was told.
        command = ["make", "-n", "--no-print-directory", "run", f"ARGS={arguments}"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert shown.stdout.splitlines()[-1].strip() == f".venv/bin/duetime serve {arguments}".strip()


PAGE = """
<!-- run in another terminal, which shows: {shows} -->
```sh
duetime receive --port 9000
```

<!-- run -->
```sh
id=$(duetime schedule http://localhost:9000/hook --payload '"hello"')
```

```python
from duetime.client.http.client import Client

with Client() as client:
    assert [intent.callback.url[-10:] for intent in client.every()] == ["{port}/hook"[-10:]]
```

<!-- run -->
```sh
{last}
```
"""


def page(shows: str = "hello", last: str = "duetime why $id", port: str = "9000") -> str:
    return PAGE.format(shows=shows, last=last, port=port)


@needs_curl
def test_a_page_runs_as_it_is_typed(tmp_path):
    run_page(page(), tmp_path)


@needs_curl
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (page(last="duetime why nobody-knows"), "the block at line 20 failed"),
        (page(port="1"), "the block at line 12 failed"),
        ("<!-- run -->\n```sh\ntrue\n```\n```sh\ntrue\n```\n", "say before the block whether it is run"),
    ],
)
def test_an_error_in_a_page_is_found(text, said, tmp_path):
    with pytest.raises(AssertionError, match=said):
        run_page(text, tmp_path)


@needs_curl
def test_a_missing_delivery_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.e2e.test_docs_server.WAIT_S", 3)
    with pytest.raises(AssertionError, match="Waiting for webhooks"):
        run_page(page(shows="never said"), tmp_path)
