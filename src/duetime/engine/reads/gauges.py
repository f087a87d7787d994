"""The engine's internals in numbers, at this moment: log, store, permits, lanes. No walk over all intents.

The one place outside the engine's own files that reads its parts, so that `insight` need not know them.
"""

from __future__ import annotations

from heapq import nlargest

from msgspec import Struct

from duetime.engine.engine import Engine
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.limits import BORROWED_COUNTED_MAX, LANES_SHOWN_MAX, TIER_NAMES, TIER_WINDOW_MS
from duetime.log.log import DiskLog, Log
from duetime.protocol.checkpoint import Consumer
from duetime.protocol.intent import BLOCKED, DISPATCHING, DUE, SCHEDULED
from duetime.wire.chronoscope import LaneGauge, LogGauge, PermitsGauge, StoreGauge


class TierGauge(Struct):
    """One tier."""

    tier: str
    pending: int
    """Live intents that are not due yet."""
    ready: int
    running: int
    used: int
    permits: PermitsGauge
    borrows: int
    """How often it borrowed since the start."""
    behind_ms: int
    """How late the first in line is, if it waits for a permit."""
    refuses: bool
    """Whether new work is refused because the lateness bound cannot be kept."""


class Gauges(Struct):
    """Everything at once."""

    at_ms: int
    epoch: int
    records: int
    counts: list[int]
    """Intents by status."""
    tiers: list[TierGauge]
    lanes: list[LaneGauge]
    more_lanes: int
    """The number of lanes not listed."""
    entities: int
    cohorts: int
    stale: int
    next_ms: int | None
    inbox: int
    log: LogGauge
    store: StoreGauge


def _state(engine: Engine) -> State:
    engine._phase.check()
    return engine._kernel.state


def failure(engine: Engine) -> Exception | None:
    """Why the engine stopped itself, if it did."""
    return engine._phase.failure


def is_ready(engine: Engine) -> bool:
    """Whether recovery is done and the engine has neither failed nor is closing."""
    return engine._phase.accepts


def log_directory(engine: Engine) -> str | None:
    """The folder of the log; None if it is in memory."""
    return engine._log.directory if isinstance(engine._log, DiskLog) else None


def log_of(engine: Engine) -> Log:
    """The log, for readers."""
    return engine._log


def credits(engine: Engine, lane: str) -> int:
    """How many more deliveries of a lane its consumers would take now."""
    consumers = _state(engine).consumers.values()
    return sum(consumer.credits.get(lane, 0) for consumer in consumers)


class Hands(Struct):
    """The consumers of a lane."""

    workers: int = 0
    credits: int = 0
    """How many more deliveries they would take now."""


def hands(engine: Engine) -> dict[str, Hands]:
    """For each pulled lane, the connections that ask for it or hold deliveries of it."""
    state = _state(engine)
    found: dict[str, Hands] = {}
    looked_at = 0
    for consumer in state.consumers.values():
        names = dict.fromkeys(consumer.credits)
        for intent in state.out.get(consumer.name, {}).values():
            looked_at += 1
            if looked_at > BORROWED_COUNTED_MAX:
                break
            names[intent.terms.lane] = None
        for name in names:
            lane = found.setdefault(name, Hands())
            lane.workers += 1
            lane.credits += consumer.credits.get(name, 0)
    return found


def is_closing(engine: Engine) -> bool:
    """Whether the engine is closing or closed."""
    return engine._phase.closing


def gauges(engine: Engine) -> Gauges:
    """The gauges of a running engine. Raises the error it failed with, or that it does not run."""
    state = _state(engine)
    lanes, more = _lanes(state)
    return Gauges(
        at_ms=engine.now_ms(),
        epoch=state.epoch,
        records=state.records,
        counts=state.counts,
        tiers=tiers(engine),
        lanes=lanes,
        more_lanes=more,
        entities=state.entities,
        cohorts=state.timers.cohorts,
        stale=state.stale,
        next_ms=engine._kernel.next_ms(),
        inbox=len(engine._inbox),
        log=_log(engine),
        store=_store(engine),
    )


