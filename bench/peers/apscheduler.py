"""APScheduler 3 on SQLite: it has no queue, so it is measured for its lateness alone."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="APScheduler",
    packages=("apscheduler==3.11.3", "sqlalchemy==2.1.8", "uvloop==0.23.0"),
    service="sqlite",
    settings="AsyncIOScheduler, SQLAlchemyJobStore on a SQLite file (WAL, synchronous=NORMAL), uvloop",
    reason="jobs and scheduler in one process and one thread, with nothing between them",
    drains=False,
)


def job(due_s: float) -> None:
    gauge.hit(due_s)


def _stores() -> dict[str, Any]:
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from sqlalchemy import create_engine, event

    engine = create_engine(os.environ["PEER_URL"])

    @event.listens_for(engine, "connect")
    def fast(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return {"default": SQLAlchemyJobStore(engine=engine)}


def plan(due: list[float]) -> None:
    from apscheduler.schedulers.background import BackgroundScheduler

    scheduler = BackgroundScheduler(jobstores=_stores(), timezone=UTC)
    scheduler.start(paused=True)
    for each in due:
        at = datetime.fromtimestamp(each, UTC)
        scheduler.add_job(job, "date", run_date=at, args=(each,), misfire_grace_time=None)


async def _work() -> None:
    from apscheduler.executors.asyncio import AsyncIOExecutor
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    AsyncIOScheduler(jobstores=_stores(), executors={"default": AsyncIOExecutor()}, timezone=UTC).start()
    await asyncio.Event().wait()


def work() -> None:
    import uvloop

    uvloop.run(_work())
