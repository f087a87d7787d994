"""BullMQ on Redis: its program is bullmq.cjs."""

from __future__ import annotations

from bench.peers.peer import Peer

PEER = Peer(
    name="BullMQ",
    packages=("bullmq@6.7.0", "ioredis@6.0.0"),
    service="redis",
    language="node",
    settings="concurrency 100, removeOnComplete and removeOnFail",
    reason="many jobs at a time hide the wait for Redis; what is finished is not kept",
)
