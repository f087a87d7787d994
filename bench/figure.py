"""One measured number, what it should be, and the folder it was measured in."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct


class Figure(Struct):
    """A number. `floor` or `ceiling` is what it must reach; None: only reported."""

    what: str
    value: float
    unit: str
    floor: float | None = None
    ceiling: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.floor is None and self.ceiling is None:
            return ""
        good = (self.floor is None or self.value >= self.floor) and (
            self.ceiling is None or self.value <= self.ceiling
        )
        return "ok" if good else "MISSED"

    @property
    def target(self) -> str:
        if self.floor is not None:
            return f">= {self.floor:,.6g}"
        return f"<= {self.ceiling:,.6g}" if self.ceiling is not None else ""


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder on the disk this repository is on (a memory file system would flatter)."""
    root = Path(__file__).parent / "results"
    with tempfile.TemporaryDirectory(dir=root, prefix="run-", ignore_cleanup_errors=True) as path:
        yield Path(path)
