"""Only one of them: unique keys keep others away, collapse keys make way for the next."""

from __future__ import annotations

import threading

import pytest

from tests.http.checks import problem
from tests.http.cold import cold_server, until_cold
from tests.receiver import Say

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
REPLAYED = "idempotent-replayed"


def post(server, **fields):
    target = {} if "callback" in fields else {"stream": {"name": "nobody"}}
    return server.ask("POST", "/v1/intents", {"delayMs": HOUR_MS, **target, **fields})


def unique(key, until="END", **more):
    return {"unique": {"key": key, "until": until, **more}}


# Unique.


def test_a_claim_is_shown_as_requested(server, fresh):
    key = fresh()
    shown = post(server, **unique(key, "TIME", forMs=5_000)).json
    assert shown["unique"] == {"key": key, "until": "TIME", "forMs": 5_000}
    assert shown["collapseKey"] is shown["collapse"] is None
    assert server.ask("GET", f"/v1/intents/{shown['intentId']}").json == shown
    listed = server.ask("GET", "/v1/intents?limit=1").json["items"]
    assert listed == [shown]


def test_a_unique_key_without_an_end_is_held_until_the_end(server, fresh):
    shown = post(server, unique={"key": fresh()}).json
    assert shown["unique"]["until"] == "END" and shown["unique"]["forMs"] is None


def test_a_second_intent_with_the_key_returns_the_holder(server, fresh):
    key = fresh()
    first = post(server, payload=1, **unique(key))
    assert first.status == 201 and REPLAYED not in first.headers
    again = post(server, payload="something else", **unique(key))
    assert again.status == 200 and again.headers[REPLAYED] == "true"
    assert again.json == first.json


def test_with_reject_the_refusal_names_the_holder_of_the_key(server, fresh):
    key = fresh()
    first = post(server, **unique(key)).json
    refused = problem(post(server, onDuplicate="reject", **unique(key)), 40905)
    assert refused["details"]["intentId"] == first["intentId"]
    assert "belongs to" in refused["detail"] and refused["recoveryHint"]["endpoint"]


def test_a_key_is_free_at_once_when_its_holder_has_ended(life):
    """What users of arq suffer from: an id that blocks the next one long after the first has run."""
    key = life.fresh()
    first = life.at("ACKED", **unique(key))
    again = post(life.server, **unique(key))
    assert again.status == 201 and again.json["intentId"] != first


def test_a_key_is_free_when_its_holder_died(life):
    """arq again: crashed jobs kept their id for hours."""
    key = life.fresh()
    dead = life.at("DEAD_LETTERED", **unique(key))
    holder = post(life.server, **unique(key))
    assert holder.status == 201
    refused = problem(life.do("revive", dead), 40905)
    assert refused["details"]["intentId"] == holder.json["intentId"]
    assert life.do("cancel", holder.json["intentId"]).status == 200
    assert life.do("revive", dead).status == 200


def test_until_its_start(life):
    key = life.fresh()
    waiting = life.at("DUE", **unique(key, "START"))
    assert post(life.server, **unique(key, "START")).json["intentId"] == waiting
    assert life.do("cancel", waiting).status == 200
    life.at("DISPATCHING", **unique(key, "START"))
    assert post(life.server, **unique(key, "START")).status == 201


def test_for_a_time_also_when_it_has_ended(life):
    key = life.fresh()
    first = life.at("ACKED", **unique(key, "TIME", forMs=HOUR_MS))
    again = post(life.server, **unique(key, "TIME", forMs=HOUR_MS))
    assert (again.status, again.json["intentId"], again.json["status"]) == (200, first, "ACKED")


