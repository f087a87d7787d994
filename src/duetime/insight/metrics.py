"""The metrics as Prometheus text, OpenMetrics, or JSON. `metric_table` has the list."""

from __future__ import annotations

from collections.abc import Iterator
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
from duetime.engine.reads import gauges as inside
from duetime.engine.reads.histogram import Histogram
from duetime.engine.reads.meter import Meter
from duetime.insight.autoscale import autoscale
from duetime.insight.metric_table import COUNTER, GAUGE, METRICS, Source, Spec

__all__ = ["METRICS", "Metrics"]

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
JSON = "application/json"


class Metrics:
    """All metrics of one engine, for a scrape. Also a collector for your own registry."""

    def __init__(self, engine: Engine, meter: Meter) -> None:
        self._engine = engine
        self._meter = meter
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """All metrics without their values."""
        for spec in METRICS:
            yield _family(spec)

    def collect(self) -> Iterator[Metric]:
        """All metrics with their current values; none while the engine is stopped."""
        source = self._source()
        if source is None:
            return
        for spec in METRICS:
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
        """By name: kind, help, and a list of labels and values. Histograms have count, sum and quantiles."""
        source = self._source()
        return {
            spec.name: {
                "type": spec.kind,
                "help": spec.help,
                "values": []
                if source is None
                else [
                    {"labels": dict(zip(spec.labels, labels, strict=True)), **_plain(value)}
                    for labels, value in spec.read(source)
                ],
            }
            for spec in METRICS
        }

    def _source(self) -> Source | None:
        if not inside.is_ready(self._engine):
            return None
        seen = inside.gauges(self._engine)
        queues = autoscale(self._engine, seen=seen).queues
        return Source(self._engine, self._meter, self._engine.reads.tally(), seen, queues)


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


def _plain(value: Any) -> dict[str, Any]:
    if not isinstance(value, Histogram):
        return {"value": value}
    quantiles = {name: value.quantile(share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    return {"count": value.count, "sum": value.sum, **quantiles}
