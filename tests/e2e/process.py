"""Starting real processes that import this tree's Duetime."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import duetime

SOURCE = Path(duetime.__path__[0]).parent
ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """What a child process needs."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}


def stand_still(send: Callable[[int], object], seconds: float) -> None:
    """Stop a process with a signal, and let it go on after so long."""
    send(signal.SIGSTOP)
    time.sleep(seconds)  # tidy: a process that stands still does so in real time, and nothing happens in it
    send(signal.SIGCONT)
