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


def test_the_fields_and_the_payload_of_that_moment(life, server):
    id = life.fresh()
    made = server.create(
        intentId=id,
        delayMs=3_600_000,
        payload={"order": 1},
        callback={"url": life.hooks.url(id)},
        tags={"a": "1"},
    )
    life.at("ACKED")  # some time passes
    first = life.do("patch", id, {"payload": {"order": 2}, "tags": {"a": "2"}}).json
    life.at("ACKED")
    second = life.do("patch", id, {"payload": {"order": 3}, "priority": 7}).json
    assert made["updatedAt"] < first["updatedAt"] < second["updatedAt"]
    wanted = {
        made["updatedAt"]: ({"order": 1}, {"a": "1"}, 0),
        first["updatedAt"]: ({"order": 2}, {"a": "2"}, 0),
        second["updatedAt"]: ({"order": 3}, {"a": "2"}, 7),
    }
    for at, fields in wanted.items():
        then = get(server, "replay", intentId=id, at=at)["fields"]
        assert (then["payload"], then["tags"], then["priority"]) == fields
        assert then["executeAt"] == made["executeAt"] and then["callback"]["url"] == life.hooks.url(id)
    assert get(server, "replay", intentId=id)["fields"]["payload"] == {"order": 3}
    assert get(server, "replay", intentId=id, at=now_s(-3_600_000))["fields"] is None


def test_the_payload_before_a_revival(life, server):
    id = life.at("DEAD_LETTERED", payload={"order": 1})
    ended = life.get(id)
    life.at("ACKED")
    later = life.do("revive", id, {"payload": {"order": 2}, "executeAt": now_s(3_600_000)}).json
    assert later["payload"] == {"order": 2}
    then = get(server, "replay", intentId=id, at=ended["finishedAt"])
    assert then["statusAt"] == "DEAD_LETTERED" and then["fields"]["payload"] == {"order": 1}
