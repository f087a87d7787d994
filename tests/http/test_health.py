"""Health: a sentence with numbers, what stands behind it, and when it is ready."""

from __future__ import annotations

import re

import pytest

from tests.http.server import ServerProcess

TIERS = {"ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"}
VITALS = {
    "lateness", "dueNow", "running", "oldestDueMs", "deadLettersLastHour", "logSyncP99Ms", "lastSyncAt",
    "checkpointLagBytes", "diskFreeBytes", "memoryBytes",
}  # fmt: skip


def test_the_answer(life):
    life.at("ACKED")
    answer = life.server.ask("GET", "/health")
    assert answer.status == 200
    body = answer.json
    assert set(body) == {"status", "narrative", "vitals", "anomalies"}
    assert body["status"] in ("UP", "DEGRADED")
    assert re.search(r"\d", body["narrative"]) and body["narrative"].rstrip().endswith(".")
    assert set(body["vitals"]) >= VITALS
    assert set(body["vitals"]["lateness"]) == TIERS
    assert all(vital["boundMs"] > 0 for vital in body["vitals"]["lateness"].values())
    assert body["vitals"]["memoryBytes"] > 1_000_000 and body["vitals"]["diskFreeBytes"] > 0


def test_vitals_are_what_happened(life):
    before = life.server.ask("GET", "/health").json["vitals"]
    life.at("DEAD_LETTERED")
    held = life.at("DISPATCHING")
    after = life.server.ask("GET", "/health").json["vitals"]
    assert after["deadLettersLastHour"] >= before["deadLettersLastHour"] + 1
    assert after["running"] >= 1
    assert after["lateness"]["FAST"]["p50Ms"] is not None
    assert after["lateness"]["FAST"]["p50Ms"] <= after["lateness"]["FAST"]["p99Ms"]
    life.do("cancel", held)


def test_deep_adds_each_tiers_backpressure(server):
    body = server.ask("GET", "/health/deep").json
    assert {tier["tier"] for tier in body["tiers"]} == TIERS
    assert all(tier["backpressure"] in ("OPEN", "WAITING", "REFUSING") for tier in body["tiers"])


def test_live_and_ready(server):
    assert server.ask("GET", "/health/live").json == {"status": "UP"}
    ready = server.ask("GET", "/health/ready")
    assert ready.status == 200 and ready.json == {"ready": True, "reasons": []}


def test_a_quiet_server_is_a_healthy_one(tmp_path):
    """FLAWS 25: health was CRITICAL five seconds after the last write."""
    with ServerProcess(tmp_path / "data") as server:
        body = server.ask("GET", "/health").json
        assert body["status"] == "UP" and body["anomalies"] == []


def test_anomalies_say_what_to_do(tmp_path, hooks, fresh):
    """A host that fails: what is wrong, since when, what it means and what to do."""
    with ServerProcess(tmp_path / "data", log__disk_reserve_bytes=2**50) as server:
        answer = server.ask("POST", "/v1/intents", {"delayMs": 1, "stream": {"name": "n"}})
        assert answer.status in (201, 503)
        body = server.ask("GET", "/health").json
        assert body["status"] in ("DEGRADED", "DOWN"), body["narrative"]
        assert body["anomalies"]
        for anomaly in body["anomalies"]:
            assert {"code", "since", "meaning", "advice"} <= set(anomaly)
            assert all(anomaly[name] for name in ("code", "since", "meaning", "advice"))


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/health/deep"])
def test_a_head_request_is_enough_for_a_balancer(server, path):
    assert server.ask("HEAD", path).status == 200
