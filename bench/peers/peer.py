"""What one says of a peer: how it is installed, what it needs, how it is set up and why so.

Standard library only: a peer's file is imported by the peer's own interpreter as well.
"""

from __future__ import annotations

from dataclasses import dataclass

# Their files, the fastest first.
PEERS = (
    "graphile",
    "pgqueuer",
    "bullmq",
    "dramatiq",
    "celery",
    "huey",
    "taskiq",
    "arq",
    "procrastinate",
    "rq",
    "apscheduler",
)


@dataclass(frozen=True)
class Peer:
    """Another job system. `packages`: exact versions, the first is the system itself."""

    name: str
    packages: tuple[str, ...]
    service: str
    """"redis", "postgres" or "sqlite"."""
    settings: str
    reason: str
    """Why these settings and no others."""
    language: str = "python"
    drains: bool = True
    delays: bool = True
    rounds: int = 3
    """Fewer for one so slow that three rounds would take minutes."""

    @property
    def version(self) -> str:
        return self.packages[0].rpartition("=")[2].rpartition("@")[2]
