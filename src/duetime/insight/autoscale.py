"""How many workers a queue needs: what waits, how long it will take, and who is there to do it.

Plain arithmetic on what is measured: the work that waits is the number of intents times the mean duration of
their queue; who is connected says how many it takes at a time. An autoscaler reads one number of it.
"""

from __future__ import annotations

from math import ceil

from msgspec import Struct

from duetime.duration_text import span
from duetime.engine.engine import Engine
from duetime.engine.gauges import Gauges, Hands, LaneGauge, gauges, hands
from duetime.limits import AUTOSCALE_RISK_MAX, AUTOSCALE_TARGET_S, AUTOSCALE_WORKERS_MAX, WORKER_CONCURRENCY
from duetime.timefmt import plural

# Taken for a duration as long as none was measured.
_ASSUMED_MS = 100.0


class QueueSignal(Struct, rename="camel"):
    """One queue, as an autoscaler wants it."""

    queue: str
    lane: str
    backlog: int
    """Ready, and not yet handed out."""
    coming: int
    """Due within the target's time; 0 in the metrics, which do not look at the store."""
    running: int
    workers: int
    """Connections that ask for it or hold some of it."""
    capacity: int
    """How many at one time they take together: what runs, and what they ask for besides."""
    expected_ms: float
    """How long one takes, in the mean."""
    measured: bool
    """False: none was measured yet, so the time is a guess."""
    work_seconds: float
    """What the backlog, what is coming and half of what runs take together, one after the other."""
    drain_seconds: float | None
    """How long those who are there take for it; None: nobody is there."""
    lateness_risk: float
    """That time as a share of the target: over 1 it will be late; 1000: there is no worker."""
    risk: str
    """The same number in words: NONE, LOW (over half of the target) or HIGH (over the target)."""
    suggested_workers: int
    """So many would be done within the target."""
    narrative: str


class Autoscale(Struct, rename="camel"):
    """All queues that workers or subscribers ask for."""

    target_seconds: float
    queues: list[QueueSignal]


def autoscale(
    engine: Engine,
    target_s: float = AUTOSCALE_TARGET_S,
    lane: str | None = None,
    coming: dict[str, int] | None = None,
    seen: Gauges | None = None,
) -> Autoscale:
    """The signals of all queues that are pulled, or of one, also when nothing is in it."""
    seen, who = gauges(engine) if seen is None else seen, hands(engine)
    lanes = [each for each in seen.lanes if not each.pushed and each.name != "entity:"]
    if lane is not None:
        empty = LaneGauge(lane, 0, 0, pushed=False, paused=False, consumers=0)
        lanes = [next((each for each in lanes if each.name == lane), empty)]
    found = [
        _signal(engine, each, who.get(each.name, Hands()), target_s, (coming or {}).get(each.name, 0))
        for each in lanes
    ]
    return Autoscale(target_s, found)


def _signal(engine: Engine, lane: LaneGauge, who: Hands, target_s: float, coming: int) -> QueueSignal:
    sketch = engine.expecting.durations.lane(lane.name)
    measured = sketch is not None and sketch.count > 0
    each_ms = sketch.mean_ms if sketch is not None and measured else _ASSUMED_MS
    # What a paused queue holds waits for whoever paused it: no worker would be given any of it.
    waiting = 0 if lane.paused else lane.ready + coming
    work_s = (waiting + lane.running / 2) * each_ms / 1000
    capacity = lane.running + who.credits
    drain_s = work_s / capacity if capacity else None
    # One worker's share, by those who are there; a new one takes what `duetime worker` takes by default.
    own = capacity / who.workers if who.workers and capacity else float(WORKER_CONCURRENCY)
    risk = (work_s / own if drain_s is None else drain_s) / target_s
    if drain_s is None and waiting and lane.ready:  # it is ready and nobody is there: no time is enough
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
