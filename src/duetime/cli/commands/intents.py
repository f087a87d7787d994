"""`duetime get`, `list`, `why`, `history`, `logs`, `cancel`, `fire`, `patch`, `revive`: one call each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Raw, Struct

from duetime.cli.args import filters, options, server, time_args
from duetime.cli.ui import output, render
from duetime.client.app.call import Call
from duetime.client.http.client import Client
from duetime.client.http.requests import FilterFields
from duetime.errors import DuetimeError, Refused
from duetime.limits import PAGE_MAX
from duetime.wire.bulk import Bulk
from duetime.wire.history import History, Why
from duetime.wire.intent import Intent
from duetime.wire.progress import Logs

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The intent's id.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="One or more intent ids.")]
RevisionOption = Annotated[
    int | None,
    typer.Option(
        "--revision", metavar="N", min=1, help="Refuse if the intent has changed since this revision."
    ),
]


@server.asks
def get(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Show all fields of an intent.

    Examples:

      duetime get order-7 --json
    """
    ask.show(lambda client: client.get(id), render.intent)


@server.asks
def why(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Explain in one sentence why an intent has not run yet, or how it ended.

    Examples:

      duetime why order-7
    """
    ask.show(lambda client: client.why(id), _show_why)


def _show_why(found: Why) -> None:
    output.text(found.sentence)
    if found.data:
        output.facts({render.words(name): render.cell(value) for name, value in found.data.items()})


@server.asks
def history(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Show every state transition of an intent, with times.

    Examples:

      duetime history order-7
    """
    ask.show(lambda client: client.history(id), _show_history)


def _show_history(found: History) -> None:
    rows = [(time_args.shown(e.at), e.status, e.delivery or "", e.note or "") for e in found.entries]
    output.table(("time", "status", "delivery", "note"), rows, right=("delivery",))


@server.asks
def logs(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Show the log lines of an intent's newest attempt, after it has ended.

    Examples:

      duetime logs order-7
    """
    ask.show(lambda client: client.logs(id), _show_logs)


def _show_logs(found: Logs) -> None:
    for line in found.lines:
        output.text(line)
    if not found.lines:
        output.words("The newest attempt logged nothing, or has not ended.")


# Lists.


class _Page(Struct, rename="camel"):
    items: list[Raw]
    next_cursor: str | None = None


@filters.with_filter()
@server.asks
def list_(
    filter: FilterFields,
    order: Annotated[
        str, typer.Option("--order", metavar="newest|due", help="Newest first, or next due first.")
    ] = "newest",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")] = 50,
    every: Annotated[bool, typer.Option("--all", help="No limit: fetch all pages.")] = False,
    *,
    ask: server.Ask,
) -> None:
    """List intents.

    Examples:

      duetime list --status dead_lettered --tag customer=7

      duetime list --order due --from now --to "in 1h" --all --json
    """
    show_list(
        ask,
        lambda client, limit, cursor: client.list(order=order, limit=limit, cursor=cursor, **filter),
        None if every else limit,
    )


def show_list(
    ask: server.Ask,
    page_of: Callable[[Client, int, str | None], Awaitable[Any]],
    limit: int | None,
    *,
    errors: bool = False,
) -> None:
    """Fetch and show all pages."""

    async def pages(client: Client) -> AsyncIterator[_Page]:
        left, cursor = (1 << 62 if limit is None else limit), None
        while left > 0:
            page = msgspec.json.decode(await page_of(client, min(left, PAGE_MAX), cursor), type=_Page)
            left, cursor = left - len(page.items), page.next_cursor
            yield page
            if cursor is None:
                return

    async def show(client: Client) -> None:
        if ask.as_json:
            await _print_pages(pages(client))
        else:
            await _show_pages(pages(client), errors)

    ask(show, as_sent=True)


async def _print_pages(pages: AsyncIterator[_Page]) -> None:
    """Write all pages as one document with the form of the API, each page as it arrives."""
    cursor, separator = None, b'{"items":['
    async for page in pages:  # the first page may fail: then nothing is written
        for item in page.items:
            output.json_part(separator + bytes(item))
            separator = b","
        cursor = page.next_cursor
    end = b'],"nextCursor":%b}\n' % msgspec.json.encode(cursor)
    output.json_part(end if separator == b"," else separator + end)


async def _show_pages(pages: AsyncIterator[_Page], errors: bool) -> None:
    found: list[Intent] = []
    cursor = None
    async for page in pages:
        found += [msgspec.json.decode(item, type=Intent) for item in page.items]
        cursor = page.next_cursor
    render.intents(found, errors=errors)
    if cursor is not None:
        output.words(f"There are more than these {len(found)} intents: use --limit or --all.")
    elif not found:
        output.words("There are none.")


# Changes.


@filters.with_filter()
@server.asks
def cancel(
    filter: FilterFields,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Ids (instead of filters).", show_default=False),
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Also cancel dependents and group members.")] = False,
    revision: RevisionOption = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of intents of a filter.")
    ] = 1_000,
    *,
    ask: server.Ask,
) -> None:
    """Cancel intents, even while they run: by id, or all that match a filter.

    Examples:

      duetime cancel order-7 order-8

      duetime cancel nightly-report --tree

      duetime cancel --queue mail --tag customer=7
    """
    if bool(ids) == bool(filter):
        raise typer.BadParameter("select intents by id, or by a filter such as --queue")
    if not ids:
        if tree or revision is not None:
            raise typer.BadParameter("--tree and --revision need ids")
        found = ask(lambda client: client.cancel_many(limit=limit, **filter))
        return show_bulk("cancelled", found, ask.as_json)

    def stop(client: Client, id: str) -> Call[Intent]:
        return client.cancel(id, tree=tree, expected_revision=revision)

    _each(ids, stop, ask)


def show_bulk(verb: str, done: Bulk, as_json: bool) -> None:
    """Show the result of a bulk operation."""
    if as_json:
        output.json(done)
    else:
        output.text(f"{done.done} of {done.matched} {verb}")
        for each in done.failed:
            output.words(f"{each.intent_id}: {each.message}", style="red")
        if done.next_cursor is not None:
            output.words("More may match: run the command again, or use a larger --limit.")
    if done.failed:
        raise Refused(f"{len(done.failed)} failed.", hint="See the reasons above. The others succeeded.")


@server.asks
def fire(
    ids: IdsArgument,
    revision: RevisionOption = None,
    *,
    ask: server.Ask,
) -> None:
    """Make scheduled intents due now.

    Examples:

      duetime fire order-7
    """
    _each(ids, lambda client, id: client.fire_now(id, expected_revision=revision), ask)


@options.with_options(options.REVIVE)
@server.asks
def revive(
    ids: IdsArgument,
    given: options.Given,
    revision: RevisionOption = None,
    *,
    ask: server.Ask,
) -> None:
    """Retry dead letters, each with a new set of attempts.

    Examples:

      duetime revive order-7

      duetime revive order-7 --in 1h --payload @corrected.json
    """
    changes = options.changed_fields(given, options.REVIVE)
    _each(ids, lambda client, id: client.revive(id, expected_revision=revision, **changes), ask)


@options.with_options(options.PATCH)
@server.asks
def patch(
    ids: IdsArgument,
    given: options.Given,
    revision: RevisionOption = None,
    *,
    ask: server.Ask,
) -> None:
    """Change intents that wait. Omitted options do not change.

    Examples:

      duetime patch order-7 --at "tomorrow 9:00" --priority high

      duetime patch order-7 --deadline none
    """
    changes = options.changed_fields(given, options.PATCH)
    if not changes:
        raise typer.BadParameter("nothing is to be changed: give at least one option")
    _each(ids, lambda client, id: client.patch(id, expected_revision=revision, **changes), ask)


def _each(ids: list[str], change: Callable[[Client, str], Awaitable[Any]], ask: server.Ask) -> None:
    """Change the intents one by one. An error is printed, and the others continue."""

    async def run(client: Client) -> None:
        failure, failures = None, 0
        for id in ids:
            try:
                found = await change(client, id)
            except DuetimeError as error:
                if len(ids) == 1:
                    raise
                output.words(f"{id}: {error.message}", style="red")
                failure, failures = error, failures + 1
                continue
            if ask.as_json:
                output.json_line(found)
            else:
                output.text(f"{found.intent_id}  {found.status}")
        if failure is not None:  # each error was printed: this one has their number and a hint
            failure.message = f"{failures} of {len(ids)} could not be changed."
            raise failure

    ask(run, as_sent=ask.as_json)
