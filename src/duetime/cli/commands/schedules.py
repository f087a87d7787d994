"""`duetime schedules`: what happens again and again, by a cron rule or every so often."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duetime.cli.args import filters, options, server, time_args
from duetime.cli.args.options import option
from duetime.cli.commands.schedule import read_json, retry_of, target_of
from duetime.cli.ui import output, render
from duetime.client.app.times import delay_ms, moment_of
from duetime.client.http.client import Client
from duetime.client.http.models import Schedule
from duetime.client.http.transport import Request
from duetime.clock import SystemClock
from duetime.duration_text import exact

app = typer.Typer(help="List, create, pause, trigger and delete schedules.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Schedule id.")]
RULE = "Recurrence"
CronOption = Annotated[
    str | None, option("--cron", shown="RULE", said='Cron expression: "0 9 * * MON-FRI".', group=RULE)
]
EveryOption = Annotated[
    str | None, option("--every", shown="SPAN", said="Interval: 30s, 5m, 1h.", group=RULE)
]
ZoneOption = Annotated[
    str | None,
    option("--zone", shown="ZONE", said="Time zone, such as Europe/Paris (default: UTC).", group=RULE),
]
JitterOption = Annotated[
    str | None,
    option("--jitter", shown="SPAN", said="Maximum added delay per tick, to spread load.", group=RULE),
]
StartOption = Annotated[
    str | None, option("--start", shown="TIME", said="No tick before this time.", group=RULE)
]
EndOption = Annotated[str | None, option("--end", shown="TIME", said="No tick after this time.", group=RULE)]
OverlapOption = Annotated[
    str | None,
    option(
        "--overlap",
        shown="ALLOW|SKIP|QUEUE_ONE|CANCEL_RUNNING",
        said="What a tick does while an earlier intent has not ended.",
        group=RULE,
    ),
]
MisfireOption = Annotated[
    str | None,
    option("--misfire", shown="ONCE|SKIP|CATCH_UP", said="What happens to missed ticks.", group=RULE),
]
CatchUpOption = Annotated[
    int | None,
    option("--catch-up", shown="N", said="Maximum missed ticks to run with CATCH_UP.", group=RULE, min=1),
]


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
def put(
    id: IdArgument,
    target: options.Target,
    cron: CronOption = None,
    every: EveryOption = None,
    zone: ZoneOption = None,
    jitter: JitterOption = None,
    start: StartOption = None,
    end: EndOption = None,
    overlap: OverlapOption = None,
    misfire: MisfireOption = None,
    catch_up: CatchUpOption = None,
    payload: options.Payload = None,
    tag: options.Tags = None,
    tier: options.Tier = None,
    attempts: options.Attempts = None,
    retry_delay: options.RetryDelay = None,
    timeout: options.Timeout = None,
    method: options.Method = None,
    header: options.Headers = None,
    body: options.Body = None,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Create a schedule, or replace it.

    Examples:

      duetime schedules put report task:mail.report --cron "0 9 * * MON-FRI" --zone Europe/Paris

      duetime schedules put ping https://example.com/ping --every 5m --overlap skip
    """
    if (cron is None) == (every is None):
        raise typer.BadParameter("use one of --cron and --every")
    intent: dict[str, Any] = {
        **target_of(target, method, header, body, False),
        **retry_of(attempts, retry_delay, timeout),
    }
    if payload is not None:
        intent["payload"] = read_json(payload, "--payload")
    if tag:
        intent["tags"] = filters.tags(tag)
    if tier is not None:
        intent["precision_tier"] = tier.upper()
    rule: dict[str, Any] = {"cron": cron} if every is None else {"every_ms": delay_ms(every)}
    now_ms = SystemClock().now_ms()
    for name, moment in (("start", start), ("end", end)):
        if moment is not None:
            rule[name] = moment_of(time_args.moment(moment, now_ms))
    for name, constant in (("overlap", overlap), ("misfire", misfire)):
        if constant is not None:
            rule[name] = constant.upper().replace("-", "_")
    if jitter is not None:
        rule["jitter_ms"] = delay_ms(jitter)
    rule |= {"zone": zone, "catch_up": catch_up}
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
