"""POST /v1/intents: every field, its default, its rule, and how it is shown."""

from __future__ import annotations

import json
import re

import pytest

from tests.http.checks import problem

# Everything the contract says an intent shows.
SHOWN = {
    "intentId", "executeAt", "deadline", "expiredAction", "precisionTier", "slo", "ackLevel", "ackMeaning",
    "guarantee", "firstArgument", "afterDelayMs",
    "callback", "task", "entity", "stream", "payload", "priority", "limits", "redelivery", "timeoutMs",
    "fairnessKey", "fairnessWeight",
    "leaseMs", "resultTtlMs", "expiresMs", "headers", "resultGone", "progress",
    "collapseKey", "collapse", "unique",
    "after", "idempotencyKey", "tags", "shardKey", "traceparent", "status", "attempts", "delivery",
    "revision", "createdAt", "updatedAt", "dueAt", "firstDispatchAt", "finishedAt", "lateMs",
    "limitedMs", "lastError",
    "result", "nextAttemptAt", "afterOn", "group", "members", "joined", "left",
}  # fmt: skip
STREAM = {"stream": {"name": "nobody"}}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def create(server, **fields):
    base = {"delayMs": 3_600_000, **STREAM}
    return server.ask("POST", "/v1/intents", {**base, **fields})


def test_the_least_one_can_say(server):
    answer = create(server)
    assert answer.status == 201
    shown = answer.json
    assert set(shown) == SHOWN
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == f"/v1/intents/{shown['intentId']}"
    assert answer.headers["etag"] == f'"{shown["revision"]}"'
    assert "idempotent-replayed" not in answer.headers
    assert server.ask("GET", answer.headers["location"]).json == shown


def test_defaults(server):
    shown = create(server).json
    assert shown["status"] == "SCHEDULED"
    assert shown["precisionTier"] == "STANDARD" and shown["ackLevel"] == "DURABLE"
    assert shown["expiredAction"] == "DISCARD" and shown["guarantee"] == "AT_LEAST_ONCE"
    assert shown["redelivery"] == {
        "maxAttempts": 5, "backoff": "exponential", "initialDelayMs": 1000, "maxDelayMs": 60000,
        "multiplier": 2, "jitter": True,
    }  # fmt: skip
    assert shown["timeoutMs"] == shown["leaseMs"] == 30_000
    assert shown["priority"] == shown["attempts"] == shown["delivery"] == 0
    assert shown["after"] == [] and shown["tags"] == {} and shown["fairnessWeight"] == 1
    for name in ("deadline", "slo", "payload", "idempotencyKey", "shardKey", "fairnessKey", "traceparent",
                 "dueAt", "firstDispatchAt", "finishedAt", "lateMs", "lastError", "result"):  # fmt: skip
        assert shown[name] is None, name
    assert all(TIME.fullmatch(shown[name]) for name in ("executeAt", "createdAt", "updatedAt"))
    assert shown["nextAttemptAt"] == shown["executeAt"]


