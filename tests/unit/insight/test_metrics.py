"""The metrics: named by the rules, all of them move, and each says the right number."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from duetime.errors import Busy
from duetime.insight.metrics import METRICS, Metrics
from duetime.protocol.command import Cancel, Demand, LaneSettings, Order, Revive, SetLane
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Failed, Rejected, Settlement, Snoozed
from duetime.protocol.terms import Callback, Entity, Limit, Stream, Tier
from tests.unit.insight.rig import NOW, World, run, world

HOUR = 3_600_000
LABELS = {"tier", "queue", "function", "channel", "outcome", "status", "reason", "source", "state"}
UNITS = ("_seconds", "_bytes", "_total")
# Counts of things that are there now, and of what one node knows of itself, have no unit.
WITHOUT_UNIT = {
    "duetime_batch_size", "duetime_intents", "duetime_ready", "duetime_running", "duetime_permits_max",
    "duetime_permits_used", "duetime_permits_borrowed", "duetime_permits_lent", "duetime_hot_intents",
    "duetime_cold_intents", "duetime_unwritten_intents", "duetime_log_segments",
    "duetime_epoch", "duetime_queue_running", "duetime_queue_workers", "duetime_queue_capacity",
    "duetime_queue_suggested_workers", "duetime_queue_lateness_risk", "duetime_prediction_model",
    "duetime_workers", "duetime_workers_idle", "duetime_held_back_intents",
}  # fmt: skip
# What cannot move on one node without a fault.
STILL = {"duetime_workers", "duetime_workers_idle"}


async def live(w: World) -> None:
    """A bit of everything that can happen to an engine."""
    await w.many("far", 5, 24 * HOUR)
    await w.many("done", 10)
    await w.pass_ms(30)
    await w.end()
    await w.submit(Item("k1", 0, NOW + HOUR, key="k"))
    await w.submit(Item("k2", 0, NOW + HOUR, key="k"))
    await w.many("retried", 2)
    await w.end(Failed("x", "again"))
    await w.many("dead", 3, target=Callback("http://x"))
    await w.end(Rejected("x", "never"))
    await w.engine.ask(Revive("dead0"))
    await w.end()
    await w.engine.ask(Cancel("far0"))
    await w.submit(Item("old", 0, w.clock.now_ms(), deadline_ms=w.clock.now_ms() + 10), target=Stream("s"))
    await w.pass_ms(20)
    w.channel.settle([Settlement("done0", 1, Done())])
    await w.end()
    w.meter.rejected(Busy("no"))
    await w.many("limited", 2, tier=Tier.ECONOMY, limits=(Limit("k", concurrency=1),))
    await w.pass_ms(10)
    await w.end()
    await w.end()
    await w.many("held", 1, tier=Tier.ECONOMY)
    w.channel.out.clear()
    w.channel.settle([Settlement("held0", 1, Snoozed(HOUR), waited_ms=-1)])
    await w.engine.checkpoint()
    await w.many("e", 2, target=Entity("cart", "1", "add"))
    await w.many("u", 210, tier=Tier.ULTRA)
    await w.many("out", 1)
    await w.engine.ask(Demand("w1", "stream:asked", 1))
    await w.engine.ask(SetLane("stream:asked", LaneSettings(order=Order.SHADOW)))
    await w.many("asked", 3, target=Stream("asked"), tier=Tier.ECONOMY)


def samples(text: str) -> dict[str, float]:
    """Every sample by its name and labels."""
    return {
        f"{s.name}{{{','.join(f'{k}={v}' for k, v in sorted(s.labels.items()))}}}": s.value
        for family in parse(text)
        for s in family.samples
    }


def scraped(w: World) -> dict[str, float]:
    kind, body = Metrics(w.engine, w.meter).expose()
    assert kind.startswith("text/plain")
    return samples(body.decode())


def test_names_follow_the_rules():
    names = [spec.name for spec in METRICS]
    assert len(set(names)) == len(names)
    for spec in METRICS:
        assert re.fullmatch(r"duetime_[a-z_]+", spec.name)
        assert spec.name.endswith(UNITS) or spec.name in WITHOUT_UNIT, spec.name
        assert (spec.kind == "counter") == spec.name.endswith("_total")
        assert spec.help.endswith(".")
        assert set(spec.labels) <= LABELS


def test_every_metric_moves_under_load(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            before = scraped(w)
            await live(w)
            after = scraped(w)
            still = []
            for spec in METRICS:
                mine = {k for k in after if re.match(rf"{spec.name}(_count|_sum|_bucket)?\{{", k)}
                assert mine, f"{spec.name} is not there"
                if all(after[key] == before.get(key, 0) for key in mine):
                    still.append(spec.name)
            assert set(still) <= STILL | {
                # True from the first moment on.
                "duetime_epoch", "duetime_permits_max", "duetime_recovery_seconds",
                "duetime_log_segments", "duetime_disk_free_bytes",
            }, still  # fmt: skip

    run(main())


def test_the_numbers_are_right(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await live(w)
            found = scraped(w)
            expected = {
                "duetime_intents_submitted_total{tier=STANDARD}": 25,
                "duetime_intents_submitted_total{tier=ULTRA}": 210,
                "duetime_intents_duplicate_total{}": 1,
                "duetime_intents_completed_total{tier=STANDARD}": 11,
                "duetime_intents_failed_total{tier=STANDARD}": 5,
                "duetime_intents_retried_total{tier=STANDARD}": 2,
                "duetime_intents_dead_total{tier=STANDARD}": 3,
                "duetime_intents_revived_total{tier=STANDARD}": 1,
                "duetime_intents_canceled_total{tier=STANDARD}": 1,
                "duetime_intents_expired_total{tier=STANDARD}": 1,
                "duetime_deliveries_total{channel=task,outcome=done,tier=STANDARD}": 10,
                "duetime_deliveries_total{channel=callback,outcome=rejected,tier=STANDARD}": 3,
                "duetime_stale_outcomes_total{}": 1,
                "duetime_borrowed_permits_total{tier=ULTRA}": 10,
                "duetime_permits_borrowed{tier=ULTRA}": 10,
                "duetime_permits_lent{tier=FAST}": 10,
                "duetime_permits_max{tier=ULTRA}": 200,
                "duetime_rejected_total{reason=42900}": 1,
                "duetime_running{tier=ULTRA}": 210,
                "duetime_ready{queue=entity:}": 2,
                "duetime_intents{status=ACKED,tier=STANDARD}": 11,
                "duetime_intents{status=DEAD_LETTERED,tier=STANDARD}": 2,
                "duetime_lateness_seconds_count{tier=ULTRA}": 0,
                "duetime_lateness_seconds_count{tier=STANDARD}": 16,
                "duetime_delivery_duration_seconds_sum{tier=STANDARD}": 0.3,
                "duetime_epoch{}": 1,
                "duetime_log_segments{}": 1,
            }
            assert {key: found.get(key) for key in expected} == pytest.approx(expected)

    run(main())


def test_buckets_are_in_seconds_and_add_up(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 100)
            await w.pass_ms(30)
            await w.end()
            found = scraped(w)
            name = "duetime_lateness_seconds_bucket"
            assert (
                found[f"{name}{{le=0.001,tier=STANDARD}}"] == 50 + 25
            )  # its own permits and half of a lower tier
            assert (
                found[f"{name}{{le=+Inf,tier=STANDARD}}"]
                == found["duetime_lateness_seconds_count{tier=STANDARD}"]
            )
            buckets = [v for k, v in found.items() if k.startswith(name) and "STANDARD" in k]
            assert buckets == sorted(buckets)

    run(main())


def test_openmetrics_and_json(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await live(w)
            metrics = Metrics(w.engine, w.meter)
            kind, body = metrics.expose("application/openmetrics-text; version=1.0.0,text/plain;q=0.5")
            assert kind.startswith("application/openmetrics-text")
            assert len(list(parse_openmetrics(body.decode()))) == len(METRICS)
            kind, body = metrics.expose("application/json")
            assert kind == "application/json"
            shown: dict[str, Any] = msgspec.json.decode(body)
            assert set(shown) == {spec.name for spec in METRICS}
            late = shown["duetime_lateness_seconds"]["values"]
            assert next(each for each in late if each["labels"] == {"tier": "STANDARD"})["count"] == 16

    run(main())


def test_before_and_after_the_engine_runs_there_is_nothing_to_say(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            metrics = Metrics(w.engine, w.meter)
        assert metrics.expose()[1] == b""
        assert metrics.as_json()["duetime_epoch"]["values"] == []

    run(main())


def test_a_thousand_queues_are_not_a_thousand_series(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            for number in range(1_000):
                await w.many(f"{number}.", 1, target=Stream(str(number)))
            ready = [key for key in scraped(w) if key.startswith("duetime_ready{")]
            assert len(ready) <= 101

    run(main())
