"""arq on Redis."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="arq",
    packages=("arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0", "uvloop==0.23.0"),
    service="redis",
    settings="max_jobs=100, queue_read_limit=100, keep_result=0, poll_delay=0.01, no log of results, uvloop",
    reason="one process with many jobs at a time; the short poll is for the delayed ones",
    rounds=1,
)


async def job(ctx: dict[str, Any], due_s: float) -> None:
    gauge.hit(due_s)


def _settings() -> Any:
    from arq.connections import RedisSettings

    return RedisSettings.from_dsn(os.environ["PEER_URL"])


def _moment(due_s: float) -> datetime | None:
    return datetime.fromtimestamp(due_s, UTC) if due_s else None


async def _queue(due: list[float]) -> None:
    from arq import create_pool

    redis = await create_pool(_settings())
    for start in range(0, len(due), 100):
        await asyncio.gather(
            *(redis.enqueue_job("job", each, _defer_until=_moment(each)) for each in due[start : start + 100])
        )
    await redis.aclose()


def fill(count: int) -> None:
    asyncio.run(_queue([0.0] * count))


def plan(due: list[float]) -> None:
    asyncio.run(_queue(due))


def work() -> None:
    import uvloop
    from arq import Worker

    uvloop.install()
    asyncio.set_event_loop(asyncio.new_event_loop())
    Worker(
        [job],
        redis_settings=_settings(),
        max_jobs=100,
        queue_read_limit=100,
        keep_result=0,
        poll_delay=0.01,
        log_results=False,
    ).run()
