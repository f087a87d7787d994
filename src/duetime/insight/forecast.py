"""The timeline: upcoming intents by time slot, the peak, the capacity, and the predicted lateness.

The prediction simulates a queue. In each slot, the intents that become due join those left from the slot
before; the number that is done follows from the permits (or workers) and the measured duration of a delivery.
Within a slot, intents are assumed to arrive evenly. Intents that are not submitted yet are unknown.
"""

from __future__ import annotations

from msgspec import Struct

from duetime.duration_text import span
from duetime.engine.engine import Engine
from duetime.engine.reads.gauges import Gauges, credits, gauges
from duetime.engine.reads.histogram import Histogram
from duetime.engine.reads.library import Library, Slot
from duetime.engine.reads.meter import Meter
from duetime.errors import BadQuery
from duetime.limits import (
    ASSUMED_MS,
    CALLBACK_BATCH_MAX,
    ENGINE_RATE_MAX,
    SECOND_MS,
    TIER_NAMES,
    TIER_WINDOW_MS,
    TIMELINE_SLOTS_MAX,
)
from duetime.timefmt import iso, plural
from duetime.wire.shapes import written
from duetime.wire.timeline import Capacity, Peak, Timeline, TimelineSlot


class _Group(Struct):
    """Deliveries that wait for the same permits or workers."""

    capacity: Capacity
    waiting: float = 0.0
    late_ms: float = 0.0


