"""What the dashboard and the alert rules ask for is there on a real server, and moves when it should."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from duetime.clock import SystemClock
from tests.grpc.subscriber import Subscriber, done
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.receiver import Hooks, Say
from tests.tidy.promql import OWN, asked

DEPLOY = Path(__file__).parents[2] / "deploy"
FAST = {"delayMs": 0, "precisionTier": "FAST"}

# Every series that the load below must move, counters and histograms alike.
MOVED = (
    "duetime_intents_submitted_total", "duetime_intents_duplicate_total", "duetime_intents_completed_total",
    "duetime_intents_failed_total", "duetime_intents_retried_total", "duetime_intents_dead_total",
    "duetime_intents_expired_total", "duetime_intents_canceled_total", "duetime_intents_revived_total",
    "duetime_deliveries_total", "duetime_stale_outcomes_total", "duetime_borrowed_permits_total",
    "duetime_wakeups_total", "duetime_rejected_total", "duetime_lateness_seconds_count",
    "duetime_queue_wait_seconds_count", "duetime_delivery_duration_seconds_count",
    "duetime_execution_duration_seconds_count", "duetime_append_seconds_count", "duetime_sync_seconds_count",
    "duetime_batch_size_count", "duetime_checkpoint_seconds_count", "duetime_log_bytes",
    "duetime_function_deliveries_total", "duetime_function_duration_seconds_count",
)  # fmt: skip
# Gauges that are not zero at the end of the load, while two webhooks are held and one intent is far away.
STANDING = (
    "duetime_intents", "duetime_ready", "duetime_running", "duetime_permits_max", "duetime_permits_used",
    "duetime_permits_borrowed", "duetime_permits_lent", "duetime_hot_intents", "duetime_cold_intents",
    "duetime_log_segments", "duetime_disk_free_bytes", "duetime_memory_bytes",
    "duetime_epoch", "duetime_queue_work_seconds", "duetime_queue_lateness_risk",
    "duetime_queue_suggested_workers", "duetime_prediction_model",
)  # fmt: skip


def named() -> set[str]:
    """Every series of a server that the dashboard and the rules ask for."""
    board = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    rules = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    expressions += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    names = set().union(*(asked(expression).metrics for expression in expressions)) - OWN
    return {name for name in names if not name.startswith("duetime_worker_")}  # tests/worker/test_metrics.py


def scrape(server: ServerProcess) -> dict[str, float]:
    """The sum of each series, by name."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(server.ask("GET", "/metrics").body.decode()):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


