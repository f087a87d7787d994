"""`duetime replay`: an intent, or the whole system, at a point in time."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from duetime.cli.args import server, time_args
from duetime.cli.ui import output, render
from duetime.clock import SystemClock
from duetime.timefmt import moment_of


@server.asks
def replay(
    id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Intent id (default: the whole system).", show_default=False),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help='Point in time: a time, or "1h ago".')
    ] = None,
    *,
    ask: server.Ask,
) -> None:
    """Show an intent, or the whole system, at a point in time, replayed from the log.

    Examples:

      duetime replay order-7

      duetime replay --at "today 9:00"
    """
    now_ms = SystemClock().now_ms()
    moment = None if at is None else moment_of(time_args.moment(at, now_ms))
    if id is None and moment is None:
        moment = moment_of(now_ms)
    answer = ask.sent(lambda client: client.replay(id, at=moment))
    if ask.as_json:
        output.json(msgspec.Raw(answer))
    else:
        render.document(msgspec.json.decode(answer))
