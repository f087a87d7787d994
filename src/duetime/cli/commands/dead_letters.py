"""`duetime dead-letters`: lists, revives and purges dead letters."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from duetime.cli.args import filters, server
from duetime.cli.commands import intents
from duetime.client.http.client import Client
from duetime.client.http.requests import FilterFields
from duetime.wire.bulk import Bulk

app = typer.Typer(help="List, revive and purge dead letters.", no_args_is_help=True)

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID...", help="Ids (instead of filters).", show_default=False)
]  # fmt: skip
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of dead letters.")
]
AllFlag = Annotated[bool, typer.Option("--all", help="All dead letters, without a filter.")]
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@app.command("list")
@filters.with_filter("status")
@server.asks
def list_(
    filter: FilterFields,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")] = 50,
    every: Annotated[bool, typer.Option("--all", help="No limit: fetch all pages.")] = False,
    *,
    ask: server.Ask,
) -> None:
    """List dead letters with their last error, newest first.

    Examples:

      duetime dead-letters list --queue mail
    """
    intents.show_list(
        ask,
        lambda client, limit, cursor: client.dead_letters.list(limit=limit, cursor=cursor, **filter),
        None if every else limit,
        errors=True,
    )


@app.command()
@filters.with_filter("status")
@server.asks
def revive(
    filter: FilterFields,
    ids: IdsArgument = None,
    every: AllFlag = False,
    limit: LimitOption = 1_000,
    *,
    ask: server.Ask,
) -> None:
    """Retry many dead letters, each with a new set of attempts.

    Examples:

      duetime dead-letters revive --task mail.send --limit 100
    """
    _check(ids, filter, every)

    async def run(client: Client) -> Bulk:
        if ids:
            return await client.dead_letters.revive(ids)
        return await client.dead_letters.revive(limit=limit, **filter)

    intents.show_bulk("revived", ask(run), ask.as_json)


@app.command()
@filters.with_filter("status")
@server.asks
def purge(
    filter: FilterFields,
    ids: IdsArgument = None,
    every: AllFlag = False,
    limit: LimitOption = 1_000,
    yes: YesFlag = False,
    *,
    ask: server.Ask,
) -> None:
    """Delete dead letters permanently.

    Examples:

      duetime dead-letters purge --to "2030-01-31T00:00Z" --yes
    """
    _check(ids, filter, every)
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter(
                "there is no terminal to ask for confirmation: use --yes", param_hint="--yes"
            )
        which = f"these {len(ids)}" if ids else f"up to {limit}"
        typer.confirm(f"Permanently delete {which} dead letters?", abort=True, err=True)

    async def run(client: Client) -> Bulk:
        if ids:
            return await client.dead_letters.purge(ids)
        return await client.dead_letters.purge(limit=limit, **filter)

    intents.show_bulk("purged", ask(run), ask.as_json)


def _check(ids: list[str] | None, filter: FilterFields, every: bool) -> None:
    """Check that exactly one of ids, filter and --all is given."""
    if bool(ids) + bool(filter) + every != 1:
        raise typer.BadParameter("select dead letters by id, by a filter such as --queue, or with --all")
