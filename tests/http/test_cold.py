"""Intents that are on disk only: everything that can be done with them can be done as if they were not."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.http.checks import problem
from tests.http.cold import cold_server, until_cold
from tests.http.life import HOUR_MS, Life, now_s
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.receiver import Say


@pytest.fixture(scope="module")
def chilly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with cold_server(tmp_path_factory.mktemp("cold") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def told(chilly: ServerProcess) -> Iterator[Listener]:
    with Listener(chilly) as listener:
        yield listener


@pytest.fixture
def cold(chilly, hooks, told, fresh) -> Life:
    """Brings intents into any state, like `life`."""
    return Life(chilly, hooks, told, fresh)


def made_cold(cold: Life, **fields) -> str:
    """A new intent in an hour, on disk only."""
    id = cold.fresh()
    cold.server.create(intentId=id, delayMs=HOUR_MS, **fields)
    until_cold(cold.server)
    return id


def test_an_intent_on_disk_is_shown_with_all_fields(cold):
    key = cold.fresh()
    fields = {
        "payload": {"a": [1, 2]}, "tags": {"t": "v"}, "priority": 7, "idempotencyKey": key,
        "callback": {"url": cold.hooks.url("x"), "method": "PUT", "headers": {"h": "v"}, "body": {"b": 1}},
        "redelivery": {"maxAttempts": 3, "backoff": "fixed", "initialDelayMs": 9, "maxDelayMs": 9},
        "expiredAction": "DEAD_LETTER", "timeoutMs": 77, "traceparent": "00-1-2-01",
    }  # fmt: skip
    id = made_cold(cold, **fields)
    shown = cold.get(id)
    for name in (
        "payload",
        "tags",
        "priority",
        "idempotencyKey",
        "timeoutMs",
        "traceparent",
        "expiredAction",
    ):
        assert shown[name] == fields[name]
    assert shown["callback"]["method"] == "PUT" and shown["callback"]["body"] == {"b": 1}
    assert shown["redelivery"]["backoff"] == "fixed" and shown["status"] == "SCHEDULED"
    why = cold.server.ask("GET", f"/v1/intents/{id}/why").json
    assert why["code"] == "waiting-for-time" and "59 min" in why["sentence"]
    history = cold.server.ask("GET", f"/v1/intents/{id}/history").json
    assert [entry["status"] for entry in history["entries"]] == ["SCHEDULED"]


def test_id_and_key_of_an_intent_on_disk_cannot_be_used_again(cold):
    key = cold.fresh()
    id = made_cold(cold, idempotencyKey=key, payload=1)
    again = {"delayMs": HOUR_MS, "stream": {"name": "nobody"}, "payload": 1, "idempotencyKey": key}
    refused = problem(cold.server.ask("POST", "/v1/intents", {**again, "idempotencyKey": key}), 40903)
    assert refused["details"]["intentId"] == id, "its own id was part of what was said"
    same = cold.server.ask("POST", "/v1/intents", {**again, "intentId": id})
    assert same.status == 200 and same.json["intentId"] == id
    problem(
        cold.server.ask("POST", "/v1/intents", {"intentId": id, **again, "idempotencyKey": "x" + key}), 40904
    )


def test_cancel(cold):
    id = made_cold(cold)
    assert cold.do("cancel", id).json["status"] == "CANCELED"
    until_cold(cold.server)
    assert cold.get(id)["status"] == "CANCELED"
    problem(cold.do("cancel", id), 42204)


def test_fire_now(cold):
    id = cold.fresh()
    url = cold.hooks.url(id)
    cold.server.create(intentId=id, delayMs=HOUR_MS, callback={"url": url}, payload={"n": 1})
    until_cold(cold.server)
    assert cold.do("fire-now", id).status == 200
    assert cold.hooks.take(id).json["payload"] == {"n": 1}
    cold.events.reached(id, "ACKED")


def test_patch_to_now_and_to_later(cold):
    id = cold.fresh()
    url = cold.hooks.url(id)
    cold.server.create(intentId=id, delayMs=HOUR_MS, callback={"url": url})
    until_cold(cold.server)
    later = cold.do("patch", id, {"executeAt": now_s(2 * HOUR_MS), "payload": [1], "tags": {"x": "y"}})
    assert later.status == 200 and later.json["revision"] == 2
    until_cold(cold.server)
    shown = cold.get(id)
    assert shown == later.json, "what is read from disk is what was answered"
    assert cold.do("patch", id, {"executeAt": now_s(300)}, X_Duetime_Expected_Revision="2").status == 200
    got = cold.hooks.take(id)
    assert got.json["payload"] == [1] and got.json["tags"] == {"x": "y"}
    assert cold.hooks.count(id) == 0


def test_a_stale_revision(cold):
    id = made_cold(cold)
    for verb in ("patch", "cancel", "fire-now"):
        problem(cold.do(verb, id, {"priority": 1} if verb == "patch" else None, If_Match='"9"'), 40902)
    assert cold.get(id)["revision"] == 1


def test_a_dead_letter_is_revived_from_disk(cold):
    id = cold.at("DEAD_LETTERED", payload={"n": 1}, redelivery={"maxAttempts": 1})
    cold.hooks.take(id)
    until_cold(cold.server)
    dead = cold.get(id)
    assert dead["status"] == "DEAD_LETTERED" and dead["lastError"]["httpStatus"] == 418
    cold.hooks.says(id, Say(200))
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(cold.do("revive", id))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answer.status for answer in answers) == [200] + [422] * 7, "one of them revives it"
    got = cold.hooks.take(id)
    assert (got.json["delivery"], got.json["attempt"]) == (2, 1)
    cold.events.reached(id, "ACKED")
    assert cold.hooks.count(id) == 0


@pytest.mark.parametrize("delay_ms", [1_200, 2_500])
def test_an_intent_on_disk_is_delivered_when_due(cold, delay_ms):
    id = cold.fresh()
    url = cold.hooks.url(id)
    made = cold.server.create(intentId=id, delayMs=delay_ms, callback={"url": url}, precisionTier="FAST")
    until_cold(cold.server, hot=1)
    got = cold.hooks.take(id)
    assert got.json["executeAt"] == made["executeAt"]
    ended = cold.events.reached(id, "ACKED")
    assert 0 <= ended["lateMs"] < 1_000


def test_a_deadline_passes_while_it_is_on_disk(cold):
    """Blocked, with a parent that never ends: only its deadline wakes it."""
    parent = made_cold(cold)
    ids = {action: cold.fresh() for action in ("DISCARD", "DEAD_LETTER")}
    for action, id in ids.items():
        cold.server.create(
            intentId=id, executeAt=now_s(), after=[parent], deadline=now_s(1_800), expiredAction=action
        )
    cold.events.reached(ids["DISCARD"], "EXPIRED")
    cold.events.reached(ids["DEAD_LETTER"], "DEAD_LETTERED")


def test_a_retry_far_away_is_on_disk_and_comes(cold):
    id = cold.fresh()
    url = cold.hooks.says(id, Say(503), Say(200))
    policy = {"maxAttempts": 2, "initialDelayMs": 1_800, "maxDelayMs": 1_800, "jitter": False}
    cold.server.create(intentId=id, delayMs=0, callback={"url": url}, redelivery=policy, precisionTier="FAST")
    assert cold.hooks.take(id).json["attempt"] == 1
    until_cold(cold.server, hot=1)
    second = cold.hooks.take(id)
    assert (second.json["attempt"], second.json["delivery"]) == (2, 2)
    cold.events.reached(id, "ACKED")


def test_a_parent_on_disk_sets_its_dependents_free(cold):
    parent, child = cold.fresh(), cold.fresh()
    cold.server.create(intentId=parent, delayMs=HOUR_MS, callback={"url": cold.hooks.url(parent)})
    cold.server.create(intentId=child, delayMs=0, after=[parent], callback={"url": cold.hooks.url(child)})
    until_cold(cold.server)
    cold.do("fire-now", parent)
    cold.hooks.take(parent)
    cold.hooks.take(child)
    cold.events.reached(child, "ACKED")


def test_a_parent_on_disk_that_is_cancelled_ends_them(cold):
    parent = made_cold(cold)
    child = cold.fresh()
    cold.server.create(intentId=child, delayMs=0, after=[parent])
    until_cold(cold.server)
    cold.do("cancel", parent)
    assert cold.get(child)["status"] == "DEAD_LETTERED" and parent in cold.get(child)["lastError"]["message"]


def test_many_are_listed_in_order(cold):
    tag = cold.fresh()
    ids = [cold.fresh() for _ in range(25)]
    for number, id in enumerate(ids):
        cold.server.create(intentId=id, delayMs=HOUR_MS + 1_000 * number, tags={"of": tag})
    until_cold(cold.server)
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = cold.server.ask("GET", f"/v1/intents?tag.of={tag}&order=due&limit=7{cursor}").json
        found += [item["intentId"] for item in page["items"]]
        cursor = f"&cursor={page['nextCursor']}" if page["nextCursor"] else None
    assert found == ids
