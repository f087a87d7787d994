"""Dead letters: listed with their reasons, revived and purged, one or many."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.checks import problem
from tests.receiver import Say

PATH = "/v1/admin/dead-letters"


@pytest.fixture
def dead(life):
    """Makes dead letters with a mark of their own."""

    def make(count, **more):
        mark = life.fresh()
        return mark, [life.at("DEAD_LETTERED", tags={"mark": mark}, **more) for _ in range(count)]

    return make


def letters(life, **query):
    answer = life.server.ask("GET", f"{PATH}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    return answer.json


def test_they_are_listed_with_their_reasons(life, dead):
    """FLAWS 25."""
    mark, made = dead(3)
    life.at("SCHEDULED", tags={"mark": mark})
    items = letters(life, **{"tag.mark": mark})["items"]
    assert [item["intentId"] for item in items] == made[::-1]
    assert all(item["status"] == "DEAD_LETTERED" and item["finishedAt"] for item in items)
    assert all(item["lastError"]["httpStatus"] == 418 and item["lastError"]["message"] for item in items)


def test_pages(life, dead):
    mark, made = dead(5)
    first = letters(life, **{"tag.mark": mark}, limit=3)
    second = letters(life, **{"tag.mark": mark}, limit=3, cursor=first["nextCursor"])
    assert [item["intentId"] for item in first["items"] + second["items"]] == made[::-1]
    assert second["nextCursor"] is None


@pytest.mark.parametrize("query", ["status=ACKED", "limit=0", "order=x", "nothing=1", "tier=SLOW"])
def test_a_bad_parameter(server, query):
    problem(server.ask("GET", f"{PATH}?{query}"), 40002)


def test_revived_by_id(life, dead):
    """FLAWS 26: a replay of dead letters reaches somebody."""
    _, made = dead(2)
    for id in made:
        life.hooks.take(id)
        life.hooks.says(id, Say(200))
    scheduled = life.at("SCHEDULED")
    answer = life.server.ask("POST", f"{PATH}/revive", {"intentIds": [*made, scheduled, "nobody"]})
    assert answer.status == 200, answer.body
    body = answer.json
    assert (body["matched"], body["done"]) == (4, 2)
    assert [(each["intentId"], each["errorCode"]) for each in body["failed"]] == [
        (scheduled, 42207), ("nobody", 40401),
    ]  # fmt: skip
    for id in made:
        life.hooks.take(id)
        life.events.reached(id, "ACKED")


def test_revived_by_filter(life, dead):
    mark, made = dead(4, precisionTier="ULTRA")
    for id in made:
        life.hooks.says(id, Say(200))
    body = {"filter": {"tags": {"mark": mark}, "tier": "ultra"}, "limit": 3}
    first = life.server.ask("POST", f"{PATH}/revive", body).json
    assert (first["matched"], first["done"], first["failed"]) == (3, 3, []) and first["nextCursor"]
    assert life.server.ask("POST", f"{PATH}/revive", body).json["done"] == 1
    for id in made:
        life.events.reached(id, "ACKED")


def test_filters_of_a_body_have_the_names_of_a_query(life, dead):
    mark, made = dead(1)
    at = life.get(made[0])["executeAt"]
    for more in ({"from": at}, {"to": "2100-01-01T00:00:00Z"}, {"status": "DEAD_LETTERED"}):
        answer = life.server.ask("POST", f"{PATH}/purge", {"filter": {"tags": {"mark": mark + "x"}, **more}})
        assert answer.status == 200 and answer.json["matched"] == 0, answer.body


def test_purged(life, dead):
    mark, made = dead(3)
    scheduled = life.at("SCHEDULED", tags={"mark": mark})
    body = life.server.ask("POST", f"{PATH}/purge", {"intentIds": [made[0], scheduled, "nobody"]}).json
    assert (body["matched"], body["done"]) == (3, 1) and len(body["failed"]) == 2
    problem(life.server.ask("GET", f"/v1/intents/{made[0]}"), 40401)
    rest = life.server.ask("POST", f"{PATH}/purge", {"filter": {"tags": {"mark": mark}}}).json
    assert rest == {"matched": 2, "done": 2, "failed": [], "nextCursor": None}
    assert letters(life, **{"tag.mark": mark})["items"] == []
    assert life.get(scheduled)["status"] == "SCHEDULED"


@pytest.mark.parametrize("verb", ["revive", "purge"])
@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({}, (42208,)), ({"intentIds": ["a"], "filter": {}}, (42208,)), ({"intentIds": "a"}, (42208,)),
        ({"intentIds": ["a b"]}, (42208,)), ({"filter": {"unknown": 1}}, (42208,)), ([], (42208,)),
        ({"filter": {"status": "ACKED"}}, (40002, 42208)), ({"filter": {"tier": "SLOW"}}, (40002, 42210)),
        ({"filter": {}, "limit": 0}, (42208,)), ({"filter": {}, "limit": 10_001}, (42208,)), (b"{", (40003,)),
        ({"filter": {"from": "x"}}, (40002, 42208)), (b"", (40003,)),
    ],
)  # fmt: skip
def test_refused(server, verb, body, codes):
    answer = server.ask("POST", f"{PATH}/{verb}", body)
    problem(answer, answer.json["errorCode"])
    assert answer.json["errorCode"] in codes


def test_a_repeated_purge_is_done_once(life, dead):
    _, made = dead(1)
    headers = {"X-Duetime-Request-Id": life.fresh()}
    answers = [life.server.ask("POST", f"{PATH}/purge", {"intentIds": made}, headers) for _ in range(2)]
    assert [answer.json["done"] for answer in answers] == [1, 1]
