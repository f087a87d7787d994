"""Chaos: a server and its worker are killed with SIGKILL again and again under load. What is lost?

A client submits tasks with the ack DURABLE, at once and with delays, at least once and at most once. The
worker's function writes a line for each run to a file. Every round kills the server or the worker in the
middle of the work and starts it again. In the end every acknowledged task is compared with the lines.

CHAOS_ROUNDS and CHAOS_SEED change the number of kills (20) and the seed (1).
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from random import Random

from bench.figure import Figure, folder
from duetime import App, Retry, Status, current, errors

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "20"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
CALLERS = 8
DELAY_MS_MAX = 1_500
QUIET_S = 120.0
_LINES = "CHAOS_LINES"

app = App("http://127.0.0.1:1")


@app.task(
    name="again", ack="DURABLE", tier="FAST", lease="2s", retry=Retry(max_attempts=100, initial_delay="50ms")
)
async def again(due_ms: int) -> None:
    """May run twice, must run once."""
    _note(due_ms)


@app.task(name="once", ack="DURABLE", tier="FAST", lease="2s", guarantee="AT_MOST_ONCE")
async def once(due_ms: int) -> None:
    """Must not run twice."""
    _note(due_ms)


def _note(due_ms: int) -> None:
    """One line for each run; a single write, so that a kill leaves a whole line or none."""
    line = f"{current().intent_id} {due_ms} {time.time_ns() // 1_000_000}\n"
    with open(os.environ[_LINES], "ab", buffering=0) as lines:
        lines.write(line.encode())


class _Process:
    """A process of Duetime that can be killed and started again."""

    def __init__(self, arguments: list[str], lines: Path) -> None:
        root = Path(__file__).parents[1]
        self._command = [sys.executable, "-m", "duetime", *arguments]
        self._environment = {**os.environ, _LINES: str(lines), "PYTHONPATH": str(root)}
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def run() -> list[Figure]:
    with folder() as path:
        return asyncio.run(_measure(path))


async def _measure(path: Path) -> list[Figure]:
    chance, lines = Random(SEED), path / "lines"
    lines.touch()
    port, grpc_port = _free_port(), _free_port()
    url = f"http://127.0.0.1:{port}"
    server = _Process(
        ["serve", "--data", str(path / "data"), "--port", str(port), "--grpc-port", str(grpc_port)], lines
    )
    worker = _Process(
        ["worker", "bench.chaos:app", "--server", url, "--grpc-port", str(grpc_port), "--concurrency", "50"],
        lines,
    )
    app.rewire(url)
    promised: dict[str, str] = {}
    back_s: list[float] = []
    try:
        await _up(url)
        async with app:
            stop = asyncio.Event()
            callers = [asyncio.create_task(_call(Random(SEED + n), promised, stop)) for n in range(CALLERS)]
            for number in range(ROUNDS):
                await asyncio.sleep(chance.uniform(0.3, 1.2))
                victim = server if number % 2 == 0 else worker
                victim.kill()
                size, killed_s = lines.stat().st_size, time.monotonic()
                victim.start()
                while lines.stat().st_size == size and time.monotonic() < killed_s + QUIET_S:
                    await asyncio.sleep(0.01)
                back_s.append(time.monotonic() - killed_s)
                sys.stderr.write(f"\rkill {number + 1} of {ROUNDS}, {len(promised):,} acknowledged ")
            stop.set()
            await asyncio.gather(*callers)
            ends = await _ends(promised)
    finally:
        server.kill()
        worker.kill()
        sys.stderr.write("\n")
    return _figures(promised, ends, lines.read_text(), back_s)


async def _call(chance: Random, promised: dict[str, str], stop: asyncio.Event) -> None:
    """Submits one task after another. Only acknowledged ones are promises."""
    while not stop.is_set():
        task = again if chance.random() < 0.7 else once
        delay_ms = chance.choice((0, 0, chance.randrange(DELAY_MS_MAX)))
        due_ms = time.time_ns() // 1_000_000 + delay_ms
        try:
            handle = await task.at(due_ms / 1000).schedule(due_ms)
        except errors.DuetimeError:
            await asyncio.sleep(0.05)
        else:
            promised[handle.id] = task.name


async def _ends(promised: dict[str, str]) -> dict[str, Status]:
    """The final status of every task."""
    deadline, ends = time.monotonic() + QUIET_S, {}
    left = set(promised)
    while left and time.monotonic() < deadline:
        for id in list(left):
            status = await app.handle(id).status()
            if status.final:
                ends[id] = status
                left.discard(id)
        await asyncio.sleep(0.1)
    return ends


async def _up(url: str) -> None:
    """The server answers."""
    deadline = time.monotonic() + QUIET_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0:
                return
        await asyncio.sleep(0.05)
    raise RuntimeError("the server did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _figures(
    promised: dict[str, str], ends: dict[str, Status], text: str, back_s: list[float]
) -> list[Figure]:
    runs: dict[str, int] = defaultdict(int)
    early = 0
    for line in text.splitlines():
        id, due_ms, at_ms = line.split()
        runs[id] += 1
        early += int(at_ms) < int(due_ms)
    lost = sum(name == "again" and not runs[id] for id, name in promised.items())
    lost += sum(id not in ends for id in promised)
    silent = sum(
        name == "once" and not runs[id] and ends.get(id) is Status.ACKED for id, name in promised.items()
    )
    twice = sum(name == "once" and runs[id] > 1 for id, name in promised.items())
    repeated = sum(runs[id] - 1 for id, name in promised.items() if name == "again" and runs[id] > 1)
    back_s.sort()
    return [
        Figure("kills (SIGKILL of server and worker in turn)", len(back_s), "kills"),
        Figure("tasks acknowledged as DURABLE", len(promised), "tasks"),
        Figure("... lost", lost, "tasks", ceiling=0),
        Figure("... at most once, acknowledged without a run", silent, "tasks", ceiling=0),
        Figure("... at most once, run twice", twice, "tasks", ceiling=0),
        Figure("... run before their time", early, "tasks", ceiling=0),
        Figure("... at least once, run again because of a kill", repeated, "runs"),
        Figure("from a kill to the next run, median", round(statistics.median(back_s), 2), "s", ceiling=5),
        Figure("... longest", round(back_s[-1], 2), "s", ceiling=20),
    ]
