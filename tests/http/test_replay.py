"""GET /v1/admin/replay: an intent's life, or the system, as of a moment."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.checks import problem
from tests.http.life import STATES, now_s

ADMIN = "/v1/admin"


def get(server, path, **query):
    answer = server.ask("GET", f"{ADMIN}/{path}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    return answer.json


def test_the_life_of_an_intent(life):
    """FLAWS 26: replay always returned nothing."""
    id = life.at("ACKED")
    body = get(life.server, "replay", intentId=id)
    assert body["intentId"] == id and body["status"] == "ACKED"
    assert [step["status"] for step in body["steps"]] == ["SCHEDULED", "DUE", "DISPATCHING", "ACKED"]
    assert [step["at"] for step in body["steps"]] == sorted(step["at"] for step in body["steps"])


def test_an_intent_as_of_a_moment(life):
    id = life.at("SCHEDULED")
    life.hooks.says(id)
    life.at("ACKED")  # some time passes
    life.do("cancel", id)
    shown = life.get(id)
    then = get(life.server, "replay", intentId=id, at=shown["createdAt"])
    assert then["status"] == "CANCELED"
    if shown["createdAt"] != shown["finishedAt"]:
        assert then["statusAt"] == "SCHEDULED" and [step["status"] for step in then["steps"]] == ["SCHEDULED"]
    before = get(life.server, "replay", intentId=id, at=now_s(-3_600_000))
    assert before["statusAt"] is None and before["steps"] == []


def test_the_system_as_of_a_moment(life):
    id = life.at("CANCELED")
    shown = life.get(id)
    then = get(life.server, "replay", at=shown["finishedAt"])
    assert set(then["counts"]) == set(STATES) and then["counts"]["CANCELED"] >= 1
    assert sum(tier["CANCELED"] for tier in then["tiers"].values()) == then["counts"]["CANCELED"]


@pytest.mark.parametrize(
    ("query", "code"),
    [("", 40004), ("at=x", 40002), ("intentId=nobody", 40401), ("z=1", 40002), ("intentId=x&at=", 40002)],
)
def test_refused(server, query, code):
    problem(server.ask("GET", f"{ADMIN}/replay?{query}"), code)
