"""`duetime token`: tokens for a server, made beside its data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duetime import config, wiring
from duetime.cli import output

app = typer.Typer(help="Make tokens for a server.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Make tokens for a server."""


@app.command()
def new(
    role: Annotated[
        str, typer.Option("--role", metavar="read|submit|worker|admin", help="What its bearer may do.")
    ] = "submit",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What it is for.")] = "token",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="The server's data folder.", show_default=False),
    ] = None,
    file: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read this file.")] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Make a token and print it. Only its hash is kept: this is the one time it can be read.

    A running server asks for tokens from the first one on, and knows each new one at once.

    Examples:

      export DUETIME_TOKEN=$(duetime token new --role admin --name me --data ./duetime-data)
    """
    folder = data if data is not None else Path(config.load(file).config.data.dir)
    token = wiring.new_token(folder, role, name)
    if as_json:
        output.json({"name": name, "role": role, "token": token})
        return
    output.text(token)
    output.words(f"A token for {name!r} that may {role}, for the server on {folder}. It is not shown again.")
