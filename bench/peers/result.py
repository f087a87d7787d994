"""What a run found: a row for each system, the figures that were asked for, and where it was measured."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench.figure import Figure
from bench.peers.race import Lateness

FOLDER = Path(__file__).parents[1] / "results"
OURS, ULTRA = "Duetime", "Duetime at ULTRA"
# How much faster than each of them Duetime's drain is to be; the others: faster.
FASTER = {"Graphile Worker": 1.2, "PgQueuer": 2.0, "BullMQ": 2.0, "Dramatiq": 10.0, "Celery": 30.0}
RESULTS_FLOOR = 0.7
ECHO = "bare asyncio echo instead, one by one"
SUBMITS_FLOOR = {"one by one, ASYNC": 8_000, "64 callers, DURABLE": 8_000, "bulk": 60_000}
LATE_MS, BURST_MS, IDLE_PERCENT = 10, 120, 1


class Row(Struct):
    """One system. `problem`: why something of it is missing."""

    name: str
    version: str
    service: str
    settings: str
    reason: str
    jobs: list[float] = []
    """Jobs a second, one number for each round."""
    late: Lateness | None = None
    problem: str = ""

    @property
    def rate(self) -> float:
        return median(self.jobs) if self.jobs else 0.0


class Result(Struct):
    """One run of everything."""

    date: str
    machine: dict[str, str]
    count: int
    rows: list[Row]
    acked: list[float] = []
    """Duetime's jobs a second until its server has the last acknowledgement."""
    kept: list[float] = []
    """Duetime's jobs a second with results."""
    submits: dict[str, list[float]] = {}
    idle: float | None = None

    @property
    def ours(self) -> Row:
        return next(row for row in self.rows if row.name == OURS)

    @property
    def peers(self) -> list[Row]:
        return [row for row in self.rows if row.name not in (OURS, ULTRA)]

    def figures(self) -> list[Figure]:
        """What was asked for, and what was reached."""
        return [*self._drained(), *self._submitted(), *self._in_time()]

    def _drained(self) -> list[Figure]:
        ours = self.ours.rate
        if not ours:
            return []
        figures = [Figure(f"drain of {self.count:,} jobs by one worker", ours, "jobs/s")]
        for row in self.peers:
            if row.rate:
                what = f"... against {row.name}"
                figures.append(Figure(what, ours / row.rate, "x", floor=FASTER.get(row.name, 1.0)))
        if self.acked:
            what = "... until the server has the last acknowledgement"
            figures.append(Figure(what, median(self.acked), "jobs/s"))
        if self.kept:
            what = "... with results kept, retries and metrics, against without"
            figures.append(Figure(what, median(self.kept) / ours, "x", floor=RESULTS_FLOOR))
        return figures

    def _submitted(self) -> list[Figure]:
        return [
            Figure(f"submits by one client, {name}", median(rates), "/s", floor=SUBMITS_FLOOR.get(name))
            for name, rates in self.submits.items()
        ]

    def _in_time(self) -> list[Figure]:
        figures = []
        if self.ours.late is not None:
            late = self.ours.late
            figures.append(Figure("delayed tasks, lateness p99 at FAST", late.p99, "ms", ceiling=LATE_MS))
            others = [row.late.p99 for row in self.peers if row.late is not None]
            if others:
                what = "... against the most punctual peer"
                figures.append(Figure(what, late.p99 / min(others), "x", ceiling=1))
            what = "2,000 due at one instant, lateness p99"
            figures.append(Figure(what, late.burst_p99, "ms", ceiling=BURST_MS))
        if self.idle is not None:
            what = "server and worker idle, together"
            figures.append(Figure(what, self.idle, "% of a core", ceiling=IDLE_PERCENT))
        return figures


def save(result: Result) -> Path:
    """Into the file of its day."""
    path = FOLDER / f"peers-{result.date[:10]}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    return path


def newest() -> Result | None:
    """The last run that was saved."""
    files = sorted(FOLDER.glob("peers-*.json"))
    return msgspec.json.decode(files[-1].read_bytes(), type=Result) if files else None
