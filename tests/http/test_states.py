"""Cancel, fire-now, patch and revive, in every state an intent can be in."""

from __future__ import annotations

import pytest

from tests.http.checks import problem
from tests.http.life import FINAL, STATES, now_s

# What the contract says of each verb in each state: a new status, or the code of the refusal.
CANCEL = dict.fromkeys(STATES, "CANCELED") | dict.fromkeys(FINAL, 42204)
FIRE = dict.fromkeys(STATES, 42204) | {"SCHEDULED": "DUE"}
PATCH = dict.fromkeys(STATES, 42211) | {"SCHEDULED": "SCHEDULED", "DUE": "DUE", "BLOCKED": "BLOCKED"}
REVIVE = dict.fromkeys(STATES, 42207) | {"DEAD_LETTERED": "SCHEDULED"}


def outcome(life, verb, status, expected, body=None):
    id = life.at(status)
    before = life.get(id)
    answer = life.do(verb, id, body)
    if isinstance(expected, int):
        refused = problem(answer, expected)
        assert refused["recoveryHint"]["currentState"] == status
        assert life.get(id)["revision"] == before["revision"]
    else:
        assert answer.status == 200, answer.body
        assert answer.json["status"] == expected
        assert answer.headers["etag"] == f'"{answer.json["revision"]}"'
    return answer


@pytest.mark.parametrize("status", STATES)
def test_cancel(life, status):
    answer = outcome(life, "cancel", status, CANCEL[status])
    if answer.status == 200:
        assert answer.json["finishedAt"]


@pytest.mark.parametrize("status", STATES)
def test_fire_now(life, status):
    outcome(life, "fire-now", status, FIRE[status])


@pytest.mark.parametrize("status", STATES)
def test_patch(life, status):
    answer = outcome(life, "patch", status, PATCH[status], {"tags": {"new": "yes"}})
    if answer.status == 200:
        assert answer.json["tags"] == {"new": "yes"}


@pytest.mark.parametrize("status", STATES)
def test_revive(life, status):
    outcome(life, "revive", status, REVIVE[status], {"executeAt": now_s(3_600_000)})


@pytest.mark.parametrize("status", STATES)
def test_every_state_has_a_reason_and_a_history(life, status):
    id = life.at(status)
    why = life.server.ask("GET", f"/v1/intents/{id}/why").json
    assert why["intentId"] == id and why["status"] == status
    assert why["code"] and why["sentence"] and isinstance(why["data"], dict)
    history = life.server.ask("GET", f"/v1/intents/{id}/history").json
    assert history["intentId"] == id
    assert history["entries"][-1]["status"] == status
    assert all(entry["at"].endswith("Z") for entry in history["entries"])


def test_next_states_are_named(life):
    refused = problem(life.do("fire-now", life.at("DISPATCHING")), 42204)
    assert set(refused["recoveryHint"]["nextStates"]) >= {"ACKED", "SCHEDULED", "DEAD_LETTERED", "CANCELED"}
    assert problem(life.do("cancel", life.at("ACKED")), 42204)["recoveryHint"]["nextStates"] == []


@pytest.mark.parametrize("verb", ["cancel", "fire-now", "patch", "revive"])
def test_an_unknown_intent_is_not_found_by_any_verb(life, verb):
    problem(life.do(verb, life.fresh()), 40401)


@pytest.mark.parametrize("path", ["", "/history", "/why"])
def test_an_unknown_intent_is_not_found(life, path):
    problem(life.server.ask("GET", f"/v1/intents/{life.fresh()}{path}"), 40401)


