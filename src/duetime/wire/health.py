"""Health: whether a server is on time, its problems, and the figures behind them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime.wire.chronoscope import TierScope
from duetime.wire.shapes import Moment, Out


class Vital(Out, frozen=True):
    """Lateness of one tier in the last minutes, and its bound; null if nothing was called."""

    p50_ms: float | None
    p99_ms: float | None
    bound_ms: int
    samples: Annotated[
        int, Meta(description="Number of calls. With few calls, a percentile is close to the maximum.")
    ]


class Vitals(Out, frozen=True):
    """The numbers behind the narrative."""

    lateness: Annotated[dict[str, Vital], Meta(description="By tier.")]
    due_now: int
    running: int
    oldest_due_ms: Annotated[
        int | None, Meta(description="Waiting time of the oldest intent that could be delivered.")
    ]
    held_back: Annotated[
        int,
        Meta(description="Delivered but not called yet: the receiver is paused, or a worker returned it."),
    ]
    oldest_held_back_ms: Annotated[int | None, Meta(description="Lateness of the oldest of those.")]
    dead_letters_last_hour: int
    log_sync_p99_ms: float | None
    last_sync_at: Moment | None
    checkpoint_lag_bytes: int
    disk_free_bytes: int | None
    memory_bytes: int


class Anomaly(Out, frozen=True):
    """One problem."""

    code: str
    severity: Annotated[
        str,
        Meta(
            description="NOTE does not change the status.",
            extra_json_schema={"enum": ["DOWN", "DEGRADED", "NOTE"]},
        ),
    ]
    subject: Annotated[str, Meta(description="Tier, lane, host or worker; empty for the whole server.")]
    since: Moment
    detail: str
    meaning: str
    advice: str


class Health(Out, frozen=True, omit_defaults=True):
    """Whether the server is on time."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["UP", "DEGRADED", "DOWN"]})]
    narrative: str
    vitals: Vitals
    anomalies: list[Anomaly]
    tiers: Annotated[list[TierScope] | None, Meta(description="Only in /health/deep.")] = None


class Readiness(Out, frozen=True):
    """Whether requests are accepted."""

    ready: bool
    reasons: Annotated[list[str], Meta(description="Why not: STARTING, RECOVERING, CLOSING, ENGINE_FAILED.")]
