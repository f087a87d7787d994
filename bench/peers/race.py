"""Measures one peer: its queue drained, and its delayed tasks in time or late."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from msgspec import Struct

from bench.peers.install import ROOT, home_of, program_of
from bench.peers.peer import Peer
from bench.peers.services import Services

# Delayed tasks: so many spread evenly over so long, then so many at one instant.
SPREAD, SPREAD_S, BURST, PAUSE_S = 1_000, 5.0, 2_000, 2.0
SEED = 1
# Between planning them and the first one: a worker starts meanwhile.
LEAD_S, START_S = 6.0, 3.0
DRAIN_S = 120.0
LATE_S = 60.0


class Failed(Exception):
    """It did not do its work; the text is the end of what it said."""


class Lateness(Struct):
    """Milliseconds between due and begun."""

    p50: float
    p99: float
    burst_p99: float
    earliest: float
    """Below zero: it began before it was due."""


def dues(first_s: float, spread: int, burst: int) -> list[float]:
    """When each delayed task is due; the burst is last.

    The others at moments of chance, the same in each run: even steps would suit, or not suit, whoever
    looks at the clock in even steps.
    """
    chance = Random(SEED)
    steps = sorted(round(first_s + chance.uniform(0, SPREAD_S), 3) for _ in range(spread))
    return steps + [round(first_s + SPREAD_S + PAUSE_S, 3)] * burst


def lateness(noted: list[tuple[float, float]], instant_s: float) -> Lateness:
    """`noted`: due and late, in seconds."""
    steps = sorted(late for due, late in noted if due < instant_s - 0.5)
    burst = sorted(late for due, late in noted if due >= instant_s - 0.5)
    return Lateness(
        1000 * _part(steps, 50), 1000 * _part(steps, 99), 1000 * _part(burst, 99), 1000 * min(steps)
    )


def _part(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


class Race:
    """One peer on its services."""

    def __init__(self, module: ModuleType, services: Services) -> None:
        self.peer: Peer = module.PEER
        self._file = module.__name__.rpartition(".")[2]
        self._services = services

    def drain(self, count: int) -> float:
        """Jobs a second, from the first one's start to the last one's end."""
        url = self._services.get(self.peer.service).fresh()
        self._do(url, "fill", str(count))
        noted = self._work(url, count, DRAIN_S, {})
        return float(noted["jobs"] / noted["seconds"])

    def late(self, spread: int = SPREAD, burst: int = BURST) -> Lateness:
        """How late delayed tasks begin, in a worker that has nothing else to do."""
        lead_s = LEAD_S
        while True:  # one that takes long to plan gets longer
            url = self._services.get(self.peer.service).fresh()
            planned = dues(time.time() + lead_s, spread, burst)
            self._do(url, "plan", given=json.dumps(planned))
            if time.time() + START_S < planned[0]:
                break
            lead_s *= 2
        noted = self._work(url, len(planned), LATE_S, {"PEER_LATE": "1"})
        return lateness(noted["late"], planned[-1])

    def _work(self, url: str, wanted: int, limit_s: float, more: dict[str, str]) -> Any:
        with tempfile.TemporaryDirectory(prefix="peers-") as folder:
            out = Path(folder) / "noted.json"
            environment = self._environment(url, wanted, out)
            with running([*self._command(), "work"], {**environment, **more}) as worker:
                return awaited(worker, out, limit_s)

    def _do(self, url: str, *arguments: str, given: str = "") -> None:
        done = subprocess.run(
            [*self._command(), *arguments],
            cwd=ROOT,
            env=self._environment(url, 0, Path(os.devnull)),
            input=given,
            capture_output=True,
            text=True,
            timeout=DRAIN_S,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{arguments[0]}: {done.stderr.strip()[-300:]}")

    def _command(self) -> list[str]:
        if self.peer.language == "node":
            return [*program_of(self.peer), str(Path(__file__).with_name(f"{self._file}.cjs"))]
        return [*program_of(self.peer), self._file]

    def _environment(self, url: str, wanted: int, out: Path) -> dict[str, str]:
        own = {"PEER_URL": url, "PEER_WANTED": str(wanted), "PEER_OUT": str(out)}
        node = {"NODE_PATH": str(home_of(self.peer) / "node_modules"), "NODE_ENV": "production"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**kept, **own, **node}


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with whatever processes it makes; all of them are stopped afterwards."""
    with tempfile.TemporaryFile() as said:
        worker = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            yield worker
        except Failed as failed:
            said.seek(0)
            raise Failed(f"{failed} {said.read().decode(errors='replace').strip()[-300:]}") from None
        finally:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def awaited(worker: subprocess.Popen[Any], out: Path, limit_s: float) -> Any:
    """What the worker notes at its end."""
    deadline = time.monotonic() + limit_s
    while not out.exists():
        if worker.poll() is not None:
            raise Failed(f"the worker ended with {worker.returncode}.")
        if time.monotonic() > deadline:
            raise Failed(f"not done after {limit_s:.0f} s.")
        time.sleep(0.05)
    return json.loads(out.read_text())
