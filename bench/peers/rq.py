"""RQ on Redis."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="RQ",
    packages=("rq==2.12.0", "redis==6.4.0", "hiredis==3.5.0"),
    service="redis",
    settings="SimpleWorker, result_ttl=0, scheduler for delayed jobs",
    reason="SimpleWorker does not fork for each job",
    rounds=1,
)


def job(due_s: float) -> None:
    gauge.hit(due_s)


def _queue() -> Any:
    from redis import Redis
    from rq import Queue

    return Queue(connection=Redis.from_url(os.environ["PEER_URL"]))


def fill(count: int) -> None:
    from rq import Queue

    queue = _queue()
    for start in range(0, count, 1000):
        jobs = [Queue.prepare_data(job, (0,), result_ttl=0) for _ in range(min(1000, count - start))]
        queue.enqueue_many(jobs)


def plan(due: list[float]) -> None:
    queue = _queue()
    for each in due:
        queue.enqueue_at(datetime.fromtimestamp(each, UTC), job, each, result_ttl=0)


def work() -> None:
    from rq import SimpleWorker

    queue = _queue()
    worker = SimpleWorker([queue], connection=queue.connection)
    worker.work(logging_level="ERROR", with_scheduler=True)
