"""The metrics of a worker process: the runs of its functions. `duetime worker --metrics-port` serves them."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter  # tidy: measures work, not the time of day

from msgspec import Struct

from duetime.client.worker.worker_options import FunctionRunner
from duetime.engine.reads.function_counts import OUTCOME_NUMBER, FunctionCount, FunctionCounts
from duetime.insight import machine
from duetime.insight.metric_table import COUNTER, GAUGE, HISTOGRAM, Spec
from duetime.protocol.effect import Abort, Deliver, DeliveryKey
from duetime.protocol.outcome import Settlement


class MeteredRunner:
    """Counts the deliveries of a runner between their arrival and their outcome."""

    def __init__(self, inner: FunctionRunner) -> None:
        self.counts = FunctionCounts()
        self._open: dict[DeliveryKey, tuple[FunctionCount, float]] = {}
        self._inner = inner
        self.flush = inner.flush
        self.running = inner.running
        self.close = inner.close
        self.left = inner.left

    def open(self, settle: Callable[[list[Settlement]], None]) -> None:
        def settled(settlements: list[Settlement]) -> None:
            self._settled(settlements)
            settle(settlements)

        self._inner.open(settled)

    def deliver(self, delivery: Deliver, taken_s: float | None = None) -> None:
        row = self.counts.of(delivery.terms.target)
        if row is not None:
            row.running += 1
            self._open[delivery.id, delivery.delivery] = (row, perf_counter())
        self._inner.deliver(delivery, taken_s)

    def abort(self, abort: Abort) -> None:
        self._inner.abort(abort)
        self._close((abort.id, abort.delivery))  # its outcome may come, but is not sent

    def hand_back(self) -> list[Deliver]:
        back = self._inner.hand_back()
        for delivery in back:
            self._close((delivery.id, delivery.delivery))
        return back

    def _settled(self, settlements: list[Settlement]) -> None:
        now_s = perf_counter()
        for each in settlements:
            found = self._close((each.id, each.delivery))
            if found is not None:
                row, began_s = found
                row.outcomes[OUTCOME_NUMBER[type(each.outcome)]] += 1
                row.seconds.add(max(0.0, now_s - began_s - max(0, each.waited_ms) / 1000))

    def _close(self, place: DeliveryKey) -> tuple[FunctionCount, float] | None:
        found = self._open.pop(place, None)
        if found is not None:
            found[0].running -= 1
        return found


class WorkerSource(Struct):
    """The source of the metrics."""

    runner: MeteredRunner
    concurrency: int


_FUNCTION = ("queue", "function")

WORKER_METRICS: tuple[Spec, ...] = (
    Spec(
        "duetime_worker_runs_total",
        COUNTER,
        (*_FUNCTION, "outcome"),
        "Runs of functions in this process that ended, by outcome.",
        lambda source: source.runner.counts.ended(),
    ),
    Spec(
        "duetime_worker_run_seconds",
        HISTOGRAM,
        _FUNCTION,
        "Duration of a run, without the time it waited for a free thread or process.",
        lambda source: [(row.labels, row.seconds) for row in source.runner.counts.rows()],
    ),
    Spec(
        "duetime_worker_running",
        GAUGE,
        _FUNCTION,
        "Deliveries that this process runs, or that wait for a thread or process in it.",
        lambda source: [(row.labels, row.running) for row in source.runner.counts.rows()],
    ),
    Spec(
        "duetime_worker_concurrency",
        GAUGE,
        (),
        "Maximum concurrent deliveries of this process.",
        lambda source: [((), source.concurrency)],
    ),
    Spec(
        "duetime_worker_memory_bytes",
        GAUGE,
        (),
        "Resident memory of this process.",
        lambda source: [((), machine.memory_bytes())],
    ),
)
