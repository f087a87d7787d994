"""Lateness admission: what would be later than its bound is refused, with the wait; nothing else is."""

from __future__ import annotations

import pytest

from tests.http.checks import problem
from tests.http.server import ServerProcess
from tests.receiver import Hooks


@pytest.fixture
def narrow(tmp_path):
    """One permit a tier, and nobody to borrow from."""
    tiers = {f"tiers__{name}": 1 for name in ("ultra", "fast", "high", "standard", "economy")}
    with Hooks() as hooks, ServerProcess(tmp_path / "data", **tiers) as server:
        yield server, hooks


def test_a_tier_that_is_behind_refuses_what_is_due_soon(narrow):
    server, hooks = narrow
    slow = hooks.hold("slow")
    hook = {"callback": {"url": slow}, "precisionTier": "ULTRA"}
    server.create(delayMs=0, **hook)
    hooks.take("slow")  # it has the only permit, and keeps it
    waiting = server.create(delayMs=0, **hook)
    body = {"delayMs": 0, **hook}
    refused = server.ask("POST", "/v1/intents", body)
    while refused.status == 201:  # it takes ten milliseconds to be late
        refused = server.ask("POST", "/v1/intents", body)
    shown = problem(refused, 42900)
    wait_ms = shown["recoveryHint"]["waitMs"]
    assert wait_ms > 10 and shown["details"]["retryAfterMs"] == wait_ms
    assert int(refused.headers["retry-after"]) >= 1
    batch = server.ask("POST", "/v1/intents/batch", [body, body])
    problem(batch, 42900)

    assert server.create(delayMs=3_600_000, **hook)["status"] == "SCHEDULED"  # there is time until then
    assert server.create(delayMs=0, callback={"url": slow}, precisionTier="ECONOMY")  # another tier
    assert server.create(delayMs=0, stream={"name": "s"}, precisionTier="ULTRA")  # its subscribers' business
    chronoscope = server.ask("GET", "/v1/admin/chronoscope").json
    assert {tier["tier"]: tier["backpressure"] for tier in chronoscope["tiers"]}["ULTRA"] == "REFUSING"

    hooks.let_go("slow")
    for _ in range(2):
        hooks.take("slow")
    assert server.ask("GET", f"/v1/intents/{waiting['intentId']}").json["lateMs"] > 10
    answer = server.ask("POST", "/v1/intents", body)
    while answer.status == 429:
        hooks.take("slow")
        answer = server.ask("POST", "/v1/intents", body)
    assert answer.status == 201


def test_one_host_that_hangs_does_not_close_the_door_for_others(tmp_path):
    with Hooks() as hooks, Hooks() as others, ServerProcess(tmp_path / "data", tiers__fast=10) as server:
        hanging = {"callback": {"url": hooks.hold("slow")}, "precisionTier": "FAST", "ackLevel": "ASYNC"}
        for _ in range(40):
            if server.ask("POST", "/v1/intents", {"delayMs": 0, **hanging}).status == 429:
                break
        well = {"callback": {"url": others.url("well")}, "precisionTier": "FAST"}
        for _ in range(5):
            server.create(delayMs=0, **well)
            others.take("well")
        hooks.let_go("slow")
