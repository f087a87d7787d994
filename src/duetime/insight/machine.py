"""What the machine has: memory in use, and how much of it there may be. Read when asked, from the system."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup/memory.max")
_STATM = Path("/proc/self/statm")


def memory_bytes() -> int:
    """The process's resident memory; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@cache
def memory_max_bytes() -> int:
    """How much memory this process may use: its group's limit, or all there is."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP.read_text("ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
