"""`duetime schedules`: what happens again and again, by a cron rule or every so often."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duetime.cli.args import options, server, time_args
from duetime.cli.ui import output, render
from duetime.client.http.client import Client
from duetime.client.http.transport import Request
from duetime.duration_text import exact
from duetime.wire.schedule import Schedule

app = typer.Typer(help="List, create, pause, trigger and delete schedules.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Schedule id.")]


@app.command("list")
def list_(
    as_json: output.JsonFlag = False, url: server.UrlOption = None, token: server.TokenOption = None
) -> None:
    """List all schedules."""
    if as_json:
        output.json(server.ask(url, token, _all, as_sent=True))
        return
    found = server.ask(url, token, lambda client: client.schedules.list())
    rows = [
        (each.id, _rule(each), render.target(each.intent), _next(each), each.made, each.skipped, each.missed)
        for each in found
    ]
    columns = ("ID", "RULE", "TARGET", "NEXT", "MADE", "SKIPPED", "MISSED")
    output.table(columns, rows, right=("MADE", "SKIPPED", "MISSED"))


@app.command()
@options.with_options(options.RECURRENCE, options.PLANNED, options.CALLBACK)
def put(
    id: IdArgument,
    target: options.Target,
    given: options.Given,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
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
    _show(lambda client: client.schedules.put(id, intent=intent, **rule), as_json, url, token)


@app.command()
def show(
    id: IdArgument,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Show all fields of a schedule."""
    _show(lambda client: client.schedules.get(id), as_json, url, token)


@app.command()
def pause(
    id: IdArgument,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Pause a schedule: no ticks until it is resumed."""
    _show(lambda client: client.schedules.pause(id), as_json, url, token)


@app.command()
def resume(
    id: IdArgument,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Resume a schedule. Ticks of the pause are skipped."""
    _show(lambda client: client.schedules.resume(id), as_json, url, token)


@app.command()
def delete(
    id: IdArgument,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Delete a schedule. Intents that it created are kept."""
    _show(lambda client: client.schedules.delete(id), as_json, url, token)


@app.command()
def trigger(
    id: IdArgument,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Create one extra intent of a schedule now."""
    found = server.ask(url, token, lambda client: client.schedules.trigger(id), as_sent=as_json)
    if as_json:
        output.json(found)
    else:
        output.text(found.intent_id)


@app.command("next")
def next_(
    id: IdArgument,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100, help="Number of ticks.")] = 5,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Show the next ticks of a schedule."""
    found = server.ask(url, token, lambda client: client.schedules.next(id, count))
    if as_json:
        output.json(found)
        return
    for moment in found:
        output.text(time_args.shown(moment))


async def _all(client: Client) -> Any:
    return await client.ask(Request("GET", "/v1/schedules"), Any)


def _show(action: Any, as_json: bool, url: str | None, token: str | None) -> None:
    found = server.ask(url, token, action, as_sent=as_json)
    if as_json:
        output.json(found)
        return
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
