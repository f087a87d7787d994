"""`duetime secret`: creates, lists and retires the secrets that sign webhooks, in a server's data folder."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime import wiring
from duetime.cli.commands.token import DataOption, FileOption, folder_of
from duetime.cli.ui import output

app = typer.Typer(help="Create, list and retire secrets that sign webhooks.", no_args_is_help=True)

UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="A host, or the beginning of a path: https://shop.example/hooks")
]


@app.command()
def new(
    url: UrlArgument, data: DataOption = None, file: FileOption = None, as_json: output.JsonFlag = False
) -> None:
    """Create a secret for an endpoint and print it. It is not shown again.

    A running server signs with it within a second. If the endpoint has a secret already, calls have the
    signatures of both, until `duetime secret retire` removes the older one.

    Examples:

      duetime secret new https://shop.example/hooks --data ./duetime-data
    """
    folder = folder_of(data, file)
    secret, row = wiring.new_secret(folder, url)
    if as_json:
        output.json({"url": row.url, "secret": secret, "secrets": row.secrets})
        return
    output.text(secret)
    output.words(
        f"A server on the folder {folder} signs calls to {row.url} with it (valid secrets: {row.secrets})."
    )


@app.command("list")
def list_(data: DataOption = None, file: FileOption = None, as_json: output.JsonFlag = False) -> None:
    """List the endpoints with their own secrets. The secrets are not shown.

    Examples:

      duetime secret list --data ./duetime-data
    """
    folder = folder_of(data, file)
    found = wiring.secrets(folder)
    if as_json:
        output.json(found)
    elif found:
        output.table(("url", "secrets"), [(row.url, row.secrets) for row in found], right=("secrets",))
    else:
        output.words(f"There are no secrets of endpoints for the server on {folder}.")


@app.command()
def retire(url: UrlArgument, data: DataOption = None, file: FileOption = None) -> None:
    """Remove the older secret of an endpoint: only the newest one signs.

    Examples:

      duetime secret retire https://shop.example/hooks --data ./duetime-data
    """
    row = wiring.retire_secret(folder_of(data, file), url)
    output.words(f"Calls to {row.url} are signed with the newest secret only.")


@app.command()
def delete(url: UrlArgument, data: DataOption = None, file: FileOption = None) -> None:
    """Delete the secrets of an endpoint. Its calls are signed with webhooks.secret, if that is set.

    Examples:

      duetime secret delete https://shop.example/hooks --data ./duetime-data
    """
    wiring.delete_secret(folder_of(data, file), url)
    output.words("Deleted.")
