"""`duetime follow`: transitions as they happen, until Ctrl-C. After a lost connection it resumes."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from duetime.cli.args import filters, server, time_args
from duetime.cli.ui import observed, output
from duetime.client.http.client import Client
from duetime.wire.event import Transition

COLOURS = {
    "ACKED": "green",
    "DEAD_LETTERED": "red",
    "EXPIRED": "yellow",
    "CANCELED": "yellow",
    "DISPATCHING": "cyan",
}


@server.asks
def follow(
    intent: Annotated[
        str | None, typer.Option("--intent", "-i", metavar="ID", help="Only events of this intent.")
    ] = None,
    status: filters.StatusOption = None,
    tier: filters.TierOption = None,
    queue: filters.QueueOption = None,
    task: filters.TaskOption = None,
    entity: filters.EntityOption = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="EVENT", help="Resume after this event id."),
    ] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after N events.")] = None,
    *,
    ask: server.Ask,
) -> None:
    """Print state transitions as they happen, until Ctrl-C. `--json` prints one JSON object per line.

    Examples:

      duetime follow --status dead_lettered

      duetime follow --intent order-7 --json
    """
    filter = filters.made(status, tier, queue, task, entity)

    async def run(client: Client) -> None:
        number = 0
        output.words(f"Following {client.url}; stop with Ctrl-C.")
        events = client.events(intent_id=intent, after=after, reconnect_s=float("inf"), **filter)
        async with contextlib.aclosing(events):
            async for event in events:
                if event.gap:
                    output.words("Some events were dropped: the output is incomplete.", style="yellow")
                    continue
                show(event, ask.as_json)
                number += 1
                if number == count:
                    return

    with contextlib.suppress(KeyboardInterrupt):
        ask(run)


def show(event: Transition, as_json: bool) -> None:
    observed.add(event.intent_id)
    if as_json:
        output.json_line(event)
        return
    before = event.previous_status or ""
    # Lateness belongs to a delivery; a waiting intent has none, or that of an earlier delivery.
    waits = event.status in ("SCHEDULED", "DUE", "BLOCKED")
    late = "" if waits or event.late_ms is None else f"  {event.late_ms} ms late"
    if late and event.limited_ms:
        late += f", {event.limited_ms} ms waiting for a limit, a pause or its entity"
    failed = event.status in ("DEAD_LETTERED", "SCHEDULED", "EXPIRED") and event.error
    output.line(
        (f"{time_args.shown(event.at)}  ", "dim"),
        f"{event.intent_id}  ",
        (f"{before:>13} -> ", "dim"),
        (f"{event.status:<13}", COLOURS.get(event.status, "")),
        f"  {event.precision_tier}  {event.lane}{late}",
        (f"  {event.error}" if failed else "", "red"),
    )
