"""Dramatiq on Redis."""

from __future__ import annotations

import os
import time
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="Dramatiq",
    packages=("dramatiq==2.2.1", "redis==6.4.0", "hiredis==3.5.0"),
    service="redis",
    settings="one process, 2 threads, prefetch 1,000, no middleware, no maintenance",
    reason="one thread waits for Redis while the other works; middleware costs each message a call",
)


def _job() -> Any:
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=os.environ["PEER_URL"], middleware=[], maintenance_chance=0)
    dramatiq.set_broker(broker)
    return dramatiq.actor(gauge.hit, actor_name="job", broker=broker)


def fill(count: int) -> None:
    job = _job()
    for _ in range(count):
        job.send(0)


def plan(due: list[float]) -> None:
    job = _job()
    for each in due:
        job.send_with_options(args=(each,), delay=max(0, round(1000 * (each - time.time()))))


def work() -> None:
    os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112  # its own name for it
    from dramatiq import Worker

    worker = Worker(_job().broker, worker_threads=2)
    worker.start()
    time.sleep(3600)
