"""Procrastinate on PostgreSQL."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="Procrastinate",
    packages=("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8", "uvloop==0.23.0"),
    service="postgres",
    settings="concurrency 20, finished jobs deleted, polling every 20 ms, uvloop",
    reason="it fetches jobs one by one whatever the concurrency; the short poll is for the delayed ones",
    rounds=1,
)


def _app() -> Any:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=os.environ["PEER_URL"], min_size=4, max_size=20))

    async def job(due: float) -> None:
        gauge.hit(due)

    app.task(job, name="job")
    return app


async def _queue(due: list[float]) -> None:
    app = _app()
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        for each, count in Counter(due).items():
            at = datetime.fromtimestamp(each, UTC) if each else None
            job = app.tasks["job"].configure(schedule_at=at)
            await job.batch_defer_async(*({"due": each} for _ in range(count)))


def fill(count: int) -> None:
    asyncio.run(_queue([0.0] * count))


def plan(due: list[float]) -> None:
    asyncio.run(_queue(due))


async def _work() -> None:
    app = _app()
    async with app.open_async():
        await app.run_worker_async(concurrency=20, delete_jobs="always", fetch_job_polling_interval=0.02)


def work() -> None:
    import uvloop

    uvloop.run(_work())
