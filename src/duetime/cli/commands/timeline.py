"""`duetime timeline`: upcoming intents by time slot, and whether they will be on time."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer

from duetime.cli.args import server, time_args
from duetime.cli.ui import bars, output, render
from duetime.clock import SystemClock
from duetime.duration_text import span
from duetime.json_types import Json
from duetime.safe_text import plain
from duetime.timefmt import moment_of

# The width if the output is not a terminal.
PIPED_COLUMNS = 80
_DAY = len("2030-01-31")


@server.asks
def timeline(
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Start time (default: now).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End time (default: the server's choice).")
    ] = None,
    slots: Annotated[int | None, typer.Option("--slots", min=1, help="Number of slots.")] = None,
    *,
    ask: server.Ask,
) -> None:
    """Show upcoming intents per time slot: time, number, busiest tier and queue.

    Examples:

      duetime timeline --to "in 24h" --slots 24
    """
    now_ms = SystemClock().now_ms()
    first = None if since is None else moment_of(time_args.moment(since, now_ms))
    last = None if until is None else moment_of(time_args.moment(until, now_ms))
    answer = ask.sent(lambda client: client.timeline(since=first, until=last, slots=slots))
    if ask.as_json:
        output.json(msgspec.Raw(answer))
        return
    show(msgspec.json.decode(answer))


def show(found: Json) -> None:
    """Print the sentence, the slots with intents, and the capacity."""
    narrative = found.get("narrative", "")
    if narrative:
        output.text(narrative)
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_COLUMNS
    lines = chart(found.get("slots", []), found.get("slotMs", 0), columns)
    for line in ["", *lines, ""] if lines else [""]:
        output.text(line)
    names = ("start", "end", "total", "risk")
    output.facts({name: render.cell(found[name]) for name in names if name in found})
    late_ms = found.get("predictedLatenessMs", {})
    capacity: list[Mapping[str, object]] = [
        {"name": each["name"], "per second": each["perSecond"], "late ms": late_ms.get(each["name"])}
        for each in found.get("capacity", [])
    ]
    if capacity:
        output.text("")
        output.title("what can be done")
        render.objects(capacity)


def chart(slots: list[Json], slot_ms: int, columns: int) -> list[str]:
    """One line for each slot with intents, and one for each gap."""
    busy = [slot for slot in slots if slot["count"]]
    if not busy:
        return []
    names = iter(labels(busy))
    rows: list[tuple[str, float | None, str]] = []
    for some, group in itertools.groupby(slots, key=lambda slot: bool(slot["count"])):
        if some:
            rows += [(next(names), slot["count"], _busiest(slot)) for slot in group]
        else:
            rows.append((f"{'':<{_DAY}} nothing for {span(slot_ms * len(list(group)))}", None, ""))
    shown, counts, notes = zip(*rows, strict=True)
    return bars.chart(shown, counts, columns, notes)


def _busiest(slot: Json) -> str:
    """The tier and the queue with the most intents of a slot."""
    groups = (slot.get("byTier", {}), slot.get("byQueue", {}))
    return plain(" ".join(max(group, key=group.__getitem__) for group in groups if group))


def labels(slots: list[Json]) -> list[str]:
    """The start of each slot; with the day where it changes."""
    shown, day = [], ""
    for slot in slots:
        at = str(slot.get("at", ""))
        date, _, clock = at.partition("T")
        shown.append(f"{date if date != day else '':<{_DAY}} {clock[:8]}Z")
        day = date
    return shown
