"""The Grafana dashboard: rows of panels in a table, written to deploy/grafana/dashboard.json by `make docs`.

By hand a dashboard is a thousand lines in which a metric that was renamed is never found again. Here each
panel is a line, and tests hold its expressions against the metrics there are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).parent.parent / "deploy" / "grafana" / "dashboard.json"

COLUMNS: Final = 24
HEIGHT: Final = 7
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
# The server, and the span of a rate, are chosen in the dashboard.
_SERVER: Final = 'instance=~"$instance"'
_RATE: Final = "$__rate_interval"


class Panel(NamedTuple):
    """A picture: what it shows, in which unit, and expressions with their legends."""

    title: str
    says: str
    unit: str
    series: tuple[tuple[str, str], ...]
    kind: str = "timeseries"


def rate(metric: str, by: str = "", **labels: str) -> str:
    """How often a second."""
    return f"sum by ({by or 'instance'}) (rate({_of(metric, **labels)}[{_RATE}]))"


def quantile(share: float, metric: str, by: str = "") -> str:
    """A quantile of a histogram."""
    grouped = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({grouped}) (rate({_of(f'{metric}_bucket')}[{_RATE}])))"


def mean(metric: str, by: str = "instance") -> str:
    """The mean of a histogram."""
    return f"{rate(f'{metric}_sum', by)} / {rate(f'{metric}_count', by)}"


def now(metric: str, by: str = "", **labels: str) -> str:
    """A gauge as it is."""
    return f"sum by ({by or 'instance'}) ({_of(metric, **labels)})"


def _of(metric: str, **labels: str) -> str:
    more = "".join(f', {name}=~"{value}"' for name, value in labels.items())
    return f"{metric}{{{_SERVER}{more}}}"


TIER: Final = "{{tier}}"
_LIVE: Final = "SCHEDULED|DUE|DISPATCHING|BLOCKED"

ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Whether the server is on time": (
        Panel(
            "Lateness, p99",
            "From the moment it was due to its first hand-over. Bounds: ULTRA 10 ms, FAST 50,"
            " HIGH 100, STANDARD 500, ECONOMY 1000.",
            "s",
            ((quantile(0.99, "duetime_lateness_seconds", "tier"), TIER),),
        ),
        Panel(
            "Lateness, p50",
            "The same for the one in the middle.",
            "s",
            ((quantile(0.5, "duetime_lateness_seconds", "tier"), TIER),),
        ),
        Panel(
            "Due and waiting, by lane",
            "What could go and has not gone yet.",
            "short",
            ((now("duetime_ready", "queue"), "{{queue}}"),),
        ),
        Panel(
            "Refused, by error code",
            "429..: too much at a time; 4....: wrong requests; 503..: not now.",
            "reqps",
            ((rate("duetime_rejected_total", "reason"), "{{reason}}"),),
        ),
    ),
    "What happens": (
        Panel(
            "Intents a second",
            "Accepted, and how they ended.",
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
            "All that is still to end.",
            "short",
            ((now("duetime_intents", "status", status=_LIVE), "{{status}}"),),
        ),
        Panel(
            "Deliveries a second, by outcome",
            "One intent may take several.",
            "ops",
            ((rate("duetime_deliveries_total", "channel, outcome"), "{{channel}} {{outcome}}"),),
        ),
        Panel(
            "Failing",
            "Deliveries that failed, intents that wait for another try, outcomes too late.",
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
            "Under way, by tier",
            "Deliveries without an outcome yet.",
            "short",
            ((now("duetime_running", "tier"), TIER),),
        ),
        Panel(
            "Workers",
            "Connections of workers and subscribers; those that do nothing while there is work for them.",
            "short",
            ((now("duetime_workers"), "connected"), (now("duetime_workers_idle"), "idle")),
        ),
        Panel(
            "Permits in use",
            "A tier at 100% borrows from those below it; when that is used up, it waits.",
            "percentunit",
            ((f"{now('duetime_permits_used', 'tier')} / {now('duetime_permits_max', 'tier')}", TIER),),
        ),
        Panel(
            "Permits borrowed and lent",
            "Now, and how often.",
            "short",
            (
                (now("duetime_permits_borrowed", "tier"), "borrowed by {{tier}}"),
                (now("duetime_permits_lent", "tier"), "lent by {{tier}}"),
                (rate("duetime_borrowed_permits_total", "tier"), "borrowings/s {{tier}}"),
            ),
        ),
        Panel(
            "How long a delivery takes, p95",
            "From the hand-over to the outcome, by tier.",
            "s",
            ((quantile(0.95, "duetime_delivery_duration_seconds", "tier"), TIER),),
        ),
        Panel(
            "How long a channel takes, p95",
            "The other side's time: hosts, workers, subscribers.",
            "s",
            ((quantile(0.95, "duetime_execution_duration_seconds", "channel"), "{{channel}}"),),
        ),
        Panel(
            "Waiting of every delivery, p95",
            "Retries included, after it was due.",
            "s",
            ((quantile(0.95, "duetime_queue_wait_seconds", "tier"), TIER),),
        ),
        Panel(
            "Waiting for limits, p95",
            "Rates, concurrency, paused queues, busy entities: asked for, and no lateness.",
            "s",
            ((quantile(0.95, "duetime_limit_wait_seconds", "tier"), TIER),),
        ),
        Panel(
            "Held back",
            "Handed out and not called yet.",
            "short",
            ((now("duetime_held_back_intents"), "{{instance}}"),),
        ),
    ),
    "Log and store": (
        Panel(
            "Append and sync",
            "Writing a batch; making it durable.",
            "s",
            (
                (quantile(0.99, "duetime_append_seconds"), "append p99"),
                (quantile(0.99, "duetime_sync_seconds"), "sync p99"),
                (quantile(0.5, "duetime_sync_seconds"), "sync p50"),
            ),
        ),
        Panel(
            "Commands in a batch",
            "More under load: they share a sync.",
            "short",
            (
                (mean("duetime_batch_size"), "mean"),
                (quantile(0.99, "duetime_batch_size"), "p99"),
            ),
        ),
        Panel(
            "Checkpoint",
            "How long one takes; what a restart would read.",
            "s",
            ((quantile(0.99, "duetime_checkpoint_seconds"), "duration p99"),),
        ),
        Panel(
            "Bytes",
            "Of the log, behind the checkpoint, and free on the disk.",
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
        Panel("Memory", "Resident.", "bytes", ((now("duetime_memory_bytes"), "{{instance}}"),)),
    ),
    "Workers": (
        Panel(
            "Work that waits, by queue",
            "What is ready and half of what runs, in seconds of work as expected.",
            "s",
            ((now("duetime_queue_work_seconds", "queue"), "{{queue}}"),),
        ),
        Panel(
            "Workers, and how many would do",
            "Connected ones, and those that would be done within a minute.",
            "short",
            (
                (now("duetime_queue_workers", "queue"), "{{queue}}"),
                (now("duetime_queue_suggested_workers", "queue"), "{{queue}} suggested"),
            ),
        ),
        Panel(
            "At one time, by queue",
            "Under way, and what all workers of it take together.",
            "short",
            (
                (now("duetime_queue_running", "queue"), "{{queue}}"),
                (now("duetime_queue_capacity", "queue"), "{{queue}} capacity"),
            ),
        ),
        Panel(
            "Risk of being late",
            "The time its workers need for what waits, as a share of a minute.",
            "percentunit",
            ((now("duetime_queue_lateness_risk", "queue"), "{{queue}}"),),
        ),
        Panel(
            "Predicted durations, by source",
            "Of lanes whose order is EXPECTED or SHADOW.",
            "ops",
            ((rate("duetime_predictions_total", "source"), "{{source}}"),),
        ),
        Panel(
            "The model of durations",
            "1 for the state it is in.",
            "short",
            ((now("duetime_prediction_model", "state"), "{{state}}"),),
        ),
    ),
    "The process": (
        Panel("Log files", "Segments.", "short", ((now("duetime_log_segments"), "{{instance}}"),), "stat"),
        Panel(
            "Last recovery", "How long.", "s", ((now("duetime_recovery_seconds"), "{{instance}}"),), "stat"
        ),
        Panel(
            "Epoch", "One more with each start.", "short", ((now("duetime_epoch"), "{{instance}}"),), "stat"
        ),
        Panel(
            "Wake-ups",
            "A second; none when idle.",
            "ops",
            ((rate("duetime_wakeups_total"), "{{instance}}"),),
            "stat",
        ),
    ),
}


def expressions() -> list[str]:
    """Every expression of the dashboard."""
    return [expression for panels in ROWS.values() for panel in panels for expression, _ in panel.series]


def text() -> str:
    """The file."""
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
