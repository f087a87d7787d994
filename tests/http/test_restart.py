"""Across a restart, by SIGTERM and by SIGKILL: what was said before holds after."""

from __future__ import annotations

import pytest

from tests.http.checks import problem
from tests.http.cold import cold_server, until_cold
from tests.http.life import HOUR_MS, STATES, Life, now_s
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.receiver import Say

# Both kinds of server, and both ways to end one.
WAYS = [("warm", "stop"), ("cold", "kill")]
ALL_WAYS = [*WAYS, ("warm", "kill"), ("cold", "stop")]


@pytest.fixture(params=WAYS, ids="-".join)
def both(request):
    return request.param


@pytest.fixture
def way(both):
    return both[1]


@pytest.fixture
def server(both, tmp_path):
    """One that keeps everything in memory, or one that keeps nothing there."""
    folder = tmp_path / both[0]
    with cold_server(folder) if both[0] == "cold" else ServerProcess(folder) as made:
        yield made


def restart(server, way):
    if server.folder.name == "cold":
        until_cold(server, hot=2)
    if way == "stop":
        assert server.stop() == 0
    else:
        server.kill()
    server.start()


def get(server, id):
    return server.ask("GET", f"/v1/intents/{id}").json


@pytest.mark.parametrize("both", ALL_WAYS, ids="-".join, indirect=True)
def test_every_state_is_the_same_after_it(server, way, hooks, fresh):
    with Listener(server) as events:
        life = Life(server, hooks, events, fresh)
        ids = {status: life.at(status, payload={"n": 1}) for status in STATES if status != "DISPATCHING"}
        before = {status: life.get(id) for status, id in ids.items()}
        histories = {id: server.ask("GET", f"/v1/intents/{id}/history").json for id in ids.values()}
    restart(server, way)
    assert {status: get(server, id) for status, id in ids.items()} == before
    assert {id: server.ask("GET", f"/v1/intents/{id}/history").json for id in histories} == histories
    with Listener(server) as events:
        life = Life(server, hooks, events, fresh)
        assert life.do("cancel", ids["SCHEDULED"]).status == 200
        assert life.do("cancel", ids["DUE"]).status == 200
        assert life.do("cancel", ids["BLOCKED"]).status == 200
        problem(life.do("cancel", ids["ACKED"]), 42204)
        hooks.says(ids["DEAD_LETTERED"], Say(200))
        assert life.do("revive", ids["DEAD_LETTERED"]).status == 200
        events.reached(ids["DEAD_LETTERED"], "ACKED")


def test_keys_ids_and_requests_are_remembered(server, way, fresh):
    key, own = fresh(), fresh()
    keyed = {"delayMs": HOUR_MS, "stream": {"name": "n"}, "idempotencyKey": key}
    named = {"delayMs": HOUR_MS, "stream": {"name": "n"}, "intentId": own}
    request = {"X-Duetime-Request-Id": fresh()}
    first = server.ask("POST", "/v1/intents", keyed).json["intentId"]
    server.ask("POST", "/v1/intents", named)
    third = server.ask("POST", "/v1/intents", {**named, "intentId": None}, request).json["intentId"]
    ended = server.create(idempotencyKey=f"{key}-ended")["intentId"]
    server.ask("POST", f"/v1/intents/{ended}/cancel")
    restart(server, way)
    again = server.ask("POST", "/v1/intents", keyed)
    assert again.status == 200 and again.json["intentId"] == first
    problem(server.ask("POST", "/v1/intents", {**keyed, "payload": 1}), 40903)
    problem(server.ask("POST", "/v1/intents", named), 40904)
    repeated = server.ask("POST", "/v1/intents", {**named, "intentId": None}, request)
    assert repeated.status in (200, 201) and repeated.json["intentId"] == third
    other = server.ask("POST", "/v1/intents", {**named, "intentId": None, "payload": 7}, request)
    problem(other, 40903)
    finished = {"delayMs": HOUR_MS, "stream": {"name": "nobody"}, "idempotencyKey": f"{key}-ended"}
    problem(server.ask("POST", "/v1/intents", finished), 40901)
    assert server.ask("POST", "/v1/intents", {**finished, "onDuplicate": "return"}).json["intentId"] == ended


