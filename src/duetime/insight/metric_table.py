"""The table of all metrics: name, kind, labels, meaning, and the function that reads it.

A scrape reads the counters of the meter and of the kernel; nothing is stored for it. The unit is part of the
name. Labels have few values: of the queues, only the busiest hundred are shown. Counters of transitions
(submitted, completed ...) are part of the state, so they continue after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from duetime.engine.engine import Engine
from duetime.engine.predictions.model import STATES
from duetime.engine.reads.gauges import Gauges
from duetime.engine.reads.histogram import Histogram
from duetime.engine.reads.meter import Meter
from duetime.engine.reads.tally import Tally
from duetime.insight import machine
from duetime.insight.workers import idle
from duetime.limits import TIER_NAMES
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DEAD_LETTERED,
    DISPATCHING,
    EXPIRED,
    SCHEDULED,
    Status,
)
from duetime.wire.autoscale import QueueSignal

Values = Iterable[tuple[tuple[str, ...], Any]]
"""The number or histogram of each combination of labels."""


class Source(Struct):
    """The source of the metrics."""

    engine: Engine
    meter: Meter
    tally: Tally
    gauges: Gauges
    queues: list[QueueSignal]


class Spec(Struct, frozen=True):
    """One metric: name, kind, labels, meaning, and the function that reads it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    read: Callable[[Any], Values]
    """Takes the source of the table: `Source` here, `WorkerSource` for a worker."""


def _by_tier(read: Callable[[Tally, int], float]) -> Callable[[Source], Values]:
    return lambda source: [((name,), read(source.tally, tier)) for tier, name in enumerate(TIER_NAMES)]


def _to(status: Status) -> Callable[[Source], Values]:
    return _by_tier(lambda tally, tier: tally.moves_to(status, tier))


def _one(read: Callable[[Source], Any]) -> Callable[[Source], Values]:
    return lambda source: [((), read(source))]


def _made(tally: Tally, tier: int) -> int:
    return tally.moves(tier, SCHEDULED, SCHEDULED) + tally.moves(tier, BLOCKED, BLOCKED)


def _per_tier_gauge(name: str) -> Callable[[Source], Values]:
    return lambda source: [((tier.tier,), getattr(tier, name)) for tier in source.gauges.tiers]


def _per_tier_permits(name: str) -> Callable[[Source], Values]:
    return lambda source: [((tier.tier,), getattr(tier.permits, name)) for tier in source.gauges.tiers]


def _statuses(source: Source) -> Values:
    for tier, name in enumerate(TIER_NAMES):
        for status, count in zip(Status, source.tally.standing(tier), strict=True):
            yield (name, status.name), count


def _deliveries(source: Source) -> Values:
    for (tier, channel, outcome), count in sorted(source.meter.deliveries.items()):
        yield (TIER_NAMES[tier], channel, outcome), count


def _tier_histograms(read: Callable[[Meter, int], Histogram]) -> Callable[[Source], Values]:
    return lambda source: [
        ((name,), _in_seconds(read(source.meter, tier))) for tier, name in enumerate(TIER_NAMES)
    ]


def _in_seconds(histogram: Histogram) -> Histogram:
    """The histogram in seconds, from milliseconds."""
    found = Histogram(tuple(bound / 1000 for bound in histogram.bounds))
    found.counts, found.sum = list(histogram.counts), histogram.sum / 1000
    return found


def _disk_free(source: Source) -> Values:
    free = source.gauges.log.free_bytes
    return [] if free is None else [((), free)]


def _queues(read: Callable[[QueueSignal], float]) -> Callable[[Source], Values]:
    return lambda source: [((each.lane,), read(each)) for each in source.queues]


COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
_TIER = ("tier",)
_QUEUE = ("queue",)

