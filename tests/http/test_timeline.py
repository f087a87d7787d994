"""GET /v1/admin/timeline: what will fire, in slots, and whether it fits."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.checks import problem
from tests.http.life import now_s

ADMIN = "/v1/admin"
TIERS = ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY")


def get(server, path, **query):
    answer = server.ask("GET", f"{ADMIN}/{path}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    return answer.json


def test_the_timeline_shows_intents_that_will_fire(life):
    start = now_s(5_000_000)
    queue = life.fresh()
    for number in range(5):
        life.server.create(executeAt=start + number, precisionTier="HIGH", task={"name": "t", "queue": queue})
    body = get(life.server, "timeline", **{"from": start - 10, "to": start + 50, "slots": 6})
    assert len(body["slots"]) == 6 and body["slotMs"] == 10_000 and body["total"] >= 5
    assert sum(slot["count"] for slot in body["slots"]) == body["total"]
    assert sum(slot["byQueue"].get(f"task:{queue}", 0) for slot in body["slots"]) == 5
    assert sum(slot["byTier"].get("HIGH", 0) for slot in body["slots"]) >= 5
    assert body["peak"]["count"] == max(slot["count"] for slot in body["slots"])
    assert all(slot["capacity"] > 0 and slot["predictedLatenessMs"] >= 0 for slot in body["slots"])
    assert body["risk"] and body["narrative"] and set(body["predictedLatenessMs"]) == set(TIERS)


def test_the_timeline_leaves_out_cancelled_intents(life):
    start = now_s(6_000_000)
    queue = life.fresh()
    id = life.server.create(executeAt=start, task={"name": "t", "queue": queue})["intentId"]
    life.do("cancel", id)
    body = get(life.server, "timeline", **{"from": start - 10, "to": start + 10})
    assert not any(f"task:{queue}" in slot["byQueue"] for slot in body["slots"])


def test_without_parameters_it_is_the_next_hour(server):
    body = get(server, "timeline")
    assert len(body["slots"]) * body["slotMs"] == 3_600_000


@pytest.mark.parametrize(
    "query", ["from=x", "to=x", "slots=0", "slots=x", "slots=99999", "from=2000000000&to=1900000000", "y=1"]
)
def test_a_bad_parameter(server, query):
    problem(server.ask("GET", f"{ADMIN}/timeline?{query}"), 40002)