def test_every_field_is_shown_as_requested(server, fresh):
    said = {
        "intentId": fresh(), "executeAt": "2031-05-05T10:00:00.123+02:00",
        "deadline": "2031-05-06T00:00:00Z", "expiredAction": "DEAD_LETTER", "precisionTier": "high",
        "ackLevel": "DURABLE", "guarantee": "AT_MOST_ONCE", "task": {"name": "t", "queue": "q"},
        "payload": {"deep": [1, {"x": None}], "text": "é\u2028"}, "priority": "LOW",
        "redelivery": {"maxAttempts": 3, "backoff": "fixed", "initialDelayMs": 10, "maxDelayMs": 20,
                       "multiplier": 1.5, "jitter": False},
        "timeoutMs": 1234, "leaseMs": 4321, "tags": {"a": "b"}, "shardKey": "s",
        "fairnessKey": "tenant-1", "fairnessWeight": 1000,
        "idempotencyKey": fresh(), "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }  # fmt: skip
    answer = server.ask("POST", "/v1/intents", said)
    assert answer.status == 201, answer.body
    shown = answer.json
    changed = {
        "executeAt": "2031-05-05T08:00:00.123Z",
        "deadline": "2031-05-06T00:00:00.000Z",
        "precisionTier": "HIGH",
        "priority": -300,
    }
    for name, value in {**said, **changed}.items():
        assert shown[name] == value, name
    assert server.ask("GET", f"/v1/intents/{said['intentId']}").json == shown


def test_a_payload_is_json_not_a_text_of_json(server):
    """FLAWS 24."""
    payloads: list[object] = [{"a": [1, 2.5, None, True, "x"]}, [], "text", 0, False, ""]
    for payload in payloads:
        shown = create(server, payload=payload).json
        assert shown["payload"] == payload and type(shown["payload"]) is type(payload)


def test_numbers_keep_their_digits(server):
    body = (
        b'{"delayMs":3600000,"stream":{"name":"n"},"payload":{"n":123456789012345678901234567890,"e":1e400}}'
    )
    answer = server.ask("POST", "/v1/intents", body)
    assert answer.status == 201
    assert b"123456789012345678901234567890" in answer.body and b"1e400" in answer.body


class TestId:
    def test_made_ids_are_ordered_by_time(self, server):
        ids = [create(server).json["intentId"] for _ in range(20)]
        assert ids == sorted(ids) and len(set(ids)) == 20

    @pytest.mark.parametrize("id", ["a", "A-z_0.9:x", "x" * 128])
    def test_allowed(self, server, id, fresh):
        unique = id if len(id) == 128 else f"{id}{fresh()}"[:128]
        answer = create(server, intentId=unique)
        assert answer.status in (201, 409) and (answer.status == 201 or len(id) == 128)

    @pytest.mark.parametrize("id", ["", "x" * 129, "a b", "a/b", "é", "a\n", "\na", "a\x00", "a?b", 7, ["a"]])
    def test_not_allowed(self, server, id):
        body = problem(create(server, intentId=id), 42208)
        assert body["details"]["path"] == "$.intentId"

    def test_the_same_id_twice_is_refused_and_fires_once(self, life):
        """FLAWS 9."""
        id = life.at("ACKED")
        life.hooks.take(id)
        refused = life.server.ask(
            "POST", "/v1/intents", {"intentId": id, "delayMs": 0, "callback": {"url": life.hooks.url(id)}}
        )
        problem(refused, 40904)
        live = life.at("SCHEDULED")
        problem(create(life.server, intentId=live), 40904)
        life.at("ACKED")  # a later one has run: the second of the same id would have, too
        assert life.hooks.count(id) == 0


class TestTier:
    @pytest.mark.parametrize("tier", ["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"])
    @pytest.mark.parametrize("spell", [str.upper, str.lower, str.title])
    def test_in_any_case(self, server, tier, spell):
        assert create(server, precisionTier=spell(tier)).json["precisionTier"] == tier

    @pytest.mark.parametrize("tier", ["", "SLOW", "ULTRA ", "0"])
    def test_unknown(self, server, tier):
        problem(create(server, precisionTier=tier), 42210)

    def test_of_the_wrong_type(self, server):
        problem(create(server, precisionTier=1), 42208)

    @pytest.mark.parametrize(
        ("tier", "ack"),
        [("ULTRA", "ASYNC"), ("FAST", "ASYNC"), ("HIGH", "BATCH_DEFERRED"), ("STANDARD", "DURABLE"),
         ("ECONOMY", "DURABLE")],
    )  # fmt: skip
    def test_the_ack_level_follows_the_tier_unless_it_is_set(self, server, tier, ack):
        assert create(server, precisionTier=tier).json["ackLevel"] == ack
        assert create(server, precisionTier=tier, ackLevel="DURABLE").json["ackLevel"] == "DURABLE"
        assert create(server, precisionTier=tier, ackLevel="ASYNC").json["ackLevel"] == "ASYNC"

    def test_a_replicated_ack_level_is_refused_by_one_node(self, server):
        refused = problem(create(server, ackLevel="REPLICATED"), 42208)
        assert "no replicated log engine" in refused["message"]
        assert refused["details"]["path"] == "$.ackLevel"


class TestSlo:
    @pytest.mark.parametrize(
        ("slo", "tier"),
        [
            # At least once: the window must fit twice.
            ({"maxTardinessMs": 20}, "ULTRA"), ({"maxTardinessMs": 100}, "FAST"),
            ({"maxTardinessMs": 199}, "FAST"), ({"maxTardinessMs": 200}, "HIGH"),
            ({"maxTardinessMs": 1000}, "STANDARD"), ({"maxTardinessMs": 2000}, "ECONOMY"),
            ({"maxTardinessMs": 86_400_000}, "ECONOMY"), ({"maxTardinessMs": 1}, "ULTRA"),
            # At most once: once.
            ({"maxTardinessMs": 50, "reliability": "AT_MOST_ONCE"}, "FAST"),
            ({"maxTardinessMs": 1000, "reliability": "AT_MOST_ONCE"}, "ECONOMY"),
        ],
    )  # fmt: skip
    def test_the_cheapest_tier_that_fits(self, server, slo, tier):
        shown = create(server, slo=slo).json
        assert shown["precisionTier"] == shown["slo"]["tier"] == tier
        assert shown["slo"]["maxTardinessMs"] == slo["maxTardinessMs"]
        assert shown["slo"]["reliability"] == shown["guarantee"] == slo.get("reliability", "AT_LEAST_ONCE")
        assert tier in shown["slo"]["reason"] and any(letter.isdigit() for letter in shown["slo"]["reason"])

    @pytest.mark.parametrize(
        "more",
        [
            {"slo": {}}, {"slo": {"maxTardinessMs": 0}}, {"slo": {"maxTardinessMs": 10**12}},
            {"slo": {"maxTardinessMs": 5, "reliability": "EXACTLY_ONCE"}},
            {"slo": {"maxTardinessMs": 500}, "precisionTier": "FAST"},
            {"slo": {"maxTardinessMs": 500}, "guarantee": "AT_MOST_ONCE"},
        ],
    )  # fmt: skip
    def test_refused(self, server, more):
        problem(create(server, **more), 42208)


class TestPriority:
    @pytest.mark.parametrize(
        ("said", "shown"), [("HIGH", 300), ("NORMAL", 0), ("LOW", -300), (17, 17), (-604_800, -604_800)]
    )
    def test_allowed(self, server, said, shown):
        assert create(server, priority=said).json["priority"] == shown

    @pytest.mark.parametrize("said", ["high", "URGENT", 1.5, 604_801, -604_801, True, "5"])
    def test_not_allowed(self, server, said):
        problem(create(server, priority=said), 42208)


@pytest.mark.parametrize(
    "fields",
    [
        {"expiredAction": "KEEP"}, {"ackLevel": "durable"}, {"guarantee": "EXACTLY_ONCE"},
        {"redelivery": {"maxAttempts": 0}}, {"redelivery": {"maxAttempts": 10_001}},
        {"redelivery": {"backoff": "linear"}}, {"redelivery": {"initialDelayMs": -1}},
        {"redelivery": {"multiplier": 0.99}}, {"redelivery": {"multiplier": 1001}},
        {"redelivery": {"multiplier": "2"}}, {"redelivery": {"jitter": 1}},
        {"redelivery": {"initialDelayMs": 70_000}}, {"redelivery": {"extra": 1}}, {"redelivery": []},
        {"timeoutMs": 0}, {"timeoutMs": 1.5}, {"timeoutMs": "30"}, {"leaseMs": -1}, {"leaseMs": 10**15},
        {"after": "x"}, {"after": [""]}, {"after": ["a b"]}, {"after": ["x\n"]},
        {"idempotencyKey": ""}, {"idempotencyKey": "k" * 257}, {"onDuplicate": "RETURN"},
        {"tags": {"a": 1}}, {"tags": {"": "x"}}, {"tags": {"k" * 257: "x"}}, {"tags": {"k": "v" * 257}},
        {"tags": {str(number): "x" for number in range(33)}}, {"tags": ["a"]},
        {"fairnessKey": ""}, {"fairnessKey": "k" * 129}, {"fairnessKey": 7}, {"fairnessWeight": 2},
        {"fairnessKey": "k", "fairnessWeight": 0}, {"fairnessKey": "k", "fairnessWeight": 1001},
        {"fairnessKey": "k", "fairnessWeight": 1.5},
        {"shardKey": 7}, {"shardKey": "s" * 257}, {"traceparent": 1}, {"traceparent": "t" * 257},
        {"unknown": 1}, {"status": "ACKED"}, {"attempts": 3}, {"precision_tier": "FAST"},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_bad_field_is_named_with_its_place(server, fields):
    body = problem(create(server, **fields), 42208)
    assert body["message"]
    if "multiplier" not in str(fields) and "initialDelayMs" not in str(fields):
        assert "$" in body["details"]["path"] or "`" in body["message"], body


def test_a_message_to_an_entity_has_no_share(server):
    entity = {"type": "Cart", "id": "1", "message": "add"}
    answer = server.ask("POST", "/v1/intents", {"delayMs": 1, "entity": entity, "fairnessKey": "k"})
    assert problem(answer, 42208)["details"]["path"] == "$.fairnessKey"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b"{'a':1}", b'{"delayMs":1,}', b"\xff\xfe", b'{"a":"\xff"}',
     b'{"payload":' + b"[" * 5000,
     b'{"delayMs":NaN}', b'{"delayMs":1}{}', b"\x00"],
)  # fmt: skip
def test_a_body_that_is_not_json_is_refused(server, body):
    problem(server.ask("POST", "/v1/intents", body), 40003)


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b"null", b"true", b"[{}]"])
def test_json_that_is_not_an_object(server, body):
    assert problem(server.ask("POST", "/v1/intents", body), 42208)["details"]["path"] == "$"


