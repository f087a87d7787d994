"""`duetime schedules`: recurring rules, by cron or by interval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from duetime.cli.args import options, server, time_args
from duetime.cli.ui import output, render
from duetime.client.http.client import Client
from duetime.client.http.transport import Request
from duetime.clock import SystemClock
from duetime.duration_text import exact
from duetime.timefmt import moment_of
from duetime.wire.schedule import Schedule, Schedules

app = typer.Typer(help="List, create, pause, trigger and delete schedules.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Schedule id.")]


@app.command("list")
@server.asks
def list_(
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Only schedules whose program has started without them.")
    ] = False,
    *,
    ask: server.Ask,
) -> None:
    """List all schedules.

    Examples:

      duetime schedules list --orphans
    """
    if not orphans:
        ask.show(lambda client: client.ask(Request("GET", "/v1/schedules"), Schedules), _table)
        return
    found = [each for each in ask(lambda client: client.schedules.list()) if each.orphan]
    if ask.as_json:
        output.json(Schedules(schedules=found))
    elif found:
        _table(Schedules(schedules=found))
    else:
        output.words("There are no orphans.")


def _table(found: Schedules) -> None:
    rows = [
        (each.id, _rule(each), render.target(each.intent), _next(each), each.made, each.skipped, each.missed)
        for each in found.schedules
    ]
    columns = ("ID", "RULE", "TARGET", "NEXT", "MADE", "SKIPPED", "MISSED")
    output.table(columns, rows, right=("MADE", "SKIPPED", "MISSED"))


@app.command()
@options.with_options(options.RECURRENCE, options.PLANNED, options.CALLBACK)
@server.asks
def put(
    id: IdArgument,
    target: options.Target,
    given: options.Given,
    ask: server.Ask,
) -> None:
    """Create a schedule, or replace it.

    Examples:

      duetime schedules put report task:mail.report --cron "0 9 * * MON-FRI" --zone Europe/Paris

      duetime schedules put ping https://example.com/ping --every 5m --overlap skip
    """
    rule = options.fields(options.RECURRENCE, given)
    if ("cron" in rule) == ("every_ms" in rule):
        raise typer.BadParameter("use one of --cron and --every")
    intent = options.target_of(target, given) | options.planned_fields(given)
    _show(lambda client: client.schedules.put(id, intent=intent, **rule), ask)


@app.command()
@server.asks
def show(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Show all fields of a schedule."""
    _show(lambda client: client.schedules.get(id), ask)


@app.command()
@server.asks
def pause(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Pause a schedule: no ticks until it is resumed."""
    _show(lambda client: client.schedules.pause(id), ask)


@app.command()
@server.asks
def resume(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Resume a schedule. Ticks of the pause are skipped."""
    _show(lambda client: client.schedules.resume(id), ask)


@app.command()
@server.asks
def delete(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Delete a schedule. Intents that it created are kept."""
    _show(lambda client: client.schedules.delete(id), ask)


@app.command()
@server.asks
def trigger(
    id: IdArgument,
    ask: server.Ask,
) -> None:
    """Create one extra intent of a schedule now."""
    ask.show(lambda client: client.schedules.trigger(id), lambda made: output.text(made.intent_id))


@app.command()
@server.asks
def backfill(
    id: IdArgument,
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="First tick at or after this time.")],
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Ticks before this time.")] = "now",
    *,
    ask: server.Ask,
) -> None:
    """Create the intents of past ticks that have none, of at most 1,000 ticks.

    Examples:

      duetime schedules backfill report --from "2030-01-01T00:00Z" --to "2030-01-08T00:00Z"
    """
    now_ms = SystemClock().now_ms()
    first, last = (moment_of(time_args.moment(text, now_ms)) for text in (since, until))
    ask.show(
        lambda client: client.schedules.backfill(id, first, last),
        lambda done: output.text(f"{done.created} created, {done.existing} existed, of {done.ticks} ticks"),
    )


@app.command("next")
@server.asks
def next_(
    id: IdArgument,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100, help="Number of ticks.")] = 5,
    *,
    ask: server.Ask,
) -> None:
    """Show the next ticks of a schedule."""
    found = ask(lambda client: client.schedules.next(id, count))
    if ask.as_json:
        output.json(found)
        return
    for moment in found:
        output.text(time_args.shown(moment))


def _show(action: Callable[[Client], Awaitable[Schedule]], ask: server.Ask) -> None:
    ask.show(action, _facts)


def _facts(found: Schedule) -> None:
    facts = {
        "id": found.id,
        "rule": _rule(found),
        "target": render.target(found.intent),
        "next": _next(found),
        "last": "-" if found.last_at is None else time_args.shown(found.last_at),
        "last intent": found.last_intent_id or "-",
        "overlap": found.overlap,
        "misfire": found.misfire,
        "made": str(found.made),
        "skipped": str(found.skipped),
        "missed": str(found.missed),
    }
    if found.skip:
        facts["skip"] = ", ".join(found.skip)
    if found.orphan:
        facts["orphan"] = "its program has started without it"
    if found.refused:
        facts["refused"] = found.refused
    output.facts(facts)


def _rule(schedule: Schedule) -> str:
    if schedule.every_ms is not None:
        return f"every {exact(schedule.every_ms)}"
    return f"{schedule.cron} ({schedule.zone})"


def _next(schedule: Schedule) -> str:
    if schedule.paused:
        return "paused"
    return "never" if schedule.next_at is None else time_args.shown(schedule.next_at)
