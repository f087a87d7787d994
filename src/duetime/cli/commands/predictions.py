"""`duetime predictions` and `duetime autoscale`: durations of functions, and the number of workers needed."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from duetime.cli.args import server, time_args
from duetime.cli.ui import output
from duetime.wire.autoscale import Autoscale
from duetime.wire.predictions import Gain, ModelForecast, Predictions


@server.asks
def predictions(ask: server.Ask) -> None:
    """Show the duration of each function, its predictions, and the gain of `queues set --order expected`.

    Examples:

      duetime predictions
    """
    answer = ask.sent(lambda client: client.predictions())
    if ask.as_json:
        output.json(msgspec.Raw(answer))
        return
    show(msgspec.json.decode(answer, type=Predictions))


def show(found: Predictions) -> None:
    """Print the functions, the lanes that use predictions, and the model."""
    if not found.functions:
        output.text("No durations were measured yet.")
    else:
        columns = ("function", "count", "p50 ms", "p90 ms", "p99 ms", "off by", "model", "timeout ms")
        rows = [
            (each.function, each.count, each.p50_ms, each.p90_ms, each.p99_ms, _share(each.sketch_error),
             _share(each.model_error), each.suggested_timeout_ms or "")
            for each in found.functions
        ]  # fmt: skip
        output.table(columns, rows, right=columns[1:])
    if found.more_functions:
        output.text(f"... and {found.more_functions} more functions.")
    for lane in found.lanes:
        output.text("")
        said = gained(lane.gain)
        output.text(f"{lane.lane}: {lane.order}, predictions come from: {lane.source}. {said}")
    output.text("")
    output.text(model(found.model))


def gained(gain: Gain | None) -> str:
    """The effect of ordering by prediction on the newest jobs, or the effect it would have."""
    if gain is None:
        return "Too few intents have ended to compute a gain."
    return (
        f"By the last {gain.jobs:,} jobs, {gain.servers} at a time: the mean {_change(gain.mean_gain)}"
        f" and the p99 {_change(gain.p99_gain)} than with FIFO order"
        f" ({gain.fifo.mean_ms:,.0f} ms and {gain.fifo.p99_ms:,.0f} ms)."
    )


def model(found: ModelForecast) -> str:
    """The state of the model."""
    if found.state == "OFF":
        return "The model is off: no lane's order is EXPECTED or SHADOW."
    words = f"The model is {found.state}"
    if found.version is not None and found.model_error is not None and found.sketch_error is not None:
        words += (
            f" (version {found.version}, from {found.rows:,} intents,"
            f" {time_args.shown(found.trained_at)}): off by {found.model_error:.0%},"
            f" the sketch by {found.sketch_error:.0%}"
        )
    return f"{words}{'; ' + found.detail if found.detail else ''}."


@server.asks
def autoscale(
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", help="Only this queue.")] = None,
    target: Annotated[
        int | None,
        typer.Option(
            "--target", metavar="SECONDS", min=1, help="Target time to finish the backlog (default: 60)."
        ),
    ] = None,
    *,
    ask: server.Ask,
) -> None:
    """Show the backlog of each queue, its expected duration, and the number of workers it needs.

    Examples:

      duetime autoscale --queue mail --target 30
    """
    answer = ask.sent(lambda client: client.autoscale(queue, target_seconds=target))
    if ask.as_json:
        output.json(msgspec.Raw(answer))
        return
    found = msgspec.json.decode(answer, type=Autoscale)
    if not found.queues:
        output.text("No queue has workers or waiting intents.")
        return
    columns = ("queue", "waiting", "running", "workers", "work s", "risk", "wanted")
    rows = [
        (each.queue, each.backlog + each.coming, each.running, each.workers, f"{each.work_seconds:.1f}",
         each.risk, each.suggested_workers)
        for each in found.queues
    ]  # fmt: skip
    output.table(columns, rows, right=columns[1:])
    for each in found.queues:
        if each.risk != "NONE":
            output.text(f"{each.queue}: {each.narrative}")


def _share(error: float | None) -> str:
    return "" if error is None else f"{error:.0%}"


def _change(gain: float) -> str:
    return f"{gain:.0%} shorter" if gain >= 0 else f"{-gain:.0%} longer"
