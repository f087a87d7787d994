"""`duetime queues`: lists queues, and changes their limits while the server runs."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import typer

from duetime.cli.args import server
from duetime.cli.ui import output
from duetime.client.http.client import Client
from duetime.client.http.request_types import LaneChanges
from duetime.json_types import Json
from duetime.wire.intent import PRIORITIES
from duetime.wire.lane import Lane

app = typer.Typer(help="List queues; limit, order, pause and resume them.", no_args_is_help=True)

KINDS: Final = ("task", "stream", "callback", "entity")
_NONE: Final = ("none", "no", "off")

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE", help="A task queue, or stream:NAME, callback:HOST[:PORT], entity:TYPE/ID."
    ),
]


@app.command("list")
@server.asks
def list_(
    every: Annotated[bool, typer.Option("--all", help="Include the queues of single entities.")] = False,
    *,
    ask: server.Ask,
) -> None:
    """List queues that have intents, have consumers, are paused, or have limits.

    Examples:

      duetime queues list
    """
    shown = ask(lambda client: _shown(client, every))
    if ask.as_json:
        output.json(shown)
    elif shown:
        _table(msgspec.convert(shown, list[Lane]))
    else:
        output.words("No queue has intents, workers or limits.")


async def _shown(client: Client, every: bool) -> list[Json]:
    return [lane async for lane in client.lanes_as_shown(entities=every)]


@app.command("set")
@server.asks
def set_(
    name: NameArgument,
    concurrency: Annotated[
        str | None, typer.Option("--concurrency", metavar="N|none", help="Maximum concurrent runs.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE|none", help="Maximum starts per period: 20/s, 100/m."),
    ] = None,
    burst: Annotated[
        int | None, typer.Option("--burst", metavar="N", min=1, help="Maximum starts at once after a pause.")
    ] = None,
    depth: Annotated[
        str | None,
        typer.Option("--depth", metavar="N|none", help="Maximum waiting intents; more are refused (429)."),
    ] = None,
    priority: Annotated[
        str | None,
        typer.Option(
            "--priority", metavar="SECONDS|HIGH|LOW", help="Default priority of the queue's intents."
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            "--order",
            metavar="fifo|expected|shadow",
            help="fifo: by arrival. expected: shortest predicted duration first. "
            "shadow: fifo, and show the gain of expected.",
        ),
    ] = None,
    *,
    ask: server.Ask,
) -> None:
    """Change the limits of a queue immediately. Omitted options stay; `none` removes a limit.

    The limits are stored on the log and survive a restart.

    Examples:

      duetime queues set mail --concurrency 20 --rate 100/s --burst 10

      duetime queues set reports --depth 5000 --priority LOW

      duetime queues set mail --rate none
    """
    changes: LaneChanges = {}
    if concurrency is not None:
        changes["concurrency"] = _number(concurrency, "--concurrency")
    if rate is not None:
        changes["rate"] = None if rate.lower() in _NONE else rate
    if burst is not None:
        changes["burst"] = burst
    if depth is not None:
        changes["pending_max"] = _number(depth, "--depth")
    if priority is not None:
        changes["priority"] = _priority(priority)
    if order is not None:
        changes["order"] = order.upper()
    if not changes:
        raise typer.BadParameter("nothing to change: use --concurrency, --rate, --burst, --depth ...")
    _change(name, changes, ask)


@app.command()
@server.asks
def pause(
    name: NameArgument,
    ask: server.Ask,
) -> None:
    """Stop deliveries from a queue. Running intents continue; new intents are accepted. Survives restarts.

    Examples:

      duetime queues pause mail
    """
    _change(name, {"paused": True}, ask)


@app.command()
@server.asks
def resume(
    name: NameArgument,
    ask: server.Ask,
) -> None:
    """Resume deliveries from a queue.

    Examples:

      duetime queues resume mail
    """
    _change(name, {"paused": False}, ask)


def lane_of(name: str) -> str:
    """The lane of a name. A name without a kind is a task queue."""
    return name if name.partition(":")[0] in KINDS and ":" in name else f"task:{name}"


def _change(name: str, changes: LaneChanges, ask: server.Ask) -> None:
    lane = lane_of(name)
    ask.show(lambda client: client.set_lane(lane, **changes), lambda found: _table([found]))


def _table(lanes: list[Lane]) -> None:
    rows: list[tuple[object, ...]] = [
        (
            lane.name.removeprefix("task:"), "paused" if lane.paused else "", lane.pending, lane.ready,
            lane.running, lane.concurrency or "", _rate(lane), lane.pending_max or "", lane.priority or "",
            "" if lane.order == "FIFO" else lane.order.lower(),
        )
        for lane in sorted(lanes, key=lambda lane: lane.name)
    ]  # fmt: skip
    columns = (
        "queue", "", "pending", "ready", "running", "concurrency", "rate", "depth", "priority", "order",
    )  # fmt: skip
    right = ("pending", "ready", "running", "concurrency", "depth", "priority")
    output.table(columns, rows, right=right)


def _rate(lane: Lane) -> str:
    if lane.rate is None:
        return ""
    return f"{lane.rate} (burst {lane.burst})" if lane.burst > 1 else lane.rate


def _number(text: str, option: str) -> int | None:
    if text.lower() in _NONE:
        return None
    try:
        return msgspec.convert(text, int, strict=False)
    except msgspec.ValidationError:
        raise typer.BadParameter(f"{text!r} is neither a number nor none", param_hint=option) from None


def _priority(text: str) -> int:
    named = PRIORITIES.get(text.upper())
    if named is not None:
        return named
    number = _number(text, "--priority")
    return 0 if number is None else number
