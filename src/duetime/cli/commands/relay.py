"""`duetime relay`: sends the rows of an outbox to a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from duetime.cli.args.server import TokenOption, UrlOption
from duetime.cli.ui import output
from duetime.client.app.app import App
from duetime.client.http.address import url_of
from duetime.contrib.outbox.rows import TABLE
from duetime.contrib.relay import Relay
from duetime.errors import BadConfig
from duetime.limits import RELAY_BATCH, RELAY_BATCH_MAX, RELAY_POLL_S
from duetime.safe_text import log_to_stderr


def relay(
    database: Annotated[
        str, typer.Argument(metavar="DATABASE", help="SQLAlchemy URL: postgresql+psycopg://...")
    ],
    table: Annotated[str, typer.Option("--table", help="Outbox table.")] = TABLE,
    schema: Annotated[str | None, typer.Option("--schema", help="Database schema of the table.")] = None,
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=RELAY_BATCH_MAX, help="Rows per batch.")
    ] = RELAY_BATCH,
    poll: Annotated[
        float, typer.Option("--poll", metavar="SECONDS", min=0.01, help="Polling interval.")
    ] = RELAY_POLL_S,
    once: Annotated[bool, typer.Option("--once", help="Relay all waiting rows, then exit.")] = False,
    retry_refused: Annotated[bool, typer.Option("--retry-refused", help="Send refused rows again.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Only print the number of rows.")] = False,
    url: UrlOption = None,
    token: TokenOption = None,
) -> None:
    """Send the rows of an outbox to a server, until SIGTERM or Ctrl-C.

    The outbox is a table in an application's database, written by duetime.contrib.sqlalchemy or
    duetime.contrib.django. Several relays can run at the same time. Refused rows are kept with the reason.
    The relay waits for an unreachable server; with --once this is an error.

    Examples:

      duetime relay postgresql+psycopg://shop@db/shop

      duetime relay sqlite:///shop.db --status
    """
    log_to_stderr()
    made = _relay(database, table, schema, App(url_of(url), token=token), batch, poll)
    with _told():
        if retry_refused or status:
            asyncio.run(_prepare(made, retry_refused, status))
        if not status:
            output.words(f"Relaying {table} to {made.app.where}.")
            made.run(once=once)
            output.text(f"{made.relayed} relayed, {made.refused} refused.")


@contextmanager
def _told() -> Iterator[None]:
    """Inside, a database that does not answer or has no outbox raises an error with a hint."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        said = str(error.orig).strip().split("\n")[0].removesuffix(".")
        raise BadConfig(
            f"The outbox cannot be read: {said}.",
            hint="Check the database's address and the outbox's table (--table, --schema).",
        ) from error


def _relay(database: str, table: str, schema: str | None, app: App, batch: int, poll_s: float) -> Relay:
    try:
        import sqlalchemy

        from duetime.contrib.sqlalchemy import rows_of, table_in
    except ModuleNotFoundError as error:
        raise BadConfig(
            f"A relay needs the package {error.name!r}.",
            hint="Install it: pip install 'duetime[sqlalchemy]'.",
        ) from error
    try:
        engine = sqlalchemy.create_engine(database)
    except (sqlalchemy.exc.SQLAlchemyError, ModuleNotFoundError) as error:
        raise BadConfig(f"The database cannot be used: {error}.", hint="See SQLAlchemy's URLs.") from error
    rows = rows_of(table_in(sqlalchemy.MetaData(), table, schema), engine)
    return Relay(app, rows, batch=batch, poll_s=poll_s)


async def _prepare(made: Relay, retry_refused: bool, status: bool) -> None:
    if retry_refused:
        output.words(f"{await made.rows.reopen()} refused rows are sent again.")
    if status:
        count = await made.rows.count()
        output.text(f"{count.waiting} waiting, {count.refused} refused.")
    await made.rows.close()
