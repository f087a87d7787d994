"""The output of commands: data on stdout, messages on stderr.

Data goes to stdout, as a table or, with `--json`, as JSON. Everything else (progress, warnings, errors) goes
to stderr. Colours are used only on a terminal, and a piped table is never wrapped or cut.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duetime.errors import DuetimeError
from duetime.safe_text import plain, plain_json

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Wide enough that no line is wrapped if the output is not a terminal.
PIPED_COLUMNS = 10_000


def _console(stream: TextIO) -> Console:
    # Created for each use: tests and callers may replace the stream.
    on_screen = stream.isatty()
    return Console(
        file=stream,
        force_terminal=on_screen,
        no_color=None if on_screen else True,
        width=None if on_screen else PIPED_COLUMNS,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
    )


def width() -> int:
    """The width of a line on stdout; practically unlimited if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_COLUMNS


def json(value: object) -> None:
    """One JSON document on stdout: indented on a terminal, otherwise on one line."""
    encoded = msgspec.json.encode(value)
    if sys.stdout.isatty():
        encoded = msgspec.json.format(encoded, indent=2)
    sys.stdout.write(plain_json(encoded) + "\n")


def json_line(value: object) -> None:
    """One of several JSON documents on stdout, each on its own line."""
    json_part(msgspec.json.encode(value) + b"\n")
    sys.stdout.flush()  # a reader may wait for it at the other end of a pipe


def json_part(encoded: bytes) -> None:
    """A part of an encoded JSON document on stdout."""
    sys.stdout.write(plain_json(encoded))


def text(line: str) -> None:
    """One line of data on stdout."""
    sys.stdout.write(plain(line) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Rows on stdout under a heading; the columns named in `right` are aligned to the right."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        grid.add_column(
            Text(plain(column)),
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=not sys.stdout.isatty(),
        )
    for row in rows:
        grid.add_row(*(Text(plain(str(cell))) for cell in row))
    console = _console(sys.stdout)
    with console.capture() as capture:
        console.print(grid, soft_wrap=False)
    # Rich pads the last column with spaces, which disturbs other tools.
    for line in capture.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def facts(found: Mapping[str, str]) -> None:
    """Names and values on stdout, one per line."""
    if sys.stdout.isatty():
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in found.items():
            grid.add_row(Text(plain(name)), Text(plain(value)))
        _console(sys.stdout).print(grid, soft_wrap=False)
        return
    names = {plain(name): value for name, value in found.items()}
    width = max(map(len, names), default=0)
    for name, value in names.items():
        text(f"{name:<{width}}  {value}".rstrip())


def title(name: str) -> None:
    """A heading of data on stdout."""
    _console(sys.stdout).print(Text(plain(name), style="bold"))


def line(*parts: tuple[str, str] | str) -> None:
    """One line of data on stdout, with colours on a terminal."""
    shown = [plain(part) if isinstance(part, str) else (plain(part[0]), part[1]) for part in parts]
    _console(sys.stdout).print(Text.assemble(*shown), soft_wrap=True)
    sys.stdout.flush()  # a reader may wait for it at the other end of a pipe


def command() -> str:
    """The command with which this program was started, for suggested commands."""
    called = Path(sys.argv[0])
    if called.name != "duetime":
        return "duetime"
    if called.is_absolute() and called.is_relative_to(Path.cwd()):
        called = called.relative_to(Path.cwd())
    return "duetime" if shutil.which("duetime") == str(Path.cwd() / called) else str(called)


def words(message: str, *, style: str | None = None) -> None:
    """One message on stderr."""
    _console(sys.stderr).print(plain(message), style=style)


def fail(error: DuetimeError) -> None:
    """An error and its hint, on stderr."""
    console = _console(sys.stderr)
    console.print(Text.assemble(("error: ", "bold red"), plain(error.message)))
    if error.advice:
        console.print(Text.assemble(("hint: ", "bold"), plain(error.advice)))
