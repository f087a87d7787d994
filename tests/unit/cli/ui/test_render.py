"""Answers as people read them: aligned, complete, and without a terminal free of colours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.cli.commands import chronoscope, timeline, top
from duetime.cli.ui import bars, output, render
from duetime.wire.intent import Callback, EntityTarget, Intent, LastError, Status, StreamTarget, TaskTarget

AT = datetime(2030, 1, 31, 10, 30, tzinfo=UTC)


def intent(**fields: Any) -> Intent:
    return Intent(intent_id="a", status=Status.DUE, execute_at=AT, created_at=AT, updated_at=AT, **fields)


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ({"task": TaskTarget(name="mail.send")}, "task:mail.send"),
        ({"task": TaskTarget(name="mail.send", queue="mail")}, "task:mail.send@mail"),
        ({"entity": EntityTarget(type="A", id="4/2", message="m")}, "entity:A/4/2/m"),
        ({"stream": StreamTarget(name="news")}, "stream:news"),
        ({"callback": Callback(url="http://x/y")}, "http://x/y"),
    ],
)
def test_a_target_is_shown_as_it_is_written(target, shown):
    assert render.target(intent(**target)) == shown


def test_an_intent_shows_what_there_is_and_nothing_else(capsys):
    error = LastError(at=AT, kind="http", message="no", http_status=502)
    found = intent(
        task=TaskTarget(name="t"), tags={"k": "v"}, last_error=error, payload={"order": [7]}, late_ms=0
    )
    render.intent(found)
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    facts = {name: value.strip() for name, value in lines.items()}
    assert facts["intent"] == "a" and facts["target"] == "task:t" and facts["late ms"] == "0"
    assert facts["payload"] == '{"order":[7]}' and facts["last error"] == "http (HTTP 502): no"
    assert facts["execute at"] == "2030-01-31T10:30:00.000Z"
    assert not {"deadline", "result", "callback", "finished at"} & facts.keys()


def test_any_document_is_readable(capsys):
    render.document(
        {
            "total": 3,
            "riskLevel": "LOW",
            "slots": [{"at": "x", "byTier": {"FAST": 1}}, {"at": "y", "count": 2}],
            "counts": {"ACKED": 1, "DUE": 0},
            "lateness": {"ULTRA": {"p50Ms": 1.5}, "FAST": {"p50Ms": None}},
            "nothing": {},
        }
    )
    assert capsys.readouterr().out.splitlines() == [
        "total       3",
        "risk level  LOW",
        "nothing     {}",
        "",
        "slots",
        "at  by tier FAST  count",
        "x              1",
        "y                     2",
        "",
        "counts",
        "ACKED  1",
        "DUE    0",
        "",
        "lateness",
        "name   p50 ms",
        "ULTRA     1.5",
        "FAST",
    ]


def test_a_bar_is_never_longer_than_its_room_and_never_invisible():
    assert bars.bar(10, 10, 4) == "████" and bars.bar(5, 10, 4) == "██"
    assert bars.bar(0, 10, 4) == "" == bars.bar(1, 0, 4) == bars.bar(1, 1, 0)
    assert len(bars.bar(1, 1_000_000, 4)) == 1


@pytest.mark.parametrize("columns", [10, 20, 40, 80, 200])
def test_a_chart_fits_the_terminal(columns):
    lines = bars.chart(["10:00:00Z", "11:00:00Z", "x"], [0, 12345, 7], columns)
    assert len(lines) == 3 and all(len(line) <= columns for line in lines)
    assert len(bars.chart(["a"], [1], columns)[0]) == columns, "the largest one uses all of it"


def test_a_timelines_labels_name_a_day_once():
    slots = [
        {"at": "2030-01-31T23:59:00.000Z"},
        {"at": "2030-01-31T23:59:30.000Z"},
        {"at": "2030-02-01T00:00:00.000Z"},
    ]
    assert timeline.labels(slots) == ["2030-01-31 23:59:00Z", "           23:59:30Z", "2030-02-01 00:00:00Z"]


def slot(minute, tiers=None, queues=None):
    tiers, queues = tiers or {}, queues or {}
    at = f"2030-01-31T09:{minute:02}:00.000Z"
    return {"at": at, "count": sum(tiers.values()), "byTier": tiers, "byQueue": queues}


def test_a_timeline_folds_what_is_empty_and_names_the_busiest():
    queue = "task:" + "a-rather-long-name-" * 5
    slots = [
        slot(0),
        slot(1, {"FAST": 1, "HIGH": 3}, {"task:a": 3, "task:b": 1}),
        *map(slot, range(2, 9)),
        slot(9, {"FAST": 2}, {queue: 2}),
    ]
    lines = timeline.chart(slots, 60_000, 80)
    assert all(len(line) <= 80 for line in lines) and not [line for line in lines if "{" in line]
    assert [line.split()[0] for line in lines] == ["nothing", "2030-01-31", "nothing", "09:09:00Z"]
    assert lines[1].split()[1:3] == ["09:01:00Z", "4"] and lines[1].endswith("█  HIGH task:a")
    assert lines[2].strip() == "nothing for 7 min"
    assert lines[3].split()[1] == "2" and lines[3].endswith("…")
    assert timeline.chart([slot(0), slot(1)], 60_000, 80) == []


TIER = {
    "tier": "FAST", "pending": 3, "ready": 2, "running": 1, "backpressure": "WAITING",
    "permits": {"available": 149, "max": 150, "borrowed": 1, "lent": 0},
    "lateness": {"p50Ms": 1.5, "p95Ms": 20.0, "p99Ms": 51.0, "boundMs": 50, "count": 9},
}  # fmt: skip


def test_a_tier_is_a_row_and_knows_when_it_is_late():
    assert chronoscope.tier_row(TIER) == [
        "FAST", "3", "2", "1", "1/150", "1", "0", "1.5", "20", "51", "50", "WAITING",
    ]  # fmt: skip
    narrow = chronoscope.columns_for(80)
    assert chronoscope.tier_row(TIER, narrow) == [
        "FAST",
        "3",
        "2",
        "1",
        "1/150",
        "1.5",
        "51",
        "50",
        "WAITING",
    ]
    assert chronoscope.is_late(TIER) and not chronoscope.is_late({"tier": "X", "lateness": {"p99Ms": None}})


def test_top_shows_tiers_lanes_rates_and_what_is_wrong():
    from rich.console import Console

    health = {
        "status": "DEGRADED",
        "narrative": "Late.",
        "anomalies": [{"code": "LATE", "detail": "much", "advice": "wait"}],
    }
    lanes = [
        {"name": f"task:{n}", "ready": n, "running": 0, "consumers": 0, "paused": n == 99} for n in range(100)
    ]
    scope = {"tiers": [TIER], "lanes": lanes, "counts": {"SCHEDULED": 10, "ACKED": 50}}
    last = top.Snapshot(1_000, health, {**scope, "counts": {"SCHEDULED": 10, "ACKED": 30}})
    frame = top.Snapshot(3_000, health, scope)
    console = Console(width=120, height=30, file=None, record=True)
    with console.capture() as capture:
        console.print(top.picture(frame, last, "http://x", 120, 30))
    shown = capture.get()
    assert "DEGRADED  Late." in shown and "! LATE: much. wait" in shown
    assert "10 new/s, 10 ended/s" in shown and "1/150" in shown
    assert "task:99" in shown and "paused" in shown and "task:0" not in shown
    assert len(shown.splitlines()) <= 30, "it fits the screen"
    gone = top.Snapshot(4_000, problem="http://x cannot be reached")
    with console.capture() as capture:
        console.print(top.picture(gone, last, "http://x", 120, 30))
    assert "cannot be reached" in capture.get()


def test_without_a_terminal_there_are_no_colours_and_no_folding(capsys):
    output.line(("red", "red"), " plain")
    output.title("bold")
    output.facts({"name": "x" * 500})
    output.table(("a", "b"), [("y" * 300, 1)])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and len(shown.splitlines()) == 5
