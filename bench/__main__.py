"""`python -m bench [NAME ...]`: run the benchmarks, each in a process of its own; print and save a table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.figure import Figure

ALL = (
    "log",
    "kernel",
    "durable",
    "embedded",
    "burst",
    "lateness",
    "memory",
    "webhooks",
    "http",
    "server",
    "worker",
)


def main(names: list[str]) -> int:
    console = Console(stderr=True)
    table = Table("what", "figure", "unit", "target", "", "note", title="Duetime benchmarks")
    everything: dict[str, list[dict[str, object]]] = {}
    missed = 0
    for name in names or ALL:
        console.print(f"running {name} ...")
        done = subprocess.run(
            [sys.executable, "-m", "bench", "--child", name], stdout=subprocess.PIPE, check=False, text=True
        )
        if done.returncode:
            console.print(f"{name} failed with exit code {done.returncode}")
            missed += 1
            continue
        for figure in msgspec.json.decode(done.stdout, type=list[Figure]):
            missed += figure.verdict == "MISSED"
            style = "red" if figure.verdict == "MISSED" else None
            table.add_row(
                figure.what, f"{figure.value:,.4g}" if figure.value < 1000 else f"{figure.value:,.0f}",
                figure.unit, figure.target, figure.verdict, figure.note, style=style,
            )  # fmt: skip
            everything.setdefault(name, []).append({**msgspec.to_builtins(figure), "verdict": figure.verdict})
    Console().print(table)
    _save(everything)
    return 1 if missed else 0


def _save(everything: dict[str, list[dict[str, object]]]) -> None:
    now = datetime.now(UTC)  # tidy: a benchmark's date
    result = {
        "date": now.isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.system(),
            "kernel": platform.release(),
            "cpu": cpu(),
            "python": platform.python_version(),
        },
        "figures": everything,
    }
    path = Path(__file__).parent / "results" / f"{now:%Y-%m-%d}.json"
    if path.exists():  # a run of some of them adds to the day's file
        earlier = json.loads(path.read_text())
        result["figures"] = {**earlier["figures"], **everything}
    path.write_text(json.dumps(result, indent=2) + "\n")


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        figures = import_module(f"bench.{sys.argv[2]}").run()
        sys.stdout.write(msgspec.json.encode(figures).decode())
    else:
        sys.exit(main(sys.argv[1:]))