class Load:
    """One of everything that can happen to an intent."""

    def __init__(self, server: ServerProcess, hooks: Hooks, events: Listener) -> None:
        self.server = server
        self.hooks = hooks
        self.events = events

    def put(self) -> None:
        self.ends()
        self.refusals()
        asyncio.run(self.stale())
        self.server.create(intentId="far", delayMs=3_600_000, stream={"name": "later"})
        self.server.create(intentId="waits", delayMs=0, stream={"name": "nobody"})
        self.events.reached("waits", "DUE")
        self.borrow()

    def called(self, id: str, *says: Say, **more: Any) -> None:
        self.server.create(intentId=id, callback={"url": self.hooks.says(id, *says)}, **{**FAST, **more})

    def ends(self) -> None:
        quick = {"maxAttempts": 3, "initialDelayMs": 10, "jitter": False}
        self.called("fine", Say(200, b'{"fine": true}'))
        self.called("again", Say(503), Say(200), redelivery=quick)
        self.called("gives-up", Say(500), redelivery=quick)
        self.called("refused", Say(410), Say(200))
        for id, end in (("fine", "ACKED"), ("again", "ACKED"), ("gives-up", "DEAD_LETTERED"),
                        ("refused", "DEAD_LETTERED")):  # fmt: skip
            self.events.reached(id, end)
        assert self.server.ask("POST", "/v1/intents/refused/revive").status == 200
        self.events.reached("refused", "ACKED")
        now_s = SystemClock().now_ms() / 1000
        self.server.create(intentId="late", executeAt=now_s, deadline=now_s + 0.2, stream={"name": "nobody"})
        self.events.reached("late", "EXPIRED")
        self.server.create(intentId="stopped")
        assert self.server.ask("POST", "/v1/intents/stopped/cancel").status == 200
        for _ in range(2):
            self.server.create(idempotencyKey="twice")

    def refusals(self) -> None:
        assert self.server.ask("POST", "/v1/intents", {"stream": {"name": "x"}}).status == 422
        assert self.server.ask("GET", "/v1/intents/nobody-knows").status == 404

    async def stale(self) -> None:
        """A subscriber that answers one delivery twice."""
        self.server.create(intentId="streamed", delayMs=0, stream={"name": "heard"})
        async with Subscriber(self.server.grpc, "heard", 1) as subscriber:
            [delivery] = await subscriber.take(1)
            await subscriber.ack(done(delivery))
            results = await subscriber.ack(done(delivery))
            assert [each.intent_id for each in results.stale] == ["streamed"]
        self.server.create(intentId="tasked", delayMs=0, task={"name": "t", "queue": "heard"})
        async with Subscriber(self.server.grpc, "heard", 1, kind="queue") as worker:
            [delivery] = await worker.take(1)
            await worker.ack(done(delivery))

    def borrow(self) -> None:
        """Two at one time of a tier that has one permit."""
        for id in ("held-1", "held-2"):
            url = self.hooks.hold(id)
            self.server.create(intentId=id, delayMs=0, precisionTier="ULTRA", callback={"url": url})
            self.events.reached(id, "DISPATCHING")


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Before the load, and when a checkpoint has come after it."""
    settings: dict[str, Any] = {"tiers__ultra": 1, "store__checkpoint_ms": 100}
    with (
        ServerProcess(tmp_path_factory.mktemp("metrics") / "data", **settings) as server,
        Hooks() as hooks,
        Listener(server) as events,
    ):
        before = scrape(server)
        Load(server, hooks, events).put()
        after = scrape(server)
        # Far ones are on disk only once a checkpoint has taken them there.
        for _ in range(500):
            if after["duetime_cold_intents"]:
                break
            server.create(delayMs=3_600_000)
            after = scrape(server)
        yield before, after


def test_everything_that_is_asked_for_is_there(scrapes):
    _, after = scrapes
    assert named() - set(after) == set()


@pytest.mark.parametrize("name", MOVED)
def test_metrics_that_should_move_moved(scrapes, name):
    before, after = scrapes
    assert after[name] > before.get(name, 0.0)


@pytest.mark.parametrize("name", STANDING)
def test_gauges_that_should_be_set_are_set(scrapes, name):
    _, after = scrapes
    assert after[name] > 0


def test_ready_work_without_a_worker_is_above_its_alert(scrapes):
    """The load leaves an intent of a stream that nobody subscribes to: the alert must see it."""
    _, after = scrapes
    rules = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())["groups"][0]["rules"]
    [expression] = [each["expr"] for each in rules if each["alert"] == "DuetimeQueueLate"]
    name, _, threshold = expression.partition(" > ")
    assert after[name] > float(threshold)


# What this load leaves at zero, or where it was: it says nothing about them but that they are there.
STILL = {
    "duetime_unwritten_intents", "duetime_checkpoint_lag_bytes", "duetime_recovery_seconds",
    "duetime_queue_running", "duetime_queue_workers",
    "duetime_queue_capacity", "duetime_predictions_total", "duetime_workers",
    "duetime_workers_idle", "duetime_limit_wait_seconds", "duetime_held_back_intents",
}  # fmt: skip


def test_no_metric_is_forgotten_here():
    base = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named()}
    looked_at = {re.sub(r"_count$", "", name) for name in (*MOVED, *STANDING)}
    assert base - looked_at == STILL