class TestPatch:
    def test_everything_at_once(self, life):
        id = life.at("SCHEDULED", payload={"a": 1}, tags={"x": "1"})
        body = {
            "executeAt": "2031-01-31T09:00:00+01:00",
            "deadline": "2031-02-01T00:00:00Z",
            "expiredAction": "DEAD_LETTER",
            "redelivery": {"maxAttempts": 2, "backoff": "fixed", "initialDelayMs": 5, "maxDelayMs": 5},
            "tags": {"y": "2"},
            "priority": "HIGH",
            "payload": [1, 2],
        }
        shown = life.do("patch", id, body).json
        assert shown == life.get(id)
        assert shown["executeAt"] == "2031-01-31T08:00:00.000Z"
        assert shown["deadline"] == "2031-02-01T00:00:00.000Z"
        assert shown["expiredAction"] == "DEAD_LETTER"
        assert shown["redelivery"]["maxAttempts"] == 2 and shown["redelivery"]["backoff"] == "fixed"
        assert shown["tags"] == {"y": "2"} and shown["priority"] == 300 and shown["payload"] == [1, 2]

    def test_omitted_fields_are_unchanged(self, life):
        id = life.at("SCHEDULED", payload={"a": 1}, tags={"x": "1"}, deadline=now_s(9_000_000))
        before = life.get(id)
        shown = life.do("patch", id, {"priority": 7}).json
        differing = {name for name in shown if shown[name] != before[name]}
        assert differing == {"priority", "revision", "updatedAt"} or differing == {"priority", "revision"}

    def test_a_deadline_is_taken_away_with_null(self, life):
        id = life.at("SCHEDULED", deadline=now_s(9_000_000))
        assert life.do("patch", id, {"deadline": None}).json["deadline"] is None

    def test_a_payload_is_taken_away_with_null(self, life):
        id = life.at("SCHEDULED", payload={"a": 1})
        assert life.do("patch", id, {"payload": None}).json["payload"] is None

    def test_later_makes_what_is_due_scheduled_again(self, life):
        id = life.at("DUE")
        assert life.do("patch", id, {"executeAt": now_s(3_600_000)}).json["status"] == "SCHEDULED"

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"executeAt": "2001-01-01T00:00:00Z"}, 42206),
            ({"deadline": 5}, 42205),
            ({"executeAt": "soon"}, 42208),
            ({"executeAt": None}, 42208),
            ({"priority": "URGENT"}, 42208),
            ({"tags": {"a": 1}}, 42208),
            ({"redelivery": {"maxAttempts": 0}}, 42208),
            ({"redelivery": {"multiplier": 0.5}}, 42208),
            ({"callback": {"url": "http://localhost"}}, 42208),
            ({"payload": "x" * 300_000}, 41301),
            ([], 42208),
        ],
    )
    def test_refused(self, life, body, code):
        id = life.at("SCHEDULED")
        before = life.get(id)
        problem(life.do("patch", id, body), code)
        assert life.get(id) == before


class TestRevive:
    def test_a_revived_intent_has_all_its_attempts(self, life):
        id = life.at("DEAD_LETTERED", redelivery={"maxAttempts": 1})
        dead = life.get(id)
        assert dead["attempts"] == 1 and dead["lastError"]["httpStatus"] == 418
        shown = life.do("revive", id, {"executeAt": now_s(3_600_000)}).json
        assert shown["status"] == "SCHEDULED" and shown["attempts"] == 0 and shown["finishedAt"] is None

    def test_to_another_place_with_another_payload(self, life):
        id = life.at("DEAD_LETTERED")
        elsewhere = life.fresh()
        callback = {"url": life.hooks.says(elsewhere), "method": "PUT"}
        body = {"callback": callback, "payload": {"now": "this"}, "redelivery": {"maxAttempts": 9}}
        assert life.do("revive", id, body).status == 200
        got = life.hooks.take(elsewhere)
        assert got.method == "PUT" and got.json["payload"] == {"now": "this"}
        life.events.reached(id, "ACKED")
        assert life.get(id)["redelivery"]["maxAttempts"] == 9

    def test_a_deadline_can_be_taken_away(self, life):
        id = life.at("DEAD_LETTERED", deadline=now_s(5_000))
        shown = life.do("revive", id, {"deadline": None, "executeAt": now_s(3_600_000)}).json
        assert shown["deadline"] is None

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"executeAt": "2001-01-01T00:00:00Z"}, 42206),
            ({"deadline": 5}, 42205),
            ({"callback": {"url": "ftp://x"}}, 42216),
            ({"callback": {}}, 42208),
            ({"status": "ACKED"}, 42208),
            ({"payload": "x" * 300_000}, 41301),
        ],
    )
    def test_refused(self, life, body, code):
        id = life.at("DEAD_LETTERED")
        problem(life.do("revive", id, body), code)
        assert life.get(id)["status"] == "DEAD_LETTERED"


class TestFire:
    def test_a_fired_intent_runs_at_once(self, life):
        id = life.fresh()
        life.server.create(
            intentId=id, delayMs=3_600_000, callback={"url": life.hooks.says(id)}, precisionTier="ULTRA"
        )
        assert life.do("fire-now", id).status == 200
        life.hooks.take(id)
        life.events.reached(id, "ACKED")

    def test_a_blocked_intent_waits_for_its_dependency(self, life):
        problem(life.do("fire-now", life.at("BLOCKED")), 42204)

    @pytest.mark.parametrize("verb", ["fire-now", "cancel"])
    def test_a_body_is_empty_or_refused(self, life, verb):
        id = life.at("SCHEDULED")
        problem(life.do(verb, id, {"force": True}), 42208)
        problem(life.do(verb, id, b"{"), 40003)
        assert life.do(verb, id, {}).status == 200


def test_a_canceled_delivery_is_not_undone_by_its_answer(life):
    id = life.at("DISPATCHING")
    life.do("cancel", id)
    life.hooks.let_go(id)
    other = life.at("ACKED")  # by now the held answer has been read, or will be
    assert life.get(other)["status"] == "ACKED"
    assert life.get(id)["status"] == "CANCELED"
