"""Graphile Worker on PostgreSQL: its program is graphile.cjs."""

from __future__ import annotations

from bench.peers.peer import Peer

PEER = Peer(
    name="Graphile Worker",
    packages=("graphile-worker@0.17.3",),
    service="postgres",
    language="node",
    settings="concurrentJobs 24, maxPoolSize 25, localQueue size 500, batched completion (delay 0)",
    reason="the settings of its own performance page; polling every 10 ms for the delayed ones",
)
