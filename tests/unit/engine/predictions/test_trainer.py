"""The thread that learns."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from duetime.engine.predictions.trainer import Learner


class Looking(Learner):
    looks = 0

    def look(self) -> None:
        self.looks += 1


def test_a_process_that_cannot_lower_its_priority_learns_too(tmp_path: Path, monkeypatch):
    """The unit in deploy/systemd refuses setpriority: that ended the thread, and there was no model."""

    def refuse(by: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", refuse)
    learner, stop = Looking(tmp_path / "store.db"), threading.Event()
    stop.set()
    learner.learn_for_ever(stop)
    assert learner.looks == 1
