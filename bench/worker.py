"""A worker process drains a queue of a server: 10,000 tasks that do nothing, without and with results."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figure import Figure
from bench.serve import Server
from duetime import App, Middleware, NewCall, Run
from duetime.protocol.command import LaneSettings, Pause, Resume, SetLane

COUNT = 10_000
ROUNDS = 5
CONCURRENCY = 2_000
IDLE_S = 10.0
# The checkpoint after the last round is not idleness.
SETTLE_S = 7.0

# Limits that let everything pass: what is measured is what they cost.
LIMITS = LaneSettings(concurrency=1_000_000, rate=1_000_000, period_ms=1_000, burst=1_000_000)

app = App("http://127.0.0.1:1")


@app.task(name="nothing", ack="ASYNC")
async def nothing() -> None:
    """No result."""


@app.task(name="something", ack="ASYNC")
async def something(number: int) -> dict[str, int]:
    """A small result, which is kept."""
    return {"number": number}


class Nothing(Middleware):
    """Every hook, and each does nothing."""

    def before_schedule(self, call: NewCall) -> None: ...

    def after_schedule(self, call: NewCall, intent_id: str) -> None: ...

    def before_run(self, run: Run) -> None: ...

    def after_run(self, run: Run, result: object) -> None: ...

    def run_failed(self, run: Run, error: BaseException) -> None: ...

    def run_ended(self, run: Run) -> None: ...


hooked = App("http://127.0.0.1:1")
hooked.add_middleware(Nothing(), Nothing(), Nothing())


@hooked.task(name="nothing", queue="hooked", ack="ASYNC")
async def nothing_hooked() -> None:
    """The same, with middleware around it."""


def run() -> list[Figure]:
    with Server() as server, worker_of(server, "bench.worker:app") as worker:
        for each in (app, hooked):
            each.rewire(f"http://127.0.0.1:{server.port}")
        figures = asyncio.run(_measure(server, worker))
        with worker_of(server, "bench.worker:hooked"):
            return [*figures, asyncio.run(_middleware())]


async def _middleware() -> Figure:
    """The drain by a worker with three middlewares, relative to that of a worker without any."""
    async with app, hooked:
        await _drain(nothing_hooked, [()] * COUNT, "hooked")  # warm
        found = []
        for _ in range(ROUNDS):  # in turn, so that a slow moment is everybody's
            without = await _drain(nothing, [()] * COUNT)
            found.append(await _drain(nothing_hooked, [()] * COUNT, "hooked") / without)
    spread = f"{min(found):.2f} to {max(found):.2f} in {ROUNDS} rounds"
    what = "... with three middlewares that do nothing, relative"
    return Figure(what, sorted(found)[ROUNDS // 2], "", floor=0.85, note=spread)


async def _measure(server: Server, worker: subprocess.Popen[str]) -> list[Figure]:
    async with app:
        await _drain(nothing, [()] * COUNT)  # warm
        plain = sorted([await _drain(nothing, [()] * COUNT) for _ in range(ROUNDS)])
        kept = sorted([await _drain(something, [(n,) for n in range(COUNT)]) for _ in range(ROUNDS)])
        limited = []
        for _ in range(ROUNDS):  # beside as many without, so that a slow moment is everybody's
            await app.ask(SetLane("task:default", LaneSettings()))
            without = await _drain(nothing, [()] * COUNT)
            await app.ask(SetLane("task:default", LIMITS))
            limited.append(await _drain(nothing, [()] * COUNT) / without)
        await app.ask(SetLane("task:default", LaneSettings()))
        await asyncio.sleep(SETTLE_S)
        used_s = server.cpu_s() + cpu_s(worker.pid)
        await asyncio.sleep(IDLE_S)
        idle = (server.cpu_s() + cpu_s(worker.pid) - used_s) / IDLE_S
    middle = ROUNDS // 2
    spread = f"{plain[0]:,.0f} to {plain[-1]:,.0f} in {ROUNDS} rounds"
    return [
        Figure(
            "drain of 10,000 tasks by one worker",
            plain[middle],
            "jobs/s",
            floor=30_000,
            note=spread,
        ),
        Figure("... with results kept", kept[middle], "jobs/s"),
        Figure("... relative", kept[middle] / plain[middle], "", floor=0.7),
        Figure("... with limits on its queue, relative", sorted(limited)[middle], "", floor=0.7),
        Figure("server and worker idle", 100 * idle, "% of a core", ceiling=1),
    ]


async def _drain(
    task: object, calls: list[tuple[int, ...]] | list[tuple[()]], queue: str = "default"
) -> float:
    """Jobs per second from the moment the queue is opened until the last outcome is counted."""
    await app.ask(Pause(f"task:{queue}"))
    before = (await app.overview()).counts.get("ACKED", 0)
    await task.schedule_many(calls)  # type: ignore[attr-defined]
    began_s = time.perf_counter()
    await app.ask(Resume(f"task:{queue}"))
    while (await app.overview()).counts.get("ACKED", 0) < before + len(calls):
        await asyncio.sleep(0.01)
    return len(calls) / (time.perf_counter() - began_s)


@contextmanager
def worker_of(
    server: Server, app_place: str, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """`duetime worker` for an app of the benchmarks, connected."""
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [
            sys.executable, "-m", "duetime", "worker", app_place, "--concurrency", str(CONCURRENCY),
            "--server", f"http://127.0.0.1:{server.port}", "--grpc-port", str(server.grpc_port),
        ],
        cwd=root,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            **(environment or {}),
            "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        },
    )  # fmt: skip
    assert process.stderr is not None
    if not any(re.search("Connected", line) for line in process.stderr):
        raise RuntimeError("the worker did not start")
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def cpu_s(pid: int) -> float:
    """Seconds of CPU a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