METRICS: tuple[Spec, ...] = (
    Spec("duetime_intents_submitted_total", COUNTER, _TIER, "Intents accepted.", _by_tier(_made)),
    Spec(
        "duetime_intents_duplicate_total",
        COUNTER,
        (),
        "Submits that returned an existing intent because of their idempotency key.",
        _one(lambda s: s.meter.duplicates),
    ),
    Spec("duetime_intents_completed_total", COUNTER, _TIER, "Intents that became ACKED.", _to(ACKED)),
    Spec(
        "duetime_intents_failed_total",
        COUNTER,
        _TIER,
        "Deliveries that came back failed, rejected or lost, since the start.",
        lambda s: [((name,), s.meter.failed(tier)) for tier, name in enumerate(TIER_NAMES)],
    ),
    Spec(
        "duetime_intents_retried_total",
        COUNTER,
        _TIER,
        "Retries scheduled after an unsuccessful attempt.",
        _by_tier(lambda tally, tier: tally.moves(tier, DISPATCHING, SCHEDULED)),
    ),
    Spec(
        "duetime_intents_dead_total", COUNTER, _TIER, "Intents that became dead letters.", _to(DEAD_LETTERED)
    ),
    Spec("duetime_intents_expired_total", COUNTER, _TIER, "Intents that became EXPIRED.", _to(EXPIRED)),
    Spec("duetime_intents_canceled_total", COUNTER, _TIER, "Intents that became CANCELED.", _to(CANCELED)),
    Spec(
        "duetime_intents_revived_total",
        COUNTER,
        _TIER,
        "Dead letters that were revived.",
        _by_tier(lambda tally, tier: tally.moves(tier, DEAD_LETTERED, SCHEDULED)),
    ),
    Spec(
        "duetime_deliveries_total",
        COUNTER,
        ("tier", "channel", "outcome"),
        "Deliveries that came back, by outcome: done, failed, snoozed, rejected, lost, expired, returned.",
        _deliveries,
    ),
    Spec(
        "duetime_stale_outcomes_total",
        COUNTER,
        (),
        "Outcomes refused because their delivery was not the current one.",
        _one(lambda s: s.gauges.stale),
    ),
    Spec(
        "duetime_borrowed_permits_total",
        COUNTER,
        _TIER,
        "Permits borrowed from lower tiers.",
        _per_tier_gauge("borrows"),
    ),
    Spec(
        "duetime_wakeups_total",
        COUNTER,
        (),
        "Wake-ups of the engine's loop.",
        _one(lambda s: s.engine.wakeups),
    ),
    Spec(
        "duetime_rejected_total",
        COUNTER,
        ("reason",),
        "Requests refused, by error code.",
        lambda s: [((str(code),), count) for code, count in sorted(s.meter.rejections.items())],
    ),
    Spec(
        "duetime_lateness_seconds",
        HISTOGRAM,
        _TIER,
        "Lateness: from due to the first call, without waits for limits. Known when the delivery ends.",
        _tier_histograms(lambda meter, tier: meter.late_ms[tier].total()),
    ),
    Spec(
        "duetime_limit_wait_seconds",
        HISTOGRAM,
        _TIER,
        "Time spent waiting for a limit, a paused queue or a busy entity before the first call, if any.",
        _tier_histograms(lambda meter, tier: meter.limited_ms[tier]),
    ),
    Spec(
        "duetime_queue_wait_seconds",
        HISTOGRAM,
        _TIER,
        "Time each delivery, including retries, waited after it was due.",
        _tier_histograms(lambda meter, tier: meter.wait_ms(tier)),
    ),
    Spec(
        "duetime_delivery_duration_seconds",
        HISTOGRAM,
        _TIER,
        "Time from delivery to outcome.",
        _tier_histograms(lambda meter, tier: meter.delivery_ms[tier].total()),
    ),
    Spec(
        "duetime_execution_duration_seconds",
        HISTOGRAM,
        ("channel",),
        "Time a delivery spent in its channel.",
        lambda s: [((channel,), each) for channel, each in s.meter.execution_s.items()],
    ),
    Spec(
        "duetime_function_deliveries_total",
        COUNTER,
        ("queue", "function", "outcome"),
        "Deliveries that came back, by function: the first 100 functions one by one, the rest as `other`.",
        lambda s: s.meter.functions.ended(),
    ),
    Spec(
        "duetime_function_duration_seconds",
        HISTOGRAM,
        ("queue", "function"),
        "Time from delivery to outcome, by function.",
        lambda s: [(row.labels, row.seconds) for row in s.meter.functions.rows()],
    ),
    Spec(
        "duetime_append_seconds",
        HISTOGRAM,
        (),
        "Appending one batch to the log.",
        _one(lambda s: s.meter.append_s),
    ),
    Spec(
        "duetime_sync_seconds", HISTOGRAM, (), "One sync of the log.", _one(lambda s: s.meter.sync_s.total())
    ),
    Spec(
        "duetime_batch_size",
        HISTOGRAM,
        (),
        "Submits, outcomes and commands in one batch.",
        _one(lambda s: s.meter.batch),
    ),
    Spec(
        "duetime_checkpoint_seconds",
        HISTOGRAM,
        (),
        "One checkpoint of the store.",
        _one(lambda s: s.meter.checkpoint_s),
    ),
    Spec(
        "duetime_intents",
        GAUGE,
        ("tier", "status"),
        "Intents by status; final states count all intents that ever reached them.",
        _statuses,
    ),
    Spec(
        "duetime_ready",
        GAUGE,
        ("queue",),
        "Intents that are due and wait in a lane; all entities as one.",
        lambda s: [((lane.name,), lane.ready) for lane in s.gauges.lanes],
    ),
    Spec(
        "duetime_queue_running",
        GAUGE,
        _QUEUE,
        "Running deliveries of a queue that workers serve.",
        _queues(lambda queue: queue.running),
    ),
    Spec(
        "duetime_queue_workers",
        GAUGE,
        _QUEUE,
        "Worker connections that serve a queue.",
        _queues(lambda queue: queue.workers),
    ),
    Spec(
        "duetime_queue_capacity",
        GAUGE,
        _QUEUE,
        "Total concurrency of the workers of a queue.",
        _queues(lambda queue: queue.capacity),
    ),
    Spec(
        "duetime_queue_work_seconds",
        GAUGE,
        _QUEUE,
        "Expected duration of the backlog of a queue and half of its running intents, in seconds of work.",
        _queues(lambda queue: queue.work_seconds),
    ),
    Spec(
        "duetime_queue_lateness_risk",
        GAUGE,
        _QUEUE,
        "Time the workers need for the backlog, divided by a minute: above 1 is late; 1000 means no worker.",
        _queues(lambda queue: queue.lateness_risk),
    ),
    Spec(
        "duetime_queue_suggested_workers",
        GAUGE,
        _QUEUE,
        "Number of workers that would finish the backlog within a minute.",
        _queues(lambda queue: queue.suggested_workers),
    ),
    Spec(
        "duetime_predictions_total",
        COUNTER,
        ("source",),
        "Durations predicted at submit, by source: model, sketch, none.",
        lambda s: [((source,), count) for source, count in s.engine.predictor.told.items()],
    ),
    Spec(
        "duetime_prediction_model",
        GAUGE,
        ("state",),
        "1 for the current state of the duration model.",
        lambda s: [((state,), int(state == s.engine.predictor.model.state)) for state in STATES],
    ),
    Spec(
        "duetime_workers",
        GAUGE,
        (),
        "Connections of workers and subscribers.",
        _one(lambda s: len(s.meter.connected())),
    ),
    Spec(
        "duetime_workers_idle",
        GAUGE,
        (),
        "Connections that do not take the work that waits for them.",
        _one(lambda s: len(idle(s.engine.reads, s.meter.connected()))),
    ),
    Spec(
        "duetime_held_back_intents",
        GAUGE,
        (),
        "Delivered intents that are not called yet: their receiver is paused, or a worker disconnected.",
        _one(lambda s: len(s.meter.held_back())),
    ),
    Spec("duetime_running", GAUGE, _TIER, "Running deliveries.", _per_tier_gauge("running")),
    Spec("duetime_permits_max", GAUGE, _TIER, "Delivery permits.", _per_tier_permits("max")),
    Spec(
        "duetime_permits_used", GAUGE, _TIER, "Permits in use, including lent ones.", _per_tier_gauge("used")
    ),
    Spec(
        "duetime_permits_borrowed",
        GAUGE,
        _TIER,
        "Permits borrowed from lower tiers now.",
        _per_tier_permits("borrowed"),
    ),
    Spec(
        "duetime_permits_lent", GAUGE, _TIER, "Permits lent to higher tiers now.", _per_tier_permits("lent")
    ),
    Spec("duetime_hot_intents", GAUGE, (), "Intents in memory.", _one(lambda s: s.gauges.store.hot)),
    Spec(
        "duetime_cold_intents", GAUGE, (), "Live intents on disk only.", _one(lambda s: s.gauges.store.cold)
    ),
    Spec(
        "duetime_unwritten_intents",
        GAUGE,
        (),
        "Intents changed since the last checkpoint began.",
        _one(lambda s: s.gauges.store.unwritten),
    ),
    Spec(
        "duetime_log_bytes",
        GAUGE,
        (),
        "Bytes on the log that can be read.",
        _one(lambda s: s.gauges.log.bytes),
    ),
    Spec("duetime_log_segments", GAUGE, (), "Files of the log.", _one(lambda s: s.gauges.log.segments)),
    Spec(
        "duetime_checkpoint_lag_bytes",
        GAUGE,
        (),
        "Bytes on the log after the last checkpoint: the amount a restart reads.",
        _one(lambda s: s.gauges.store.checkpoint_lag_bytes),
    ),
    Spec("duetime_disk_free_bytes", GAUGE, (), "Free disk space for the log.", _disk_free),
    Spec(
        "duetime_memory_bytes",
        GAUGE,
        (),
        "Resident memory of the process.",
        _one(lambda s: machine.memory_bytes()),
    ),
    Spec(
        "duetime_recovery_seconds",
        GAUGE,
        (),
        "Duration of the last recovery.",
        _one(lambda s: s.meter.recovery_s),
    ),
    Spec("duetime_epoch", GAUGE, (), "The writer's epoch.", _one(lambda s: s.gauges.epoch)),
)
