"""`duetime token`: creates, lists and revokes the tokens of a server, in its data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duetime import config, wiring
from duetime.cli.ui import output

app = typer.Typer(help="Create, list and revoke tokens of a server.", no_args_is_help=True)

DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="The server's data folder.", show_default=False),
]
FileOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Configuration file.")]


@app.callback()
def _group() -> None:
    """Create, list and revoke tokens of a server."""


@app.command()
def new(
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="read|submit|worker|admin",
            help="Permissions of the token (default: submit); may be repeated.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the token.")] = "token",
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Maximum intents per period: 100/s, 5000/h."),
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(
            "--burst", metavar="N", help="Maximum at once after a pause (default: the number in --rate)."
        ),
    ] = None,
    queues: Annotated[
        str, typer.Option("--queues", metavar="A,B", help="Allow only these queues (roles worker, submit).")
    ] = "",
    entity_types: Annotated[
        str, typer.Option("--entity-types", metavar="A,B", help="Allow only these entity types.")
    ] = "",
    data: DataOption = None,
    file: FileOption = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Create a token and print it. Only its hash is stored, so it cannot be shown again.

    A running server requires tokens as soon as the first one exists, and accepts new ones immediately.

    Examples:

      export DUETIME_TOKEN=$(duetime token new --role admin --name me --data ./duetime-data)

      duetime token new --name shop --rate 100/s --burst 10 --data ./duetime-data

      duetime token new --role worker --name mailer --queues mail,sms --data ./duetime-data

      duetime token new --role worker --role submit --name shop-worker --data ./duetime-data
    """
    folder = folder_of(data, file)
    role = ",".join(roles or ["submit"])
    own_queues, own_types = _names(queues), _names(entity_types)
    token = wiring.new_token(folder, wiring.TokenRow(name, role, rate, burst, own_queues, own_types))
    if as_json:
        limit = {} if rate is None else {"rate": rate, "burst": burst}
        scope = {"queues": own_queues, "entityTypes": own_types} if own_queues or own_types else {}
        output.json({"name": name, "role": role, "token": token} | limit | scope)
        return
    output.text(token)
    output.words(
        f"Created token {name!r} with role {role} for the server on {folder}. It is not shown again."
    )


@app.command("list")
def list_(data: DataOption = None, file: FileOption = None, as_json: output.JsonFlag = False) -> None:
    """List the tokens with names and permissions. The tokens themselves are not stored.

    Examples:

      duetime token list --data ./duetime-data
    """
    folder = folder_of(data, file)
    found = wiring.tokens(folder)
    if as_json:
        output.json(found)
    elif found:
        rows = [
            (
                each.name, each.role, each.rate or "", each.burst or "", ", ".join(each.queues),
                ", ".join(each.entity_types),
            )
            for each in found
        ]  # fmt: skip
        columns = ("name", "role", "rate", "burst", "queues", "entity types")
        shown = [place for place in range(len(columns)) if place < 2 or any(row[place] for row in rows)]
        cells = [[row[place] for place in shown] for row in rows]
        output.table([columns[place] for place in shown], cells, right=("burst",))
    else:
        output.words(f"There are no tokens for the server on {folder}.")


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name, as `list` shows it.")],
    data: DataOption = None,
    file: FileOption = None,
) -> None:
    """Revoke a token: a running server refuses it immediately.

    Examples:

      duetime token revoke me --data ./duetime-data
    """
    another_is_left = wiring.revoke_token(folder_of(data, file), name)
    output.words(f"Token {name!r} is revoked.")
    if not another_is_left:
        output.words(
            "It was the last token. A running server refuses all requests until a new token exists; "
            "a server that starts without tokens requires none."
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in text.split(",") if (name := each.strip())))


def folder_of(data: Path | None, file: Path | None) -> Path:
    return data if data is not None else Path(config.load(file).config.data.dir)
