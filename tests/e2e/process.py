"""Real processes that import this tree's Duetime: how they start, what they print, how they end."""

from __future__ import annotations

import os
import re
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import duetime

SOURCE = Path(duetime.__path__[0]).parent
ROOT = Path(__file__).parents[2]
WAIT_S = 60


def environment() -> dict[str, str]:
    """What a child process needs."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}


def stand_still(send: Callable[[int], object], seconds: float) -> None:
    """Stop a process with a signal, and let it go on after so long."""
    send(signal.SIGSTOP)
    time.sleep(seconds)  # tidy: a process that stands still does so in real time, and nothing happens in it
    send(signal.SIGCONT)


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, also one that is no child of this one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([process], [], [], WAIT_S)
    finally:
        os.close(process)
    assert ended, f"process {pid} is still running after {WAIT_S} s"


class Lines:
    """The lines that a process prints, read in a thread. Tests wait for the one they need."""

    def __init__(self, stream: IO[str], lines: list[str] | None = None) -> None:
        """`lines`: a list to append to, which may have the lines of an earlier process."""
        self.lines = [] if lines is None else lines
        self._first = len(self.lines)
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def wait_for(self, pattern: str, times: int = 1, within_s: float = WAIT_S) -> list[re.Match[str]]:
        """The matches of a pattern in the lines of this process, once there are this many."""

        def found() -> list[re.Match[str]]:
            return [match for line in self.lines[self._first :] if (match := re.search(pattern, line))]

        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(found()) >= times, within_s)
            matches = found()
        assert len(matches) >= times, f"no {pattern!r} in:\n" + "\n".join(self.lines)
        return matches

    def join(self) -> None:
        """Wait until everything is read that the process printed before it ended."""
        self._thread.join(WAIT_S)

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
