"""The chronoscope: lateness, work and permits of each tier now."""

from __future__ import annotations

from duetime.engine.engine import Engine
from duetime.engine.reads.gauges import Gauges, TierGauge, gauges
from duetime.engine.reads.histogram import Histogram
from duetime.engine.reads.meter import Meter
from duetime.limits import TIER_WINDOW_MS
from duetime.protocol.intent import Status
from duetime.wire.chronoscope import Chronoscope, Lateness, TierScope
from duetime.wire.shapes import written, written_or_none


def look(engine: Engine, meter: Meter) -> Chronoscope:
    """Now."""
    seen: Gauges = gauges(engine)
    return Chronoscope(
        at=written(seen.at_ms),
        tiers=[
            _tier(tier, meter.lateness(number, seen.at_ms), number) for number, tier in enumerate(seen.tiers)
        ],
        cohorts=seen.cohorts,
        borrows=sum(tier.borrows for tier in seen.tiers),
        borrowed_now=sum(tier.permits.borrowed for tier in seen.tiers),
        lanes=seen.lanes,
        more_lanes=seen.more_lanes,
        entities=seen.entities,
        counts={status.name: seen.counts[status] for status in Status},
        next_wake_at=written_or_none(seen.next_ms),
        log=seen.log,
        store=seen.store,
        epoch=seen.epoch,
    )


def backpressure(tier: TierGauge) -> str:
    """Whether the tier accepts more work: OPEN, WAITING or REFUSING."""
    if tier.refuses:
        return "REFUSING"
    return "WAITING" if tier.ready else "OPEN"


def lateness(recent: Histogram, number: int) -> Lateness:
    """The lateness of a tier."""
    return Lateness(
        p50_ms=_rounded(recent.quantile(0.50)),
        p95_ms=_rounded(recent.quantile(0.95)),
        p99_ms=_rounded(recent.quantile(0.99)),
        bound_ms=TIER_WINDOW_MS[number],
        count=recent.count,
    )


def _tier(tier: TierGauge, recent: Histogram, number: int) -> TierScope:
    return TierScope(
        tier=tier.tier,
        pending=tier.pending,
        ready=tier.ready,
        running=tier.running,
        permits=tier.permits,
        backpressure=backpressure(tier),
        load=round(tier.used / tier.permits.max, 3) if tier.permits.max else 1.0,
        lateness=lateness(recent, number),
        borrows=tier.borrows,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
