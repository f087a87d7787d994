"""Memory of the process and its limit, read from the operating system on request."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup/memory.max")
_STATM = Path("/proc/self/statm")


def memory_bytes() -> int:
    """Resident memory of the process; 0 if the system does not provide it."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@cache
def memory_max_bytes() -> int:
    """Memory available to this process: the limit of its cgroup, or all memory of the machine."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP.read_text("ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
