"""`duetime backup`: copies a data folder, even while its server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duetime import config, wiring
from duetime.cli.ui import output


def backup(
    to: Annotated[Path, typer.Argument(metavar="TO", help="Target folder; must be empty or not exist.")],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The data folder.", show_default=False)
    ] = None,
    file: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Configuration file.")] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Copy a data folder, even while its server runs, and verify every byte of the copy.

    The copy contains everything up to a log position, which is printed. Start a server on the copy with
    `duetime serve --data TO`. Never run the copy and the original together: every intent would run twice.

    Examples:

      duetime backup /backups/monday --data ./duetime-data
    """
    folder = data if data is not None else Path(config.load(file).config.data.dir)
    made = wiring.backup(folder, to)
    if as_json:
        output.json(made)
        return
    output.text(str(made.position))
    output.words(
        f"{to} contains everything up to position {made.position}: {made.intents} intents,"
        f" {made.segments} segments, {made.bytes} bytes of log. Every byte was verified."
    )
