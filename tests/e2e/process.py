"""Starting real processes that import this tree's Duetime."""

from __future__ import annotations

import os
from pathlib import Path

import duetime

SOURCE = Path(duetime.__path__[0]).parent
ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """What a child process needs."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
