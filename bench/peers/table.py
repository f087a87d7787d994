"""The tables of a run, for bench/README.md and the terminal."""

from __future__ import annotations

from pathlib import Path

from bench.peers.result import OURS, ULTRA, Result, Row

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- written by `python -m bench.peers --write` -->", "<!-- end -->"
NONE_YET = "No run has been saved yet."


def write(result: Result | None) -> None:
    """Put the tables into the README."""
    README.write_text(with_tables(README.read_text(encoding="utf-8"), result), encoding="utf-8")


def with_tables(text: str, result: Result | None) -> str:
    """The README's text with these tables in their place."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables(result)}\n{END}{after}"


def tables(result: Result | None) -> str:
    """All tables of a run."""
    if result is None:
        return f"\n{NONE_YET}\n"
    parts = [_head(result), _figures(result), _rates(result), _late(result), _settings(result)]
    return "\n" + "\n\n".join(parts) + "\n"


def _head(result: Result) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in result.machine.items())
    return f"Run of {result.date}: {machine}."


def _figures(result: Result) -> str:
    lines = ["### Targets", "", "| figure | result | target | |", "|---|--:|--:|---|"]
    for each in result.figures():
        value = _number(each.value)
        verdict = "**missed**" if each.verdict == "MISSED" else each.verdict
        lines.append(f"| {each.what} | {value} {each.unit} | {each.target} | {verdict} |")
    return "\n".join(lines)


def _rates(result: Result) -> str:
    lines = [
        f"### {result.count:,} jobs drained by one worker process",
        "",
        "| system | jobs/s | lowest to highest | Duetime is |",
        "|---|--:|---|--:|",
    ]
    ours = result.ours.rate
    for row in sorted(result.rows, key=lambda row: -row.rate):
        if not row.jobs:
            if row.problem:
                lines.append(f"| {_name(row)} | | not measured: {row.problem} | |")
            continue
        low, high, rounds = min(row.jobs), max(row.jobs), len(row.jobs)
        spread = f"{_number(low)} to {_number(high)} in {rounds} rounds" if rounds > 1 else "one round"
        against = "" if row.name == OURS or not ours else f"{_number(ours / row.rate)} x"
        lines.append(f"| {_name(row)} | {_number(row.rate)} | {spread} | {against} |")
    return "\n".join(lines)


def _late(result: Result) -> str:
    lines = [
        "### Delayed tasks: milliseconds from due to start",
        "",
        "| system | 1,000 over 5 s: p50 | p99 | 2,000 at one instant: p99 | |",
        "|---|--:|--:|--:|---|",
    ]
    known = [(row, row.late) for row in result.rows if row.late is not None]
    for row, late in sorted(known, key=lambda pair: pair[1].p99):
        note = f"starts up to {_number(-late.earliest)} ms early" if late.earliest < -1 else ""
        numbers = " | ".join(map(_number, (late.p50, late.p99, late.burst_p99)))
        lines.append(f"| {_name(row)} | {numbers} | {note} |")
    lines += [
        f"| {_name(row)} | | | | not measured: {row.problem} |"
        for row in result.rows
        if row.late is None and row.problem
    ]
    return "\n".join(lines)


def _settings(result: Result) -> str:
    lines = ["### Settings", "", "| system | on | settings | why |", "|---|---|---|---|"]
    lines += [f"| {_name(row)} | {row.service} | {row.settings} | {row.reason} |" for row in result.rows]
    return "\n".join(lines)


def _name(row: Row) -> str:
    name = f"{row.name} {row.version}"
    return f"**{name}**" if row.name in (OURS, ULTRA) else name


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