def test_a_string_that_is_no_text(server):
    answer = server.ask(
        "POST", "/v1/intents", b'{"delayMs":1,"stream":{"name":"\\ud800"},"payload":"\\udc00\\ud800"}'
    )
    assert answer.status in (400, 422)


def test_the_same_field_twice_is_one_field(server):
    answer = server.ask("POST", "/v1/intents", b'{"delayMs":1,"delayMs":3600000,"stream":{"name":"n"}}')
    assert answer.status in (201, 400, 422)


def test_nested_as_deep_as_it_goes(server, fresh):
    """Whatever is taken can be shown, listed and repeated; the rest is refused; nothing is in between."""
    statuses = set()
    for depth in range(940, 1_000):
        nest = "[" * depth + "]" * depth
        for target in (
            f'"stream":{{"name":"n"}},"payload":{nest}',
            f'"callback":{{"url":"http://h/","body":{nest}}}',
        ):
            body = f'{{"delayMs":3600000,"idempotencyKey":"{fresh()}",{target}}}'.encode()
            first = server.ask("POST", "/v1/intents", body)
            statuses.add(first.status)
            if first.status == 201:
                assert server.ask("POST", "/v1/intents", body).status == 200
                assert nest.encode() in first.body
                assert nest.encode() in server.ask("GET", first.headers["location"]).body
                assert server.ask("GET", "/v1/intents?limit=1").status == 200
            else:
                problem(first, 40003)
    assert statuses == {201, 400}


