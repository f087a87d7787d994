"""PgQueuer on PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from datetime import timedelta
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="PgQueuer",
    packages=("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    service="postgres",
    settings="asyncpg, batch_size=2000, uvloop",
    reason="jobs are fetched and finished by batches; unlogged tables gained nothing here",
)
_DUE = struct.Struct("d")


async def _connect() -> Any:
    import asyncpg
    from pgqueuer.db import AsyncpgDriver

    return AsyncpgDriver(await asyncpg.connect(os.environ["PEER_URL"]))


async def _queue(due: list[float]) -> None:
    from pgqueuer.queries import Queries

    queries = Queries(await _connect())
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    now = time.time()
    for start in range(0, len(due), 1000):
        part = due[start : start + 1000]
        await queries.enqueue(
            ["job"] * len(part),
            [_DUE.pack(each) for each in part],
            [0] * len(part),
            [timedelta(seconds=max(0.0, each - now)) for each in part],
        )


def fill(count: int) -> None:
    asyncio.run(_queue([0.0] * count))


def plan(due: list[float]) -> None:
    asyncio.run(_queue(due))


async def _work() -> None:
    from pgqueuer import PgQueuer

    pgq = PgQueuer(await _connect())

    async def job(job: Any) -> None:
        gauge.hit(_DUE.unpack(job.payload)[0])

    pgq.entrypoint("job")(job)

    await pgq.run(batch_size=2000, dequeue_timeout=timedelta(seconds=30))


def work() -> None:
    import uvloop

    uvloop.run(_work())
