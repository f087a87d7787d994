"""`python -m bench.peers`: install the peers, measure them and Duetime in turn, print and save the tables.

`--write` puts the tables into bench/README.md. `--render` writes them again from the last saved run.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from msgspec.structs import astuple
from rich.console import Console
from rich.markdown import Markdown

import duetime
from bench.__main__ import cpu
from bench.peers import ours, table
from bench.peers.install import Missing, install
from bench.peers.peer import PEERS
from bench.peers.race import Failed, Lateness, Race
from bench.peers.result import OURS, ULTRA, Result, Row, newest, save
from bench.peers.services import Services

COUNT, ROUNDS = 10_000, 3
# Where packages come from is far away, and most of an installation is waiting.
INSTALLS_AT_ONCE = 4
SERVICES = {"redis": "Redis", "postgres": "PostgreSQL", "sqlite": "SQLite"}
T = TypeVar("T")
console = Console(stderr=True)


class Run:
    """One run: what is found goes into its rows, what fails is said there and aloud."""

    def __init__(self, names: list[str], count: int) -> None:
        self._count = count
        self._services = Services()
        self._modules = [import_module(f"bench.peers.{name}") for name in names]
        self._races: list[tuple[Race, Row]] = []
        settings = "one server and one `duetime worker --concurrency 2000`, ASYNC, log on disk"
        reason = "the defaults, but for how many jobs a worker may hold"
        self._ours = Row(OURS, duetime.__version__, "its own log", settings, reason)
        self._ultra = Row(ULTRA, duetime.__version__, "its own log", "the same", "to see what the tier costs")
        date = datetime.now(UTC).isoformat(timespec="seconds")
        self.result = Result(date, {}, count, [self._ours, self._ultra])

    def whole(self) -> Result:
        load = os.getloadavg()[0]
        self._install()
        with self._services:
            self._versions()
            self._drains()
            self._lates()
        self._alone()
        self.result.machine = {
            "CPU": cpu(),
            "cores": str(os.cpu_count()),
            "Python": platform.python_version(),
            "Linux" if sys.platform == "linux" else "system": platform.release(),
            "load before": f"{load:.1f}",
        } | self.result.machine
        return self.result

    def _install(self) -> None:
        console.print(f"installing {len(self._modules)} peers ...")
        with ThreadPoolExecutor(INSTALLS_AT_ONCE) as pool:
            problems = list(pool.map(_installed, self._modules))
        for module, problem in zip(self._modules, problems, strict=True):
            peer = module.PEER
            row = Row(peer.name, peer.version, SERVICES[peer.service], peer.settings, peer.reason)
            self.result.rows.append(row)
            if problem:
                self._problem(row, f"cannot be installed: {problem}")
            else:
                self._races.append((Race(module, self._services), row))

    def _versions(self) -> None:
        """Start what the peers need; those whose service is missing are out."""
        for race, row in list(self._races):
            try:
                version = self._services.get(race.peer.service).version
            except (Missing, RuntimeError, OSError) as error:
                self._problem(row, f"has no {row.service}: {error}")
                self._races.remove((race, row))
                continue
            row.service = f"{SERVICES[race.peer.service]} {version}".strip()

    def _drains(self) -> None:
        """In turn, Duetime before and after each round, so that a busy moment is nobody's alone."""
        for number in range(ROUNDS):
            self._our_drain()
            for race, row in self._races:
                if race.peer.drains and number < race.peer.rounds and not row.problem:
                    rate = self._tried(row, "drains", partial(race.drain, self._count))
                    row.jobs += [] if rate is None else [rate]
            self._our_drain()

    def _our_drain(self) -> None:
        plain = self._tried(self._ours, "drains", partial(ours.drain, self._count))
        kept = self._tried(self._ours, "drains with results", partial(ours.drain, self._count, results=True))
        if plain is not None:
            self._ours.jobs.append(plain[0])
            self.result.acked.append(plain[1])
        if kept is not None:
            self.result.kept.append(kept[0])

    def _lates(self) -> None:
        """Duetime before and after; the worse of both counts."""
        found = [self._tried(self._ours, "is timed", ours.late)]
        for race, row in self._races:
            if race.peer.delays:
                row.late = self._tried(row, "is timed", race.late)
        self._ultra.late = self._tried(self._ultra, "is timed", partial(ours.late, "ULTRA"))
        found.append(self._tried(self._ours, "is timed", ours.late))
        good = [each for each in found if each is not None]
        if good:
            self._ours.late = Lateness(*map(max, zip(*map(astuple, good), strict=True)))

    def _alone(self) -> None:
        for _ in range(ROUNDS):
            rates = self._tried(self._ours, "takes submits", ours.submits)
            for name, rate in (rates or {}).items():
                self.result.submits.setdefault(name, []).append(rate)
        self.result.idle = self._tried(self._ours, "does nothing", ours.idle)

    def _tried(self, row: Row, what: str, measure: Callable[[], T]) -> T | None:
        console.print(f"{row.name} {what} ...", end=" ")
        began = time.monotonic()
        try:
            found = measure()
        except Exception as error:  # a peer that fails is a row that says so, not the end of the run
            kind = "" if isinstance(error, Failed) else f"{type(error).__name__}: "
            self._problem(row, f"{kind}{error}")
            return None
        console.print(f"{_brief(found)} ({time.monotonic() - began:.0f} s)")
        return found

    def _problem(self, row: Row, text: str) -> None:
        text = " ".join(text.split())[:300]
        row.problem = f"{row.problem}; {text}" if row.problem else text
        console.print(f"[red]{row.name}: {text}[/red]")


def _installed(module: ModuleType) -> str:
    try:
        install(module.PEER)
    except Missing as missing:
        return str(missing)
    return ""


def _brief(found: object) -> str:
    if isinstance(found, Lateness):
        return f"p50 {found.p50:.1f}, p99 {found.p99:.1f}, at one instant p99 {found.burst_p99:.1f} ms"
    if isinstance(found, tuple):
        return f"{found[0]:,.0f}, to the last acknowledgement {found[1]:,.0f}"
    if isinstance(found, dict):
        return ", ".join(f"{name} {value:,.0f}" for name, value in found.items())
    return f"{found:,.2f}" if isinstance(found, float) and found < 100 else f"{found:,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", default=PEERS, help=f"some of {', '.join(PEERS)}; all of them")
    parser.add_argument("--count", type=int, default=COUNT, help="jobs to drain")
    parser.add_argument("--write", action="store_true", help="save, and put the tables into bench/README.md")
    parser.add_argument("--render", action="store_true", help="measure nothing: the last saved run again")
    options = parser.parse_args()
    if options.render:
        table.write(newest())
        return 0
    result = Run(list(options.peers), options.count).whole()
    Console().print(Markdown(table.tables(result)))
    if options.write:
        console.print(f"saved as {save(result)}")
        table.write(result)
    missed = [figure.what for figure in result.figures() if figure.verdict == "MISSED"]
    console.print(f"missed: {'; '.join(missed) or 'nothing'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
