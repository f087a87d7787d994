"""The current values of metrics as plain data. Needs no package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from duetime.engine.engine import Engine
from duetime.engine.reads import gauges as inside
from duetime.engine.reads.histogram import Histogram
from duetime.engine.reads.meter import Meter
from duetime.insight.autoscale import autoscale
from duetime.insight.metric_table import Source, Spec


def source_of(engine: Engine, meter: Meter) -> Source | None:
    """The source of an engine's metrics; None while it does not run."""
    if not inside.is_ready(engine):
        return None
    seen = inside.gauges(engine)
    queues = autoscale(engine, seen=seen).queues
    return Source(engine, meter, engine.reads.tally(), seen, queues)


def values_of(specs: Iterable[Spec], source: object | None) -> dict[str, Any]:
    """By name: kind, help, and a list of labels and values. Histograms have count, sum and quantiles."""
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
        for spec in specs
    }


def _plain(value: Any) -> dict[str, Any]:
    if not isinstance(value, Histogram):
        return {"value": value}
    quantiles = {name: value.quantile(share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    return {"count": value.count, "sum": value.sum, **quantiles}
