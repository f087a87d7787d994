"""GET /v1/admin/timeline: what will fire, in slots, and whether it fits."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.checks import problem
from tests.http.life import now_s

ADMIN = "/v1/admin"


def get(server, path, **query):
    answer = server.ask("GET", f"{ADMIN}/{path}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    return answer.json


class TestTimeline:
    def test_what_will_fire(self, life):
        start = now_s(5_000_000)
        for number in range(5):
            life.server.create(
                executeAt=start + number, precisionTier="HIGH", task={"name": "t", "queue": "tl"}
            )
        body = get(life.server, "timeline", **{"from": start - 10, "to": start + 50, "slots": 6})
        assert "slots" in body and len(body["slots"]) <= 6
        text = str(body)
        assert "HIGH" in text and "tl" in text
        assert {"peak", "capacity", "risk"} <= {name.lower() for name in _names(body)}

    @pytest.mark.parametrize(
        "query", ["from=x", "to=x", "slots=0", "slots=x", "from=2000000000&to=1900000000", "y=1"]
    )
    def test_a_bad_parameter(self, server, query):
        problem(server.ask("GET", f"{ADMIN}/timeline?{query}"), 40002)


def _names(body):
    if isinstance(body, dict):
        return set(body) | {name for value in body.values() for name in _names(value)}
    if isinstance(body, list):
        return {name for value in body for name in _names(value)}
    return set()
