"""Graphile Worker on PostgreSQL: its program is graphile.cjs."""

from __future__ import annotations

from bench.peers.peer import Peer

PEER = Peer(
    name="Graphile Worker",
    packages=("graphile-worker@0.17.3",),
    service="postgres",
    language="node",
    settings="concurrentJobs 24, maxPoolSize 25, localQueue size 2000, batched completion, pollInterval 10",
    reason="its performance page, but for a larger local queue, which was faster; polling is for delays",
)
