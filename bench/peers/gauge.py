"""The clock of a worker: when its first job began, when its last one ended, how late each was.

Every worker of this benchmark calls `hit` in its one function, Duetime's as well. Standard library only.
What is wanted stands in the environment, so that a worker started by a command of its own finds it too.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

WANTED, OUT = "PEER_WANTED", "PEER_OUT"

_wanted = int(os.environ.get(WANTED, "0"))
_hits: list[float] = []
_late: list[tuple[float, float]] = []


def hit(due_s: float = 0.0) -> None:
    """A job runs. `due_s`: when it should have begun, if it was delayed."""
    if due_s:
        _late.append((due_s, time.time() - due_s))
    _hits.append(time.perf_counter())
    if len(_hits) >= _wanted:
        _write()


def _write() -> None:
    path = Path(os.environ[OUT])
    part = path.with_suffix(".part")
    noted = {"jobs": len(_hits), "first": _hits[0], "seconds": _hits[-1] - _hits[0], "late": _late}
    part.write_text(json.dumps(noted))
    part.replace(path)
