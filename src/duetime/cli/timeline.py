"""`duetime timeline`: what will fire, slot by slot, and whether it will be on time."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated, Any

import msgspec
import typer

from duetime.cli import bars, output, render, server, when
from duetime.client.times import moment_of
from duetime.clock import SystemClock


def timeline(
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From then; else from now.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Until then; else as long as the server says.")
    ] = None,
    slots: Annotated[int | None, typer.Option("--slots", min=1, help="So many slots.")] = None,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Show what will fire, slot by slot: on a terminal as bars, elsewhere as a table.

    Examples:

      duetime timeline --to "in 24h" --slots 24
    """
    now_ms = SystemClock().now_ms()
    first = None if since is None else moment_of(when.moment(since, now_ms))
    last = None if until is None else moment_of(when.moment(until, now_ms))
    answer = server.sent(url, token, lambda client: client.timeline(since=first, until=last, slots=slots))
    if as_json:
        output.json(msgspec.Raw(answer))
        return
    show(msgspec.json.decode(answer))


def show(found: dict[str, Any]) -> None:
    """The sentence, then the slots, then what they add up to."""
    slots = found.pop("slots", [])
    narrative = found.pop("narrative", "")
    if narrative:
        output.text(narrative)
        output.text("")
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        for line in bars.chart(labels(slots), [slot.get("count", 0) for slot in slots], columns):
            output.text(line)
    elif slots:
        render.objects(slots)
    output.text("")
    render.document(found)


def labels(slots: list[dict[str, Any]]) -> list[str]:
    """When each slot begins; the day only where it changes."""
    shown, day = [], ""
    for slot in slots:
        at = str(slot.get("at", ""))
        date, _, clock = at.partition("T")
        shown.append(f"{date if date != day else '':<10} {clock[:8]}Z")
        day = date
    return shown