def test_a_payload_at_the_limit_and_over_it(server):
    fits = "x" * (256 * 1024 - 2)
    assert len(create(server, payload=fits).json["payload"]) == len(fits)
    body = problem(create(server, payload=fits + "x"), 41301)
    assert body["details"]["path"] == "$.payload" and "262144" in body["message"]


def test_after_waits_for_all_and_dies_with_one(life):
    first, second = life.at("SCHEDULED"), life.at("SCHEDULED")
    waiting = life.server.create(intentId=life.fresh(), delayMs=0, after=[first, second])
    assert waiting["status"] == "BLOCKED" and waiting["after"] == [first, second]
    why = life.server.ask("GET", f"/v1/intents/{waiting['intentId']}/why").json
    assert why["code"] and first in json.dumps(why)
    life.do("cancel", first)
    life.events.reached(waiting["intentId"], "DEAD_LETTERED")
    dead = life.get(waiting["intentId"])
    assert first in dead["lastError"]["message"] and dead["lastError"]["kind"]


def test_after_runs_when_all_are_acked(life):
    done = life.at("ACKED")
    id = life.fresh()
    other = life.fresh()
    life.server.create(intentId=other, delayMs=300, callback={"url": life.hooks.says(other)})
    life.server.create(intentId=id, delayMs=0, after=[done, other], callback={"url": life.hooks.says(id)})
    life.events.reached(id, "ACKED")
    assert life.events.of(id)[:2] == ["BLOCKED", "SCHEDULED"] or "DUE" in life.events.of(id)


def test_after_an_unknown_intent_is_refused(server, fresh):
    answer = create(server, after=[fresh()])
    assert answer.status in (404, 422), answer.body