def tiers(engine: Engine) -> list[TierGauge]:
    """Every tier."""
    state = _state(engine)
    borrowed, tally = _borrowed(state), engine.reads.tally()
    found = []
    for number, permits in enumerate(state.tiers.all):
        counts = tally.standing(number)
        late_ms = engine._guard.behind_ms(number, engine.now_ms())
        guarded = engine.options.lateness_guard
        found.append(
            TierGauge(
                tier=TIER_NAMES[number],
                pending=counts[SCHEDULED] + counts[BLOCKED],
                ready=counts[DUE],
                running=counts[DISPATCHING],
                used=permits.used,
                permits=PermitsGauge(
                    available=max(0, permits.max - permits.used),
                    max=permits.max,
                    borrowed=borrowed[number],
                    lent=permits.lent,
                ),
                borrows=permits.borrows,
                behind_ms=late_ms,
                refuses=guarded and late_ms > TIER_WINDOW_MS[number],
            )
        )
    return found


def oldest_due_ms(engine: Engine) -> int | None:
    """Since when the first ready intent waits: looks at the head of each queue, not at entities."""
    heads = [
        entry[2].due_at_ms
        for lane in _state(engine).queues.values()
        for track in lane.tracks
        if (entry := track.head()) is not None
    ]
    return min(heads, default=None)


def _borrowed(state: State) -> list[int]:
    """The permits each tier borrows from others now."""
    found = [0] * len(TIER_NAMES)
    if any(permits.lent for permits in state.tiers.all):
        for place, intent in enumerate(state.out[""].values()):
            if place >= BORROWED_COUNTED_MAX:
                break
            if intent.permit >= 0 and intent.permit != intent.terms.tier:
                found[intent.terms.tier] += 1
    return found


def _lanes(state: State) -> tuple[list[LaneGauge], int]:
    """The queues with the most work, and all entities as one."""
    queues, counts = state.queues, state.counts
    shown = (
        nlargest(LANES_SHOWN_MAX, queues.values(), key=_weight)
        if len(queues) > LANES_SHOWN_MAX
        else queues.values()
    )
    lanes = [
        LaneGauge(
            name=lane.name,
            ready=_ready(lane),
            running=lane.running,
            pushed=lane.pushed,
            paused=lane.paused,
            consumers=len(lane.turns),
        )
        for lane in shown
    ]
    if state.entities:
        every = queues.values()
        ready = max(0, counts[DUE] - sum(map(_ready, every)))
        running = max(0, counts[DISPATCHING] - sum(lane.running for lane in every))
        pushed = "entity" in state.settings.pushed
        consumers = 0 if pushed else sum(map(_asks_for_entities, state.consumers.values()))
        lanes.append(
            LaneGauge(
                name="entity:",
                ready=ready,
                running=running,
                pushed=pushed,
                paused=False,
                consumers=consumers,
            )
        )
    return lanes, len(queues) - len(shown)


def _asks_for_entities(consumer: Consumer) -> bool:
    return any(lane.startswith(("entity:", "entities:")) for lane in consumer.credits)


def _weight(lane: Lane) -> int:
    return _ready(lane) + lane.running


def _ready(lane: Lane) -> int:
    return sum(len(track) for track in lane.tracks)


def _log(engine: Engine) -> LogGauge:
    log, position = engine._log, engine.position
    disk = log if isinstance(log, DiskLog) else None
    start, segments = disk.extent() if disk is not None else (0, 0)
    return LogGauge(
        start=start,
        tail=position,
        bytes=position - start,
        segments=segments,
        synced=engine._syncer.synced,
        free_bytes=disk.room() if disk is not None else None,
    )


def _store(engine: Engine) -> StoreGauge:
    store, state = engine._store, engine._kernel.state
    position = engine._checkpointer.position
    hot = store.hot()
    return StoreGauge(
        checkpoint_position=position,
        checkpoint_lag_bytes=engine.position - position,
        checkpoints=engine._checkpointer.count,
        unwritten=store.unwritten(),
        hot=hot,
        cold=max(0, state.live() - hot),
    )