async def timeline(
    engine: Engine, meter: Meter, library: Library, from_ms: int, to_ms: int, slots: int = 60
) -> Timeline:
    """The upcoming intents between two times, in this number of slots."""
    if to_ms <= from_ms:
        raise BadQuery("to must be after from.")
    if not 1 <= slots <= TIMELINE_SLOTS_MAX:
        raise BadQuery(f"slots must be from 1 to {TIMELINE_SLOTS_MAX}, not {slots}.")
    slot_ms = max(SECOND_MS, -(-(to_ms - from_ms) // slots))
    found = await library.slots(from_ms, to_ms, slot_ms)
    return predict(found, _groups(engine, meter), from_ms, to_ms, slot_ms)


def predict(found: list[Slot], groups: dict[str, _Group], from_ms: int, to_ms: int, slot_ms: int) -> Timeline:
    """The timeline of these counts with the capacity of these groups."""
    by_slot: dict[int, list[Slot]] = {}
    for slot in found:
        by_slot.setdefault(slot.at_ms, []).append(slot)
    worst = dict.fromkeys(TIER_NAMES, 0.0)
    shown = []
    rate = min(ENGINE_RATE_MAX, sum(group.capacity.per_second for group in groups.values()))
    for at_ms in range(from_ms, to_ms, slot_ms):
        shown.append(_slot(at_ms, slot_ms, by_slot.get(at_ms, []), groups, worst, rate))
    busiest = max(shown, key=lambda slot: slot.count)
    busiest_ms = from_ms + slot_ms * shown.index(busiest)
    peak = (
        Peak(at=written(busiest_ms), count=busiest.count, per_second=round(busiest.count * 1000 / slot_ms, 2))
        if busiest.count
        else None
    )
    total = sum(slot.count for slot in shown)
    risk = _risk(worst)
    return Timeline(
        start=written(from_ms),
        end=written(to_ms),
        slot_ms=slot_ms,
        total=total,
        slots=shown,
        peak=peak,
        capacity=[group.capacity for group in groups.values()],
        predicted_lateness_ms={tier: round(late_ms, 1) for tier, late_ms in worst.items()},
        risk=risk,
        narrative=_narrative(total, busiest.count, busiest_ms, slot_ms, worst, risk),
    )


def _slot(
    at_ms: int,
    slot_ms: int,
    found: list[Slot],
    groups: dict[str, _Group],
    worst: dict[str, float],
    rate: float,
) -> TimelineSlot:
    by_tier: dict[str, int] = {}
    by_queue: dict[str, int] = {}
    touched: set[tuple[str, str]] = set()
    for slot in found:
        by_tier[slot.tier] = by_tier.get(slot.tier, 0) + slot.count
        by_queue[slot.queue] = by_queue.get(slot.queue, 0) + slot.count
        name = slot.queue if slot.queue in groups else slot.tier
        groups[name].waiting += slot.count
        touched.add((slot.tier, name))
    for group in groups.values():
        group.waiting = max(0.0, group.waiting - group.capacity.per_second * slot_ms / 1000)
        group.late_ms = group.waiting * 1000 / group.capacity.per_second if group.capacity.per_second else 0.0
    for tier, name in touched:
        worst[tier] = max(worst[tier], groups[name].late_ms)
    late_ms = max((groups[name].late_ms for _, name in touched), default=0.0)
    count = sum(by_tier.values())
    return TimelineSlot(
        at=written(at_ms),
        count=count,
        by_tier=by_tier,
        by_queue=by_queue,
        capacity=round(rate * slot_ms / 1000),
        predicted_lateness_ms=round(late_ms, 1),
    )


def _groups(engine: Engine, meter: Meter) -> dict[str, _Group]:
    """The groups now: each tier with its permits, each queue of workers with its workers."""
    seen = gauges(engine)
    groups: dict[str, _Group] = {}
    ready = sum(lane.ready for lane in seen.lanes)
    pushed = sum(lane.ready for lane in seen.lanes if lane.pushed) / ready if ready else 0.0
    for number, tier in enumerate(seen.tiers):
        times, measured = _times(meter, number, seen.at_ms)
        share = _permit_share(meter, number)
        capacity = _capacity(tier.tier, tier.permits.max / share, times, measured)
        groups[tier.tier] = _Group(capacity, tier.ready * pushed)
    for lane in seen.lanes:
        if lane.pushed:
            continue
        at_once = lane.running + credits(engine, lane.name)
        if at_once:
            times, measured = _lane_times(engine, meter, seen, lane.name)
            groups[lane.name] = _Group(_capacity(lane.name, at_once, times, measured), float(lane.ready))
    return groups


def _capacity(name: str, at_once: float, delivery_ms: float, measured: bool) -> Capacity:
    rate = min(ENGINE_RATE_MAX, at_once * 1000 / max(delivery_ms, 0.1))
    return Capacity(
        name=name,
        per_second=round(rate, 2),
        at_once=round(at_once, 1),
        delivery_ms=round(delivery_ms, 2),
        measured=measured,
    )


def _permit_share(meter: Meter, tier: int) -> float:
    """The part of a permit that one delivery uses, given the share of deliveries in batches."""
    all_of_tier = sum(
        count for (of, channel, _), count in meter.deliveries.items() if of == tier and channel == "callback"
    )
    batched = meter.batched[tier] / all_of_tier if all_of_tier else 0.0
    return (1 - batched) + batched / CALLBACK_BATCH_MAX


def _times(meter: Meter, tier: int, now_ms: int) -> tuple[float, bool]:
    """The mean duration of a delivery: recent, otherwise since the start, otherwise assumed."""
    for seen in (meter.delivery_ms[tier].recent(now_ms), meter.delivery_ms[tier].total()):
        if seen.count:
            return max(seen.mean, 0.1), True
    return ASSUMED_MS, False


def _lane_times(engine: Engine, meter: Meter, seen: Gauges, lane: str) -> tuple[float, bool]:
    """The mean duration of the queue's deliveries; of all deliveries while the queue has none."""
    sketch = engine.predictor.durations.lane(lane)
    if sketch is not None and sketch.count:
        return max(sketch.mean_ms, 0.1), True
    return _all_times(meter, seen)


def _all_times(meter: Meter, seen: Gauges) -> tuple[float, bool]:
    every = Histogram(meter.delivery_ms[0].bounds)
    for each in meter.delivery_ms:
        every.merge(each.recent(seen.at_ms))
    return (max(every.mean, 0.1), True) if every.count else (ASSUMED_MS, False)


def _risk(worst: dict[str, float]) -> str:
    shares = [worst[name] / TIER_WINDOW_MS[number] for number, name in enumerate(TIER_NAMES)]
    return "HIGH" if max(shares) > 1 else "LOW" if max(shares) > 0.5 else "NONE"


def _narrative(total: int, most: int, most_ms: int, slot_ms: int, worst: dict[str, float], risk: str) -> str:
    if not total:
        return "Nothing is scheduled in this time."
    words = f"{plural(total, 'intent')} will fire, at most {most:,} within {span(slot_ms)} at {iso(most_ms)}"
    if risk == "NONE":
        return f"{words}: that can be done in time."
    tier = max(TIER_NAMES, key=lambda name: worst[name] / TIER_WINDOW_MS[TIER_NAMES.index(name)])
    bound_ms = TIER_WINDOW_MS[TIER_NAMES.index(tier)]
    late = f"{tier} is expected to be up to {span(round(worst[tier]))} late, its bound is {bound_ms} ms"
    if risk == "LOW":
        return f"{words}: {late}; that is close."
    return f"{words}: {late}. Give it more permits or workers, or spread the work."
