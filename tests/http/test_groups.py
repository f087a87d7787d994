"""Groups over HTTP: made in one request or several, repeated, looked at, cancelled as a tree."""

from __future__ import annotations

import pytest

from duetime.client.http.client import Client
from duetime.client.http.request_types import NewIntent
from tests.http.checks import problem
from tests.receiver import Say

LATER = {"delayMs": 3_600_000}


def stream(fresh, **more):
    return {"stream": {"name": fresh()}, **more}


def post(server, body, **headers):
    return server.ask("POST", "/v1/groups", body, headers)


def get(server, id):
    return server.ask("GET", f"/v1/intents/{id}").json


def test_the_callback_is_called_when_all_members_were(server, hooks, events, fresh):
    one, last = hooks.says(fresh(), Say(200, b'{"n": 1}')), hooks.says(fresh(), Say(200))
    member = {"callback": {"url": one}}
    made = post(server, {"then": {"callback": {"url": last}}, "members": [member] * 3})
    assert made.status == 201, made.body
    shown = made.json
    id = shown["groupId"]
    assert (shown["created"], shown["existing"], shown["failed"], shown["errors"]) == (3, 0, 0, [])
    assert made.headers["location"] == f"/v1/groups/{id}"
    events.reached(id, "ACKED")
    assert server.ask("GET", f"/v1/groups/{id}").json == {
        "groupId": id, "status": "ACKED", "members": 3, "joined": 3, "ended": 3, "left": 0
    }  # fmt: skip
    assert get(server, f"{id}.2")["group"] == id
    parents = server.ask("GET", f"/v1/intents/{id}/parents?limit=2").json
    assert parents["items"] == [
        {"intentId": f"{id}.{n}", "status": "ACKED", "result": {"n": 1}} for n in (0, 1)
    ]
    rest = server.ask("GET", f"/v1/intents/{id}/parents?cursor={parents['nextCursor']}").json
    assert [each["intentId"] for each in rest["items"]] == [f"{id}.2"] and rest["nextCursor"] is None


def test_members_come_in_several_requests_and_none_twice(server, fresh):
    id = fresh()
    then, member = stream(fresh), stream(fresh, **LATER)
    body = {"groupId": id, "then": then, "size": 4, "members": [member] * 2}
    assert post(server, body).json["then"]["status"] == "BLOCKED"
    again = post(server, body)
    assert (again.status, again.json["created"], again.json["existing"]) == (200, 0, 2)
    shown = again.json["then"]
    assert (shown["members"], shown["joined"], shown["left"], shown["afterOn"]) == (4, 2, 4, "SUCCESS")
    more = {"first": 2, "members": [member]}
    for created in (1, 0):
        answer = server.ask("POST", f"/v1/groups/{id}/members", more)
        assert (answer.status, answer.json["created"]) == (200, created)
    why = server.ask("GET", f"/v1/intents/{id}/why").json
    assert why["sentence"].startswith("It waits for 4 of its 4 members to be acknowledged; 1 has not")
    assert why["data"] == {"members": 4, "joined": 3, "left": 4}
    answer = server.ask("POST", f"/v1/groups/{id}/members", {"first": 3, "members": [member] * 3}).json
    assert (answer["created"], answer["failed"]) == (1, 2)
    assert [each["error"]["errorCode"] for each in answer["errors"]] == [42208, 42208]
    problem(post(server, {**body, "then": stream(fresh)}), 40904)
    assert get(server, id)["joined"] == 4


def test_the_same_request_id_makes_the_same_group(server, fresh):
    body = {"then": stream(fresh), "members": [stream(fresh, **LATER)]}
    first = post(server, body, **{"X-Duetime-Request-Id": fresh()}).json
    assert first["groupId"].startswith("req-")
    assert server.ask("GET", f"/v1/groups/{first['groupId']}").json["joined"] == 1


