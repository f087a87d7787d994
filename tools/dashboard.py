"""The Grafana dashboard: rows of panels in a table, written to deploy/grafana/dashboard.json by `make docs`.

A dashboard written by hand has a thousand lines, and a renamed metric is easily missed. Here each panel is
one entry, and tests compare its expressions with the existing metrics.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).parent.parent / "deploy" / "grafana" / "dashboard.json"

COLUMNS: Final = 24
HEIGHT: Final = 7
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
# The user of the dashboard chooses the server and the interval of a rate.
_SERVER: Final = 'instance=~"$instance"'
_RATE: Final = "$__rate_interval"


class Panel(NamedTuple):
    """A panel: title, description, unit, and expressions with their legends."""

    title: str
    says: str
    unit: str
    series: tuple[tuple[str, str], ...]
    kind: str = "timeseries"


def rate(metric: str, by: str = "", **labels: str) -> str:
    """The rate per second."""
    return f"sum by ({by or 'instance'}) (rate({_of(metric, **labels)}[{_RATE}]))"


def quantile(share: float, metric: str, by: str = "") -> str:
    """A quantile of a histogram."""
    grouped = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({grouped}) (rate({_of(f'{metric}_bucket')}[{_RATE}])))"


def mean(metric: str, by: str = "instance") -> str:
    """The mean of a histogram."""
    return f"{rate(f'{metric}_sum', by)} / {rate(f'{metric}_count', by)}"


def now(metric: str, by: str = "", **labels: str) -> str:
    """The current value of a gauge."""
    return f"sum by ({by or 'instance'}) ({_of(metric, **labels)})"


def _of(metric: str, **labels: str) -> str:
    more = "".join(f', {name}=~"{value}"' for name, value in labels.items())
    return f"{metric}{{{_SERVER}{more}}}"


TIER: Final = "{{tier}}"
_NAMED: Final = "{{queue}} {{function}}"
_RUN: Final = "{{instance}} {{function}} {{outcome}}"
_BAD: Final = "failed|rejected|lost"
_LIVE: Final = "SCHEDULED|DUE|DISPATCHING|BLOCKED"

ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Lateness": (
        Panel(
            "Lateness, p99",
            "From due to the first call. Bounds: ULTRA 10 ms, FAST 50, HIGH 100, STANDARD 500, ECONOMY 1000.",
            "s",
            ((quantile(0.99, "duetime_lateness_seconds", "tier"), TIER),),
        ),
        Panel(
            "Lateness, p50",
            "The median of the same time.",
            "s",
            ((quantile(0.5, "duetime_lateness_seconds", "tier"), TIER),),
        ),
        Panel(
            "Due and waiting, by lane",
            "Due intents that are not delivered yet.",
            "short",
            ((now("duetime_ready", "queue"), "{{queue}}"),),
        ),
        Panel(
            "Refused, by error code",
            "429..: overload; other 4....: wrong requests; 503..: temporarily unavailable.",
            "reqps",
            ((rate("duetime_rejected_total", "reason"), "{{reason}}"),),
        ),
    ),
    "Intents": (
        Panel(
            "Intents per second",
            "Accepted, and by final status.",
            "ops",
            (
                (rate("duetime_intents_submitted_total"), "accepted"),
                (rate("duetime_intents_completed_total"), "ACKED"),
                (rate("duetime_intents_dead_total"), "DEAD_LETTERED"),
                (rate("duetime_intents_expired_total"), "EXPIRED"),
                (rate("duetime_intents_canceled_total"), "CANCELED"),
                (rate("duetime_intents_revived_total"), "revived"),
                (rate("duetime_intents_duplicate_total"), "duplicates"),
            ),
        ),
        Panel(
            "Unfinished, by status",
            "Intents that have not ended.",
            "short",
            ((now("duetime_intents", "status", status=_LIVE), "{{status}}"),),
        ),
        Panel(
            "Deliveries per second, by outcome",
            "An intent may need several deliveries.",
            "ops",
            ((rate("duetime_deliveries_total", "channel, outcome"), "{{channel}} {{outcome}}"),),
        ),
        Panel(
            "Failures",
            "Failed deliveries, scheduled retries, stale outcomes.",
            "ops",
            (
                (rate("duetime_intents_failed_total", "tier"), "failed {{tier}}"),
                (rate("duetime_intents_retried_total", "tier"), "retried {{tier}}"),
                (rate("duetime_stale_outcomes_total"), "stale outcomes"),
            ),
        ),
    ),
    "Deliveries": (
        Panel(
            "Running, by tier",
            "Deliveries without an outcome.",
            "short",
            ((now("duetime_running", "tier"), TIER),),
        ),
        Panel(
            "Workers",
            "Connections of workers and subscribers; those that are idle while work waits for them.",
            "short",
            ((now("duetime_workers"), "connected"), (now("duetime_workers_idle"), "idle")),
        ),
        Panel(
            "Permits in use",
            "A tier at 100% borrows from lower tiers; if none is left, its intents wait.",
            "percentunit",
            ((f"{now('duetime_permits_used', 'tier')} / {now('duetime_permits_max', 'tier')}", TIER),),
        ),
        Panel(
            "Permits borrowed and lent",
            "Current numbers, and borrowings per second.",
            "short",
            (
                (now("duetime_permits_borrowed", "tier"), "borrowed by {{tier}}"),
                (now("duetime_permits_lent", "tier"), "lent by {{tier}}"),
                (rate("duetime_borrowed_permits_total", "tier"), "borrowings/s {{tier}}"),
            ),
        ),
        Panel(
            "Duration of a delivery, p95",
            "From delivery to outcome, by tier.",
            "s",
            ((quantile(0.95, "duetime_delivery_duration_seconds", "tier"), TIER),),
        ),
        Panel(
            "Duration in a channel, p95",
            "The time of hosts, workers and subscribers.",
            "s",
            ((quantile(0.95, "duetime_execution_duration_seconds", "channel"), "{{channel}}"),),
        ),
        Panel(
            "Waiting time of deliveries, p95",
            "From due to delivery, including retries.",
            "s",
            ((quantile(0.95, "duetime_queue_wait_seconds", "tier"), TIER),),
        ),
        Panel(
            "Waiting for limits, p95",
            "Rates, concurrency, paused queues, busy entities. Not part of the lateness.",
            "s",
            ((quantile(0.95, "duetime_limit_wait_seconds", "tier"), TIER),),
        ),
        Panel(
            "Held back",
            "Delivered intents that are not called yet.",
            "short",
            ((now("duetime_held_back_intents"), "{{instance}}"),),
        ),
    ),
    "Functions": (
        Panel(
            "Deliveries per second, by function",
            "Deliveries of tasks and entity messages that came back.",
            "ops",
            ((rate("duetime_function_deliveries_total", "queue, function"), _NAMED),),
        ),
        Panel(
            "Unsuccessful deliveries per second, by function",
            "Failed, rejected or lost.",
            "ops",
            (
                (
                    rate("duetime_function_deliveries_total", "queue, function, outcome", outcome=_BAD),
                    f"{_NAMED} {{{{outcome}}}}",
                ),
            ),
        ),
        Panel(
            "Duration, by function, p95",
            "From delivery to outcome.",
            "s",
            ((quantile(0.95, "duetime_function_duration_seconds", "queue, function"), _NAMED),),
        ),
        Panel(
            "Runs per second, by worker process",
            "From `duetime worker --metrics-port`.",
            "ops",
            ((rate("duetime_worker_runs_total", "instance, function, outcome"), _RUN),),
        ),
        Panel(
            "Duration of a run, by function, p95",
            "Measured by the workers.",
            "s",
            ((quantile(0.95, "duetime_worker_run_seconds", "queue, function"), _NAMED),),
        ),
        Panel(
            "Running, by worker process",
            "Running deliveries, and the maximum of each process.",
            "short",
            (
                (now("duetime_worker_running", "instance, function"), "{{instance}} {{function}}"),
                (now("duetime_worker_concurrency"), "{{instance}} maximum"),
            ),
        ),
        Panel(
            "Memory of worker processes",
            "Resident memory.",
            "bytes",
            ((now("duetime_worker_memory_bytes"), "{{instance}}"),),
        ),
    ),
    "Log and store": (
        Panel(
            "Append and sync",
            "Time to write a batch, and to make it durable.",
            "s",
            (
                (quantile(0.99, "duetime_append_seconds"), "append p99"),
                (quantile(0.99, "duetime_sync_seconds"), "sync p99"),
                (quantile(0.5, "duetime_sync_seconds"), "sync p50"),
            ),
        ),
        Panel(
            "Commands per batch",
            "Grows under load: the commands of a batch share a sync.",
            "short",
            (
                (mean("duetime_batch_size"), "mean"),
                (quantile(0.99, "duetime_batch_size"), "p99"),
            ),
        ),
        Panel(
            "Checkpoint",
            "Duration of a checkpoint.",
            "s",
            ((quantile(0.99, "duetime_checkpoint_seconds"), "duration p99"),),
        ),
        Panel(
            "Bytes",
            "Size of the log, log after the checkpoint, and free disk space.",
            "bytes",
            (
                (now("duetime_log_bytes"), "log"),
                (now("duetime_checkpoint_lag_bytes"), "checkpoint lag"),
                (now("duetime_disk_free_bytes"), "disk free"),
            ),
        ),
        Panel(
            "Intents in memory and on disk",
            "Hot: due soon, running, just changed. Cold: on disk only.",
            "short",
            (
                (now("duetime_hot_intents"), "hot"),
                (now("duetime_cold_intents"), "cold"),
                (now("duetime_unwritten_intents"), "changed since the checkpoint"),
            ),
        ),
        Panel("Memory", "Resident memory.", "bytes", ((now("duetime_memory_bytes"), "{{instance}}"),)),
    ),
    "Workers": (
        Panel(
            "Expected work, by queue",
            "Expected duration of ready intents and half of the running ones, in seconds of work.",
            "s",
            ((now("duetime_queue_work_seconds", "queue"), "{{queue}}"),),
        ),
        Panel(
            "Workers, connected and suggested",
            "The suggested number would finish the backlog within a minute.",
            "short",
            (
                (now("duetime_queue_workers", "queue"), "{{queue}}"),
                (now("duetime_queue_suggested_workers", "queue"), "{{queue}} suggested"),
            ),
        ),
        Panel(
            "Concurrency, by queue",
            "Running deliveries, and the total concurrency of the workers.",
            "short",
            (
                (now("duetime_queue_running", "queue"), "{{queue}}"),
                (now("duetime_queue_capacity", "queue"), "{{queue}} capacity"),
            ),
        ),
        Panel(
            "Risk of lateness",
            "The time that the workers need for the backlog, divided by a minute.",
            "percentunit",
            ((now("duetime_queue_lateness_risk", "queue"), "{{queue}}"),),
        ),
        Panel(
            "Predicted durations, by source",
            "In lanes with the order EXPECTED or SHADOW.",
            "ops",
            ((rate("duetime_predictions_total", "source"), "{{source}}"),),
        ),
        Panel(
            "Duration model",
            "1 for its current state.",
            "short",
            ((now("duetime_prediction_model", "state"), "{{state}}"),),
        ),
    ),
    "Process": (
        Panel("Log files", "Segments.", "short", ((now("duetime_log_segments"), "{{instance}}"),), "stat"),
        Panel(
            "Last recovery", "Duration.", "s", ((now("duetime_recovery_seconds"), "{{instance}}"),), "stat"
        ),
        Panel(
            "Epoch", "Increases with each start.", "short", ((now("duetime_epoch"), "{{instance}}"),), "stat"
        ),
        Panel(
            "Wake-ups",
            "Per second; none when idle.",
            "ops",
            ((rate("duetime_wakeups_total"), "{{instance}}"),),
            "stat",
        ),
    ),
}


def expressions() -> list[str]:
    """All expressions of the dashboard."""
    return [expression for panels in ROWS.values() for panel in panels for expression, _ in panel.series]


def text() -> str:
    """The text of the file."""
    return json.dumps(_dashboard(), indent=2) + "\n"


def _dashboard() -> dict[str, Any]:
    return {
        "uid": "duetime",
        "title": "Duetime",
        "description": "Is it on time? Written by tools/dashboard.py.",
        "tags": ["duetime"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": _panels(),
    }


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "instance",
            "label": "Server",
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"query": "label_values(duetime_epoch, instance)", "refId": "instance"},
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    y = 0
    for title, panels in ROWS.items():
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
        found.append({"id": len(found) + 1, "type": "row", "title": title, "gridPos": place, "panels": []})
        y += 1
        small = panels[0].kind == "stat"
        width, height = (4, 4) if small else (12 if len(panels) % 2 == 0 and len(panels) < 6 else 8, HEIGHT)
        across = COLUMNS // width
        for number, panel in enumerate(panels):
            at = {
                "h": height,
                "w": width,
                "x": number % across * width,
                "y": y + number // across * height,
            }
            found.append(_panel(len(found) + 1, panel, at))
        y += -(-len(panels) // across) * height
    return found


def _panel(id: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    drawn: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom"}}
    if panel.kind == "stat":
        drawn = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "none"}
    return {
        "id": id,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": drawn,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATASOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for number, (expression, legend) in enumerate(panel.series)
        ],
    }
