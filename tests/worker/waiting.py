"""Waiting for what only asking tells."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 30


def until(look: Callable[[], T]) -> T:
    """Ask again and again until the answer is yes."""
    never = threading.Event()
    for _ in range(WAIT_S * 20):
        found = look()
        if found:
            return found
        never.wait(0.05)
    raise AssertionError("it did not come to it in time")