def test_revisions_continue_after_a_restart(server, way):
    id = server.create()["intentId"]
    server.ask("PATCH", f"/v1/intents/{id}", {"priority": 4})
    restart(server, way)
    problem(server.ask("PATCH", f"/v1/intents/{id}", {"priority": 5}, {"If-Match": '"1"'}), 40902)
    answer = server.ask("PATCH", f"/v1/intents/{id}", {"priority": 5}, {"If-Match": '"2"'})
    assert answer.status == 200 and answer.json["revision"] == 3 and answer.headers["etag"] == '"3"'


def test_a_retry_keeps_its_policy_and_its_number(server, way, hooks, fresh):
    """FLAWS 5: backoff settings survive, and attempts go on being counted."""
    id = fresh()
    url = hooks.says(id, Say(503))
    policy = {
        "maxAttempts": 3,
        "backoff": "fixed",
        "initialDelayMs": 2_000,
        "maxDelayMs": 2_000,
        "jitter": False,
    }
    with Listener(server) as events:
        server.create(intentId=id, delayMs=0, callback={"url": url}, redelivery=policy)
        events.until(lambda seen: seen.data.get("intentId") == id and seen.data["error"])
    assert hooks.take(id).json["attempt"] == 1
    before = get(server, id)
    restart(server, way)
    after = get(server, id)
    assert after["redelivery"] == before["redelivery"] and after["attempts"] >= 1
    with Listener(server) as events:
        second, third = hooks.take(id), hooks.take(id)
        assert [second.json["attempt"], third.json["attempt"]] == [2, 3]
        assert [second.json["delivery"], third.json["delivery"]] == [2, 3]
        events.reached(id, "DEAD_LETTERED")
    assert get(server, id)["lastError"]["httpStatus"] == 503
    assert hooks.count(id) == 0


def test_a_deadline_that_passed_while_it_was_down(server, way, hooks, fresh):
    """FLAWS 3: not delivered after its deadline, whatever happened in between."""
    ids = {action: fresh() for action in ("DISCARD", "DEAD_LETTER")}
    deadline_s = now_s(1_300)
    for action, id in ids.items():
        server.create(
            intentId=id, executeAt=now_s(1_200), deadline=deadline_s, expiredAction=action,
            callback={"url": hooks.url(id)},
        )  # fmt: skip
    if way == "stop":
        assert server.stop() == 0
    else:
        server.kill()
    while now_s() < deadline_s:
        pass
    server.start()
    with Listener(server):
        assert get(server, ids["DISCARD"])["status"] == "EXPIRED"
        assert get(server, ids["DEAD_LETTER"])["status"] == "DEAD_LETTERED"
    assert [hooks.count(id) for id in ids.values()] == [0, 0]


def test_intents_due_during_the_downtime_are_delivered(server, way, hooks, fresh):
    id = fresh()
    due_s = now_s(1_500)
    server.create(intentId=id, executeAt=due_s, callback={"url": hooks.url(id)}, payload={"n": 1})
    if way == "stop":
        assert server.stop() == 0
    else:
        server.kill()
    while now_s() < due_s:
        pass
    server.start()
    got = hooks.take(id)
    assert got.json["payload"] == {"n": 1} and got.json["lateMs"] >= 0


def test_paused_lanes_and_resized_tiers_stay(server, way, fresh):
    queue = fresh()
    server.ask("POST", f"/v1/admin/lanes/task:{queue}/pause")
    id = server.create(delayMs=0, task={"name": "t", "queue": queue})["intentId"]
    restart(server, way)
    assert server.ask("GET", f"/v1/intents/{id}/why").json["code"] == "paused"


def test_at_most_once_in_flight(server, way, hooks, fresh):
    """Interrupted: a dead letter with its reason, and never a second delivery."""
    id = fresh()
    url = hooks.hold(id)
    server.create(intentId=id, delayMs=0, callback={"url": url}, guarantee="AT_MOST_ONCE")
    hooks.take(id)
    server.kill()
    hooks.let_go(id)
    server.start()
    shown = get(server, id)
    assert (shown["status"], shown["lastError"]["kind"]) == ("DEAD_LETTERED", "lost")
    why = server.ask("GET", f"/v1/intents/{id}/why").json
    assert why["code"] == "dead-lettered" and "after 1 attempt" in why["sentence"]
    assert hooks.count(id) == 0
