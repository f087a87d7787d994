"""`duetime health`: whether a server is on time, as a sentence and as numbers."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from duetime.cli.args import server
from duetime.cli.commands import chronoscope
from duetime.cli.ui import output, render
from duetime.json_types import Json
from duetime.wire.health import Health

COLOURS = {"UP": "bold green", "DEGRADED": "bold yellow", "DOWN": "bold red"}


@server.asks
def health(
    deep: Annotated[bool, typer.Option("--deep", help="Include the backpressure of each tier.")] = False,
    *,
    ask: server.Ask,
) -> None:
    """Show whether the server is on time. The exit code is 1 if it is DOWN.

    Examples:

      duetime health && echo on time
    """
    answer = ask.sent(lambda client: client.health(deep=deep))
    found = msgspec.json.decode(answer, type=Health)
    if ask.as_json:
        output.json(msgspec.Raw(answer))
    else:
        show(found, msgspec.json.decode(answer))
    if found.status == "DOWN":
        raise typer.Exit(1)


def show(found: Health, everything: Json) -> None:
    """Print the sentence, the problems, and the numbers."""
    output.line((found.status, COLOURS.get(found.status, "bold")), f"  {found.narrative}")
    for anomaly in everything.get("anomalies", []):
        output.text("")
        output.facts({render.words(name): render.cell(value) for name, value in anomaly.items()})
    output.text("")
    render.document(everything.get("vitals", {}))
    tiers = everything.get("tiers")
    if tiers:
        output.text("")
        chronoscope.show_tiers(tiers)
