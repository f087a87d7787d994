"""Waiting for what only asking tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 30


def until(look: Callable[[], T]) -> T:
    """Ask again and again until the answer is yes."""
    for _ in range(WAIT_S * 20):
        found = look()
        if found:
            return found
        time.sleep(0.05)  # tidy: nobody tells when to ask again
    raise AssertionError("it did not come to it in time")
