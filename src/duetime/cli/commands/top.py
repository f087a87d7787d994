"""`duetime top`: a live view of a server's tiers, lateness and lanes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from duetime.cli.args import server, time_args
from duetime.cli.commands import chronoscope, health
from duetime.cli.ui import output
from duetime.client.http.client import Client
from duetime.clock import SystemClock
from duetime.errors import Unavailable
from duetime.json_types import Json
from duetime.safe_text import plain
from duetime.timefmt import moment_of

_ENDED = ("ACKED", "DEAD_LETTERED", "EXPIRED", "CANCELED")
LANES_SHOWN = 15


class Snapshot(Struct):
    """The data of one refresh."""

    at_ms: int
    health: Json = {}
    scope: Json = {}
    problem: str = ""


@server.asks
def top(
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Refresh interval.")
    ] = 1.0,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after N refreshes.")] = None,
    *,
    ask: server.Ask,
) -> None:
    """Show a live view of the server until q or Ctrl-C. Without a terminal, print it once (or --count times).

    Examples:

      duetime top --every 2
    """

    async def run(client: Client) -> None:
        if ask.as_json or not sys.stdout.isatty():
            await _print(client, every, count or 1, ask.as_json)
        else:
            await _watch(client, every, count)

    with contextlib.suppress(KeyboardInterrupt):
        ask(run, as_sent=True)


async def _print(client: Client, every_s: float, count: int, as_json: bool) -> None:
    for number in range(count):
        if number:
            await asyncio.sleep(every_s)
        frame = await _look(client)
        if as_json:
            output.json_line({"health": frame.health, "chronoscope": frame.scope})
        else:
            _plain(frame)


async def _watch(client: Client, every_s: float, count: int | None) -> None:
    console = Console(file=sys.stdout, highlight=False, markup=False)
    last: Snapshot | None = None
    number = 0
    with Live(console=console, screen=True, auto_refresh=False) as live, _keys() as quit_key:
        while count is None or number < count:
            number += 1
            frame = await _look(client, patient=last is not None)
            live.update(picture(frame, last, client.url, console.width, console.height), refresh=True)
            if not frame.problem:
                last = frame
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await asyncio.shield(quit_key)
                return


async def _look(client: Client, patient: bool = False) -> Snapshot:
    """Fetch the data. After the first success, wait for an unreachable server."""
    now_ms = SystemClock().now_ms()
    try:
        asked: list[Any] = [client.health(), client.chronoscope()]
        found, scope = await asyncio.gather(*asked)
        return Snapshot(now_ms, msgspec.json.decode(found), msgspec.json.decode(scope))
    except Unavailable as error:
        if not patient:
            raise
        return Snapshot(now_ms, problem=error.message)


@contextlib.contextmanager
def _keys() -> Iterator[asyncio.Future[None]]:
    """Done when q is pressed."""
    pressed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if not sys.stdin.isatty():
        yield pressed
        return
    import termios
    import tty

    loop, file = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(file)

    def read() -> None:
        if os.read(file, 16)[:1].lower() in (b"q", b"\x1b", b"") and not pressed.done():
            pressed.set_result(None)

    tty.setcbreak(file)
    loop.add_reader(file, read)
    try:
        yield pressed
    finally:
        loop.remove_reader(file)
        termios.tcsetattr(file, termios.TCSADRAIN, before)


# Output.


def rates(frame: Snapshot, last: Snapshot | None) -> tuple[float, float]:
    """Intents created and ended per second since the last refresh."""
    if last is None or frame.at_ms <= last.at_ms:
        return 0.0, 0.0
    seconds = (frame.at_ms - last.at_ms) / 1000
    now, then = frame.scope.get("counts", {}), last.scope.get("counts", {})
    ended = sum(now.get(name, 0) - then.get(name, 0) for name in _ENDED)
    came = sum(now.values()) - sum(then.values())
    return max(0.0, came / seconds), max(0.0, ended / seconds)


def picture(frame: Snapshot, last: Snapshot | None, url: str, width: int, height: int) -> RenderableType:
    """The whole screen."""
    place = f"{plain(url)}  {time_args.shown(moment_of(frame.at_ms))}  "
    head = Text.assemble(("duetime top  ", "bold"), place, ("q: leave", "dim"), no_wrap=True)
    if frame.problem:
        return Group(head, Text(plain(frame.problem), style="bold red"), Text("Waiting for it to come back."))
    status = frame.health.get("status", "")
    state = Text.assemble(
        (plain(status), health.COLOURS.get(status, "bold")),
        f"  {plain(frame.health.get('narrative', ''))}",
    )
    came, ended = rates(frame, last)
    counts = "  ".join(f"{name.lower()} {number}" for name, number in frame.scope.get("counts", {}).items())
    flow = Text(plain(f"{came:.0f} new/s, {ended:.0f} ended/s   {counts}"))
    anomalies = [_anomaly(each) for each in frame.health.get("anomalies", [])]
    lanes = frame.scope.get("lanes", [])
    room = max(3, min(LANES_SHOWN, height - 16 - len(anomalies)))
    return Group(
        head, state, *anomalies, Text(), flow, Text(), _tiers(frame, width), Text(), _lanes(lanes, room)
    )


def _anomaly(found: Json) -> Text:
    return Text(
        plain(f"! {found.get('code')}: {found.get('detail', '')}. {found.get('advice', '')}"), "yellow"
    )


def _tiers(frame: Snapshot, width: int) -> Table:
    columns = chronoscope.columns_for(width)
    titles = chronoscope.titles_of(columns)
    grid = _grid(titles, right=titles[1:-1])
    for tier in frame.scope.get("tiers", []):
        style = "red" if chronoscope.is_late(tier) else ""
        grid.add_row(*map(plain, chronoscope.tier_row(tier, columns)), style=style)
    return grid


def _lanes(lanes: list[Json], room: int) -> Table:
    columns = ("lane", "ready", "running", "consumers", "paused")
    grid = _grid(columns, right=columns[1:-1])
    busy = sorted(
        lanes, key=lambda lane: (-lane.get("ready", 0), -lane.get("pending", 0), lane.get("name", ""))
    )
    for lane in busy[:room]:
        cells = [plain(str(lane.get(name, ""))) for name in ("name", *columns[1:-1])]
        grid.add_row(*map(Text, cells), "paused" if lane.get("paused") else "")
    return grid


def _grid(columns: tuple[str, ...], right: tuple[str, ...]) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        grid.add_column(column, justify="right" if column in right else "left", no_wrap=True)
    return grid


def _plain(frame: Snapshot) -> None:
    output.text(f"{frame.health.get('status', '')}  {frame.health.get('narrative', '')}")
    chronoscope.show_tiers(frame.scope.get("tiers", []))
