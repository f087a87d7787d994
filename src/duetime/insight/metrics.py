"""The metrics as Prometheus text, OpenMetrics, or JSON. `metric_table` has the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client import exposition as text
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics

from duetime.engine.engine import Engine
from duetime.engine.reads.histogram import Histogram
from duetime.engine.reads.meter import Meter
from duetime.insight.metric_table import COUNTER, GAUGE, METRICS, Spec
from duetime.insight.metric_values import source_of, values_of

__all__ = ["METRICS", "Exposition", "Metrics"]

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
JSON = "application/json"


class Exposition:
    """Metrics of one table, for a scrape. Also a collector for your own registry."""

    def __init__(self, specs: Sequence[Spec], source: Callable[[], object | None]) -> None:
        """`source` is what the table reads; None while there are no values."""
        self._specs = specs
        self._source = source
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """All metrics without their values."""
        return map(_family, self._specs)

    def collect(self) -> Iterator[Metric]:
        """All metrics with their current values."""
        source = self._source()
        if source is None:
            return
        for spec in self._specs:
            family = _family(spec)
            for labels, value in spec.read(source):
                _add(family, labels, value)
            yield family

    def expose(self, accept: str = "") -> tuple[str, bytes]:
        """The content type and body for an Accept header."""
        if JSON in accept:
            return JSON, msgspec.json.encode(self.as_json())
        if "application/openmetrics-text" in accept:
            return OPENMETRICS, bytes(openmetrics.generate_latest(self.registry))  # type: ignore[no-untyped-call]
        return TEXT, text.generate_latest(self.registry)

    def as_json(self) -> dict[str, Any]:
        return values_of(self._specs, self._source())


class Metrics(Exposition):
    """All metrics of one engine; none while the engine is stopped."""

    def __init__(self, engine: Engine, meter: Meter) -> None:
        super().__init__(METRICS, lambda: source_of(engine, meter))


def _family(spec: Spec) -> Any:
    if spec.kind == COUNTER:
        return CounterMetricFamily(spec.name, spec.help, labels=spec.labels)
    if spec.kind == GAUGE:
        return GaugeMetricFamily(spec.name, spec.help, labels=spec.labels)
    return HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)


def _add(family: Any, labels: tuple[str, ...], value: Any) -> None:
    if not isinstance(value, Histogram):
        family.add_metric(labels, value)
        return
    buckets, count = [], 0
    for bound, more in zip((*value.bounds, float("inf")), value.counts, strict=True):
        count += more
        buckets.append(("+Inf" if bound == float("inf") else repr(float(bound)), count))
    family.add_metric(labels, buckets, value.sum)
