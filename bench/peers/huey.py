"""Huey on Redis."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="Huey",
    packages=("huey==3.5.4", "redis==6.4.0", "hiredis==3.5.0"),
    service="redis",
    settings="one worker thread, blocking read, no results, no periodic tasks, no health check",
    reason="more threads only wait for one interpreter lock",
    rounds=1,
)


def _job() -> Any:
    from huey import RedisHuey

    huey = RedisHuey("peer", url=os.environ["PEER_URL"], results=False, blocking=True, utc=False)
    return huey.task(name="job")(gauge.hit)


def fill(count: int) -> None:
    job = _job()
    for _ in range(count):
        job(0)


def plan(due: list[float]) -> None:
    job = _job()
    for each in due:
        job.schedule((each,), eta=datetime.fromtimestamp(each))


def work() -> None:
    _job().huey.create_consumer(
        workers=1, periodic=False, check_worker_health=False, scheduler_interval=1
    ).run()
