"""The number of workers that a queue needs, for autoscalers.

Computed from measured values: the work of a queue is the number of its waiting intents times their mean
duration, and the capacity is the total concurrency of its connected workers. An autoscaler needs one number.
"""

from __future__ import annotations

from math import ceil

from duetime.duration_text import span
from duetime.engine.engine import Engine
from duetime.engine.reads.gauges import Gauges, Hands, gauges, hands
from duetime.limits import (
    ASSUMED_MS,
    AUTOSCALE_RISK_MAX,
    AUTOSCALE_TARGET_S,
    AUTOSCALE_WORKERS_MAX,
    WORKER_CONCURRENCY,
)
from duetime.timefmt import plural
from duetime.wire.autoscale import Autoscale, QueueSignal
from duetime.wire.chronoscope import LaneGauge


def autoscale(
    engine: Engine,
    target_s: float = AUTOSCALE_TARGET_S,
    lane: str | None = None,
    coming: dict[str, int] | None = None,
    seen: Gauges | None = None,
) -> Autoscale:
    """The signals of all queues with workers or subscribers, or of one queue, which may be empty."""
    seen, who = gauges(engine) if seen is None else seen, hands(engine)
    lanes = [each for each in seen.lanes if not each.pushed and each.name != "entity:"]
    if lane is not None:
        empty = LaneGauge(name=lane, ready=0, running=0, pushed=False, paused=False, consumers=0)
        lanes = [next((each for each in lanes if each.name == lane), empty)]
    found = [
        _signal(engine, each, who.get(each.name, Hands()), target_s, (coming or {}).get(each.name, 0))
        for each in lanes
    ]
    return Autoscale(target_seconds=target_s, queues=found)


def _signal(engine: Engine, lane: LaneGauge, who: Hands, target_s: float, coming: int) -> QueueSignal:
    sketch = engine.predictor.durations.lane(lane.name)
    measured = sketch is not None and sketch.count > 0
    each_ms = sketch.mean_ms if sketch is not None and measured else ASSUMED_MS
    # A paused queue delivers nothing, so more workers would not help.
    waiting = 0 if lane.paused else lane.ready + coming
    work_s = (waiting + lane.running / 2) * each_ms / 1000
    capacity = lane.running + who.credits
    drain_s = work_s / capacity if capacity else None
    # The concurrency per connected worker; without workers, the default of `duetime worker`.
    own = capacity / who.workers if who.workers and capacity else float(WORKER_CONCURRENCY)
    risk = (work_s / own if drain_s is None else drain_s) / target_s
    if (
        drain_s is None and waiting and lane.ready
    ):  # work is ready and there is no worker: it would never finish
        risk = AUTOSCALE_RISK_MAX
    risk = round(min(risk, AUTOSCALE_RISK_MAX), 4)
    wanted = max(ceil(work_s / target_s / own), 1 if waiting or lane.running else 0)
    return QueueSignal(
        queue=lane.name.partition(":")[2],
        lane=lane.name,
        backlog=lane.ready,
        coming=coming,
        running=lane.running,
        workers=who.workers,
        capacity=capacity,
        expected_ms=round(each_ms, 1),
        measured=measured,
        work_seconds=round(work_s, 3),
        drain_seconds=None if drain_s is None else round(drain_s, 3),
        lateness_risk=risk,
        risk="HIGH" if risk > 1 else "LOW" if risk > 0.5 else "NONE",
        suggested_workers=min(wanted, AUTOSCALE_WORKERS_MAX),
        narrative=_narrative(
            lane, coming, work_s, drain_s, who.workers, wanted, span(round(target_s * 1000))
        ),
    )


def _narrative(
    lane: LaneGauge, coming: int, work_s: float, drain_s: float | None, workers: int, wanted: int, within: str
) -> str:
    waiting = lane.ready + coming
    if lane.paused and waiting:
        return f"Paused: {plural(waiting, 'intent')} wait until it is resumed; workers would not help."
    if not waiting and not lane.running:
        return "Nothing waits and nothing runs."
    if not waiting:
        return f"Nothing waits; {lane.running:,} under way, with {plural(workers, 'worker')}."
    said = f"{plural(waiting, 'intent')}, about {span(round(work_s * 1000))} of work"
    if drain_s is None:
        return f"{said}, and no worker: {plural(wanted, 'worker')} would be done within {within}."
    done = f"{plural(workers, 'worker')} will be done in about {span(round(drain_s * 1000))}"
    if wanted <= workers:
        return f"{said}: {done}, within the target of {within}."
    return f"{said}: {done}, beyond the target of {within}; {wanted:,} would be within it."
