"""Autoscaling: the number of workers that each queue needs, and the figures behind it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime.wire.shapes import Out
from duetime.wire.timeline import RISKS


class QueueSignal(Out, frozen=True):
    """The values of one queue for an autoscaler."""

    queue: str
    lane: str
    backlog: Annotated[int, Meta(description="Ready and not delivered yet.")]
    coming: Annotated[int, Meta(description="Due within the target time. Always 0 in the metrics.")]
    running: int
    workers: Annotated[int, Meta(description="Connections that serve the queue or hold deliveries of it.")]
    capacity: Annotated[
        int, Meta(description="Total concurrency of the workers: running deliveries plus free credits.")
    ]
    expected_ms: Annotated[float, Meta(description="Mean duration of one delivery.")]
    measured: Annotated[
        bool, Meta(description="False while no duration was measured: the duration is assumed.")
    ]
    work_seconds: Annotated[
        float,
        Meta(description="Total duration of the backlog, the coming intents and half of the running ones."),
    ]
    drain_seconds: Annotated[
        float | None,
        Meta(description="Time that the connected workers need for it; null without workers."),
    ]
    lateness_risk: Annotated[
        float,
        Meta(
            description=(
                "That time divided by the target time. Above 1 the queue is late; 1000 means no worker."
            )
        ),
    ]
    risk: Annotated[
        str,
        Meta(
            description=(
                "The same as a level: NONE, LOW (above half of the target) or HIGH (above the target)."
            ),
            extra_json_schema={"enum": list(RISKS)},
        ),
    ]
    suggested_workers: Annotated[
        int, Meta(description="Number of workers that would finish within the target time.")
    ]
    narrative: str


class Autoscale(Out, frozen=True):
    """All queues that workers or subscribers serve."""

    target_seconds: float
    queues: list[QueueSignal]
