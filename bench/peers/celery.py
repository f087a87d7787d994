"""Celery on Redis."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from bench.peers import gauge
from bench.peers.peer import Peer

PEER = Peer(
    name="Celery",
    packages=("celery[redis]==5.7.0", "hiredis==3.5.0"),
    service="redis",
    settings="pool solo (delayed tasks: prefork, one process), prefetch without limit, no results, events, "
    "gossip, mingle or heartbeat",
    reason="solo runs jobs without handing them to another process; but it looks at delayed ones too rarely",
)


def _app() -> Any:
    from celery import Celery

    app = Celery("peer", broker=os.environ["PEER_URL"])
    app.conf.update(
        task_ignore_result=True,
        task_serializer="json",
        task_send_sent_event=False,
        worker_send_task_events=False,
        worker_prefetch_multiplier=0,
        worker_disable_rate_limits=True,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
    )
    app.task(name="job")(gauge.hit)
    return app


def fill(count: int) -> None:
    job = _app().tasks["job"]
    for _ in range(count):
        job.apply_async((0,))


def plan(due: list[float]) -> None:
    job = _app().tasks["job"]
    for each in due:
        job.apply_async((each,), eta=datetime.fromtimestamp(each, UTC))


def work() -> None:
    pool = "prefork" if os.environ.get("PEER_LATE") else "solo"
    less = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    _app().worker_main(["worker", "-P", pool, "-c", "1", "-l", "ERROR", *less])
