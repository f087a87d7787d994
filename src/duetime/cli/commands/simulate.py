"""`duetime simulate`: runs the engine under seeded faults."""

from __future__ import annotations

import os
import sys
from time import perf_counter  # tidy: how long it took, not what time it is
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from duetime.cli.ui import output
from duetime.testing.sim.simulator import EXPECTED, STEPS, SimulationReport, Violation, run_seed, run_seeds

# With at least this many seeds, every command and fault of the simulator must have occurred.
_COMPLETE_FROM = 200


def simulate(
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Run one seed.")] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="A..B", help="Run these seeds.")] = "1..100",
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Steps of the fault phase of each seed.")
    ] = STEPS,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Number of processes; 0 means one per core.")
    ] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="With --seed: print every step.")] = False,
    as_json: output.JsonFlag = False,
) -> None:
    """Run the engine through lost writes, crashes, power loss and wrong clocks, and check all guarantees.

    Each seed is one run: first a phase with faults and all invariants checked at every step, then a phase
    without faults in which every intent must end. The same seed gives the same run on every machine.
    """
    chosen = range(seed, seed + 1) if seed is not None else _range(seeds)
    if trace and seed is None:
        raise typer.BadParameter("it requires --seed", param_hint="--trace")
    total = SimulationReport()
    begin_s = perf_counter()
    try:
        if seed is not None:
            total.merge(run_seed(seed, steps, output.text if trace else None))
        else:
            _run_all(chosen, steps, jobs or os.cpu_count() or 1, total)
    except Violation as violation:
        _show_violation(violation, as_json)
        raise typer.Exit(1) from None
    missing = total.missing()
    _show(total, perf_counter() - begin_s, missing if len(chosen) > 1 else [], as_json)
    if missing and len(chosen) >= _COMPLETE_FROM:
        raise typer.Exit(1)


def _range(text: str) -> range:
    first, dots, last = text.partition("..")
    try:
        chosen = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        raise typer.BadParameter(f"{text!r} does not have the form 1..100", param_hint="--seeds") from None
    if not chosen:
        raise typer.BadParameter(f"{text!r} contains no seeds", param_hint="--seeds")
    return chosen


def _run_all(seeds: range, steps: int, jobs: int, total: SimulationReport) -> None:
    console = Console(file=sys.stderr)
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("seeds", total=len(seeds))
        for report in run_seeds(seeds, steps, min(jobs, len(seeds))):
            total.merge(report)
            progress.update(task, advance=report.seeds)


def _show_violation(violation: Violation, as_json: bool) -> None:
    if as_json:
        output.json(
            {
                "violation": violation.reason,
                "seed": violation.seed,
                "repeat": violation.command,
                "trace": violation.trace,
            }
        )
    else:
        for line in str(violation).splitlines():
            output.words(line)


def _show(total: SimulationReport, seconds: float, missing: list[str], as_json: bool) -> None:
    if as_json:
        output.json(
            {
                "seeds": total.seeds,
                "steps": total.steps,
                "records": total.records,
                "intents": total.intents,
                "starts": total.starts,
                "simulated_ms": total.simulated_ms,
                "seconds": round(seconds, 3),
                **{group: _counts(total, group) for group in EXPECTED},
                "refusals": dict(sorted(total.refusals.items())),
                "missing": missing,
                "digest": total.digest(),
            }
        )
        return
    rows: list[tuple[str, str, object]] = []
    for group in EXPECTED:
        rows += [(group[:-1], name, count) for name, count in _counts(total, group).items()]
    output.table(("what", "name", "count"), rows, right=("count",))
    days = total.simulated_ms // 86_400_000
    output.words(
        f"{total.seeds} seeds, {total.records} records, {total.intents} intents, {total.starts} starts,"
        f" {days} simulated days in {seconds:.1f} s ({total.seeds / max(seconds, 0.001):.1f} seeds/s)."
        " No guarantee was violated."
    )
    if missing:
        output.words(f"These never happened: {', '.join(missing)}.")


def _counts(total: SimulationReport, group: str) -> dict[str, int]:
    found: dict[str, int] = getattr(total, group)
    return {name: found.get(name, 0) for name in EXPECTED[group]}
