"""taskiq on Redis."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="taskiq",
    packages=("taskiq==0.13.0", "taskiq-redis==1.2.4", "hiredis==3.5.0", "uvloop==0.23.0"),
    service="redis",
    settings="RedisStreamBroker, xread_count, max_async_tasks, max_prefetch 1000, no parsing, uvloop",
    reason="the stream broker reads many at once, which made it faster here than the list broker",
    rounds=1,
)


def _broker() -> Any:
    from taskiq_redis import RedisStreamBroker

    broker = RedisStreamBroker(os.environ["PEER_URL"], xread_count=1000)

    async def job(due_s: float) -> None:
        gauge.hit(due_s)

    broker.register_task(job, task_name="job")
    return broker


def _source() -> Any:
    from taskiq_redis import ListRedisScheduleSource

    return ListRedisScheduleSource(os.environ["PEER_URL"])


async def _fill(count: int) -> None:
    broker = _broker()
    await broker.startup()
    job = broker.find_task("job")
    for start in range(0, count, 100):
        await asyncio.gather(*(job.kiq(0.0) for _ in range(min(100, count - start))))
    await broker.shutdown()


async def _plan(due: list[float]) -> None:
    source = _source()
    await source.startup()
    job = _broker().find_task("job")
    for each in due:
        await job.schedule_by_time(source, datetime.fromtimestamp(each, UTC), each)


async def _work() -> None:
    from taskiq import TaskiqScheduler
    from taskiq.api import run_receiver_task, run_scheduler_task

    broker = _broker()
    await broker.startup()
    scheduler = TaskiqScheduler(broker, [_source()])
    await asyncio.gather(
        run_receiver_task(broker, max_async_tasks=1000, max_prefetch=1000, validate_params=False),
        run_scheduler_task(scheduler, run_startup=True),
    )


def fill(count: int) -> None:
    asyncio.run(_fill(count))


def plan(due: list[float]) -> None:
    asyncio.run(_plan(due))


def work() -> None:
    import uvloop

    uvloop.run(_work())