def test_many_at_once_are_one(server, fresh):
    key, answers = fresh(), []
    threads = [threading.Thread(target=lambda: answers.append(post(server, **unique(key)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert len({answer.json["intentId"] for answer in answers}) == 1


# Collapse.


def test_debounce_runs_once_with_the_newest(life):
    name = life.fresh()
    said = {"callback": {"url": life.hooks.says(name, Say(200))}, "collapseKey": name}
    ids = [post(life.server, **said, payload=number).json["intentId"] for number in range(3)]
    last = post(life.server, **said, payload="last", delayMs=50).json
    assert (last["collapseKey"], last["collapse"]) == (name, "DEBOUNCE")
    life.events.reached(last["intentId"], "ACKED")
    assert [life.get(id)["status"] for id in ids] == ["CANCELED"] * 3
    assert life.hooks.take(name).json["payload"] == "last"
    assert life.hooks.count(name) == 0, "it was called once"


def test_throttle_runs_at_the_time_of_the_first(server, fresh):
    key = fresh()
    first = post(server, collapseKey=key, collapse="THROTTLE").json
    second = post(server, collapseKey=key, collapse="THROTTLE", delayMs=9 * HOUR_MS)
    assert second.status == 201 and second.json["executeAt"] == first["executeAt"]
    assert server.ask("GET", f"/v1/intents/{first['intentId']}").json["status"] == "CANCELED"


def test_history_and_why_name_both(server, fresh):
    key = fresh()
    first, second = (post(server, collapseKey=key).json["intentId"] for _ in range(2))
    why = server.ask("GET", f"/v1/intents/{first}/why").json
    assert (why["code"], why["data"]["replacedBy"]) == ("replaced", second)
    assert second in why["sentence"]

    def notes(id):
        return [entry["note"] for entry in server.ask("GET", f"/v1/intents/{id}/history").json["entries"]]

    assert notes(first)[-1] == f"replaced by {second}"
    assert f"in the place of {first}" in notes(second)


def test_a_running_intent_is_not_replaced(life):
    key = life.fresh()
    running = life.at("DISPATCHING", collapseKey=key)
    assert post(life.server, collapseKey=key).status == 201
    assert life.get(running)["status"] == "DISPATCHING"


def test_dependents_of_a_replaced_intent_end_with_it(life):
    key = life.fresh()
    first = post(life.server, collapseKey=key).json["intentId"]
    child = post(life.server, after=[first]).json["intentId"]
    post(life.server, collapseKey=key)
    found = life.get(child)
    assert found["status"] == "DEAD_LETTERED" and found["lastError"]["kind"] == "dependency"


# Batches.


def test_each_of_a_batch_is_answered_for_itself(server, fresh):
    key, other = fresh(), fresh()
    base = {"delayMs": HOUR_MS, "stream": {"name": "nobody"}}
    sent = [
        {**base, **unique(key)}, {**base, **unique(key)}, {**base, "onDuplicate": "reject", **unique(key)},
        {**base, "collapseKey": other}, {**base, "collapseKey": other}, {**base, "unique": {"key": ""}},
    ]  # fmt: skip
    answer = server.ask("POST", "/v1/intents/batch", sent).json
    assert [item["status"] for item in answer["items"]] == [201, 200, 409, 201, 201, 422]
    assert (answer["created"], answer["existing"], answer["failed"]) == (3, 1, 2)
    items = answer["items"]
    assert items[1]["intent"]["intentId"] == items[0]["intent"]["intentId"]
    assert items[2]["error"]["errorCode"] == 40905
    assert [items[3]["intent"]["status"], items[4]["intent"]["status"]] == ["CANCELED", "SCHEDULED"]
    assert items[0]["intent"]["unique"]["key"] == key and items[4]["intent"]["collapseKey"] == other


# What cannot be.


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"unique": {"key": "k"}, "collapseKey": "k"}, "$.unique"),
        ({"unique": {"key": "k"}, "collapse": "DEBOUNCE"}, "$.unique"),
        ({"collapse": "THROTTLE"}, "$.collapse"),
        ({"unique": {"key": "k", "until": "TIME"}}, "$.unique.forMs"),
        ({"unique": {"key": "k", "until": "END", "forMs": 5}}, "$.unique.forMs"),
        ({"unique": {"key": "k", "until": "TIME", "forMs": 0}}, "$.unique.forMs"),
        ({"unique": {"key": "k", "until": "NEVER"}}, "$.unique.until"),
        ({"unique": {"key": "k" * 257}}, "$.unique.key"),
        ({"unique": {"until": "END"}}, "$.unique"),
        ({"unique": {"key": "k", "ttl": 5}}, "$.unique"),
        ({"unique": "k"}, "$.unique"),
        ({"collapseKey": ""}, "$.collapseKey"),
        ({"collapseKey": "k", "collapse": "debounce"}, "$.collapse"),
        ({"collapseKey": 7}, "$.collapseKey"),
    ],
)
def test_invalid_claims_are_refused_with_their_place(server, fields, place):
    assert problem(post(server, **fields), 42208)["details"]["path"] == place


def test_a_time_longer_than_keys_are_kept_is_refused(server, fresh):
    refused = problem(post(server, **unique(fresh(), "TIME", forMs=DAY_MS + 1)), 42208)
    assert "keys are remembered for 1 d" in refused["detail"]
    assert post(server, **unique(fresh(), "TIME", forMs=DAY_MS)).status == 201


# Cold, and restarted.


def test_claims_of_cold_intents_hold_through_restarts(tmp_path):
    with cold_server(tmp_path / "data") as server:
        held = {
            until: post(server, **unique(f"u-{until}", until, **more)).json["intentId"]
            for until, more in (("START", {}), ("END", {}), ("TIME", {"forMs": HOUR_MS}))
        }
        waits = post(server, collapseKey="c", collapse="THROTTLE", payload=1).json
        gone = post(server, **unique("gone", "TIME", forMs=HOUR_MS)).json["intentId"]
        assert server.ask("POST", f"/v1/intents/{gone}/cancel").status == 200
        until_cold(server)
        for end in (server.kill, server.stop):
            end()
            server.start()
            until_cold(server)
            for until, id in held.items():
                more = {"forMs": HOUR_MS} if until == "TIME" else {}
                again = post(server, **unique(f"u-{until}", until, **more))
                assert (again.status, again.json["intentId"]) == (200, id)
            assert post(server, **unique("gone", "TIME", forMs=HOUR_MS)).json["intentId"] == gone
            newer = post(server, collapseKey="c", collapse="THROTTLE", payload=2).json
            assert newer["executeAt"] == waits["executeAt"] and newer["intentId"] != waits["intentId"]
            old = server.ask("GET", f"/v1/intents/{waits['intentId']}").json
            assert old["status"] == "CANCELED"
            waits = newer
