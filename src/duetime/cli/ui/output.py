"""What a person or a program sees of a command: data on stdout, words on stderr.

Whatever a script may want to read goes to stdout, as a table for people or as JSON with `--json`.
Everything else (what is being done, warnings, errors) goes to stderr. Colours appear on a terminal
only, and a table that is piped is never folded or cut to a width.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duetime.errors import DuetimeError
from duetime.plain import plain, plain_json

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Wide enough that no line is folded when nobody looks at it on a screen.
PIPED_COLUMNS = 10_000


def _console(stream: TextIO) -> Console:
    # Made for each use: tests and callers may have put another stream in its place.
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
    """How many signs a line of stdout may have: as many as one likes when nobody looks at it."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_COLUMNS


def json(value: Any) -> None:
    """One JSON document on stdout, indented for people and on one line for programs."""
    encoded = msgspec.json.encode(value)
    if sys.stdout.isatty():
        encoded = msgspec.json.format(encoded, indent=2)
    sys.stdout.write(plain_json(encoded) + "\n")


def json_line(value: Any) -> None:
    """One of many JSON documents on stdout, each on a line of its own."""
    json_part(msgspec.json.encode(value) + b"\n")
    sys.stdout.flush()  # somebody may be waiting for it behind a pipe


def json_part(encoded: bytes) -> None:
    """A piece of a JSON document on stdout, as it is encoded."""
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
    # Rich fills the last column with spaces, which only gets in the way of other tools.
    for line in capture.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def facts(found: Mapping[str, str]) -> None:
    """Names and values on stdout, one a line."""
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
    """One line of data on stdout, parts of it in a colour where there are colours."""
    shown = [plain(part) if isinstance(part, str) else (plain(part[0]), part[1]) for part in parts]
    _console(sys.stdout).print(Text.assemble(*shown), soft_wrap=True)
    sys.stdout.flush()  # somebody may be waiting for it behind a pipe


def command() -> str:
    """How this program was called, for lines that somebody may type."""
    called = Path(sys.argv[0])
    if called.name != "duetime":
        return "duetime"
    if called.is_absolute() and called.is_relative_to(Path.cwd()):
        called = called.relative_to(Path.cwd())
    return "duetime" if shutil.which("duetime") == str(Path.cwd() / called) else str(called)


def words(message: str, *, style: str | None = None) -> None:
    """One line for the person, on stderr."""
    _console(sys.stderr).print(plain(message), style=style)


def fail(error: DuetimeError) -> None:
    """What went wrong and what to do about it, on stderr."""
    console = _console(sys.stderr)
    console.print(Text.assemble(("error: ", "bold red"), plain(error.message)))
    if error.advice:
        console.print(Text.assemble(("hint: ", "bold"), plain(error.advice)))
