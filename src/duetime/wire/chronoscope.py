"""The chronoscope: tiers, lanes, log and store of a running engine in numbers."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from duetime.wire.shapes import Moment, Out

BACKPRESSURE: Final = ("OPEN", "WAITING", "REFUSING")


class Lateness(Out, frozen=True):
    """Lateness of the first deliveries in the last three minutes; null if there were none."""

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    bound_ms: int
    count: Annotated[int, Meta(description="Number of these deliveries.")]


class PermitsGauge(Out, frozen=True):
    """The delivery permits of a tier."""

    available: int
    max: int
    borrowed: Annotated[int, Meta(description="Permits of other tiers that this tier uses.")]
    lent: Annotated[int, Meta(description="Permits of this tier that other tiers use.")]


class TierScope(Out, frozen=True):
    """One tier."""

    tier: str
    pending: Annotated[int, Meta(description="Intents that are not due yet.")]
    ready: Annotated[int, Meta(description="Due intents that wait for delivery.")]
    running: int
    permits: PermitsGauge
    backpressure: Annotated[
        str,
        Meta(
            description=(
                "OPEN: a permit is free or nothing waits. WAITING: work waits for permits or workers. "
                "REFUSING: new work is refused with 429, because the tier exceeds its bound."
            ),
            extra_json_schema={"enum": list(BACKPRESSURE)},
        ),
    ]
    load: Annotated[float, Meta(description="Share of its permits in use.")]
    lateness: Lateness
    borrows: Annotated[int, Meta(description="How often it borrowed a permit since the start.")]


class LaneGauge(Out, frozen=True):
    """One lane; all entities count as one."""

    name: str
    ready: Annotated[int, Meta(description="Due intents that wait for delivery.")]
    running: int
    pushed: Annotated[bool, Meta(description="The engine delivers; otherwise consumers ask for intents.")]
    paused: bool
    consumers: Annotated[int, Meta(description="Connections that ask for its intents.")]


class LogGauge(Out, frozen=True):
    """The log: its positions and its size."""

    start: Annotated[int, Meta(description="Position of the first stored byte.")]
    tail: Annotated[int, Meta(description="Position of the next byte.")]
    bytes: int
    segments: Annotated[int, Meta(description="Number of files.")]
    synced: Annotated[int, Meta(description="Position up to which the log is on disk.")]
    free_bytes: Annotated[int | None, Meta(description="Free space of the disk; null without a disk.")]


class StoreGauge(Out, frozen=True):
    """The store: its distance to the log, and the intents in memory."""

    checkpoint_position: Annotated[int, Meta(description="Position of the last checkpoint.")]
    checkpoint_lag_bytes: Annotated[int, Meta(description="Bytes of the log after it.")]
    checkpoints: Annotated[int, Meta(description="Number of checkpoints since the start.")]
    unwritten: Annotated[int, Meta(description="Intents changed since the last checkpoint began.")]
    hot: Annotated[int, Meta(description="Intents in memory.")]
    cold: Annotated[int, Meta(description="Intents on disk only.")]


class Chronoscope(Out, frozen=True):
    """The whole engine."""

    at: Moment
    tiers: list[TierScope]
    cohorts: Annotated[int, Meta(description="Groups of intents that share one wake-up.")]
    borrows: Annotated[int, Meta(description="Permits borrowed between tiers since the start.")]
    borrowed_now: int
    lanes: Annotated[list[LaneGauge], Meta(description="The lanes with the most work.")]
    more_lanes: Annotated[int, Meta(description="Number of lanes that are not listed.")]
    entities: int
    counts: Annotated[dict[str, int], Meta(description="Number of intents by status.")]
    next_wake_at: Annotated[Moment | None, Meta(description="When the engine wakes next.")]
    log: LogGauge
    store: StoreGauge
    epoch: Annotated[int, Meta(description="Number of starts of the engine.")]