def test_a_group_of_none_is_its_callback(server, fresh):
    made = post(server, {"then": stream(fresh), "members": []}).json
    assert made["then"]["status"] in ("SCHEDULED", "DUE")
    assert server.ask("GET", f"/v1/groups/{made['groupId']}").json["members"] == 0


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        ({"members": []}, 42208, "$"),
        ({"then": {}}, 42209, "$.then"),
        ({"then": {"stream": {"name": "s"}, "intentId": "x"}}, 42208, "$.then.intentId"),
        ({"then": {"stream": {"name": "s"}, "afterOn": "END"}}, 42208, "$.then.afterOn"),
        ({"then": {"stream": {"name": "s"}}, "on": "MAYBE"}, 42208, "$.on"),
        ({"then": {"stream": {"name": "s"}}, "size": 0, "members": [{}]}, 42208, "$.size"),
        ({"then": {"stream": {"name": "s"}}, "size": 100_001}, 42208, "$.size"),
        ({"then": {"stream": {"name": "s"}}, "members": [{}]}, 42209, "$.members[0]"),
        (
            {"then": {"stream": {"name": "s"}}, "members": [{"stream": {"name": "s"}, "group": "x"}]},
            42208,
            "$.members[0].group",
        ),
        (
            {
                "then": {"stream": {"name": "s"}},
                "members": [{"stream": {"name": "s"}, "idempotencyKey": "k"}],
            },
            42208,
            "$.members[0]",
        ),
        (
            {"then": {"stream": {"name": "s"}, "after": ["x"]}, "members": [{"stream": {"name": "s"}}]},
            42208,
            "$.then",
        ),
    ],
)
def test_an_invalid_group_is_refused_and_nothing_is_created(server, body, code, place):
    said = problem(post(server, body), code)
    assert said["details"]["path"] == place and (place == "$" or place in said["message"])


def test_an_unknown_group_is_not_found(server, fresh):
    problem(server.ask("GET", f"/v1/groups/{fresh()}"), 40401)
    problem(server.ask("GET", f"/v1/intents/{fresh()}/parents"), 40401)
    problem(
        server.ask("POST", f"/v1/groups/{fresh()}/members", {"first": 0, "members": [stream(fresh)]}), 40401
    )
    problem(server.ask("GET", f"/v1/intents/{fresh()}/parents?cursor=x"), 40002)


def test_a_tree_is_cancelled(server, fresh):
    made = post(server, {"then": stream(fresh), "members": [stream(fresh, **LATER)] * 2}).json
    id = made["groupId"]
    child = server.ask("POST", "/v1/intents", stream(fresh, delayMs=0, after=[f"{id}.0"])).json["intentId"]
    answer = server.ask("POST", f"/v1/intents/{id}/cancel", {"tree": True})
    assert (answer.status, answer.json["status"]) == (200, "CANCELED")
    assert {get(server, each)["status"] for each in (id, f"{id}.0", f"{id}.1", child)} == {"CANCELED"}
    problem(server.ask("POST", f"/v1/intents/{id}/cancel", {"tree": True}), 42204)
    problem(server.ask("POST", f"/v1/intents/{id}/cancel", {"trees": True}), 42208)


def test_after_on_end(server, hooks, events, fresh):
    failed, then = hooks.says(fresh(), Say(418)), hooks.says(fresh(), Say(200))
    parent = server.ask("POST", "/v1/intents", {"delayMs": 0, "callback": {"url": failed}}).json["intentId"]
    body = {"delayMs": 0, "callback": {"url": then}, "after": [parent], "afterOn": "END"}
    child = server.ask("POST", "/v1/intents", body).json
    assert child["afterOn"] == "END"
    events.reached(child["intentId"], "ACKED")
    items = server.ask("GET", f"/v1/intents/{child['intentId']}/parents").json["items"]
    assert items == [{"intentId": parent, "status": "DEAD_LETTERED", "result": None}]


def test_groups_by_the_client(server, fresh):
    with Client(server.url) as client:
        then: NewIntent = {"stream": {"name": fresh()}}
        member: NewIntent = {"stream": {"name": fresh()}, "delay_ms": 3_600_000}
        made = client.groups.create(then, [member], group_id=fresh(), size=2, on="END").wait()
        assert (made.created, made.then.after_on, made.then.members) == (1, "END", 2)
        assert client.groups.add(made.group_id, 1, [member]).wait().created == 1
        group = client.groups.get(made.group_id).wait()
        assert (group.members, group.joined, group.ended, group.left) == (2, 2, 0, 2)
        assert [each.status for each in client.parents(made.group_id).wait()] == ["SCHEDULED"] * 2
        assert client.cancel(made.group_id, tree=True).wait().status == "CANCELED"
        assert client.get(f"{made.group_id}.1").wait().status == "CANCELED"
