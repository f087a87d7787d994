"""Targets: which are allowed, how they are shown, and what a webhook carries and makes of its answer."""

from __future__ import annotations

import json
import socket

import pytest
from standardwebhooks.webhooks import Webhook

from tests.http.checks import problem
from tests.http.server import ServerProcess
from tests.receiver import Say

TARGETS = {
    "callback": {"url": "http://127.0.0.1:9/x"},
    "task": {"name": "t"},
    "entity": {"type": "cart", "id": "1", "message": "m"},
    "stream": {"name": "s"},
}
SOON = {"initialDelayMs": 1, "maxDelayMs": 1, "jitter": False}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def create(server, **fields):
    return server.ask("POST", "/v1/intents", {"delayMs": 3_600_000, **fields})


@pytest.mark.parametrize("target", TARGETS)
def test_each_is_shown(server, target):
    shown = create(server, **{target: TARGETS[target]}).json
    assert TARGETS[target].items() <= shown[target].items()
    assert all(shown[other] is None for other in TARGETS if other != target)


def test_defaults(server):
    assert create(server, task={"name": "t"}).json["task"] == {"name": "t", "queue": "default"}
    assert create(server, callback=TARGETS["callback"]).json["callback"] == {
        **TARGETS["callback"], "method": "POST", "headers": {}, "body": None, "batch": False,
        "parents": False, "onEnd": None,
    }  # fmt: skip
    assert create(server, entity=TARGETS["entity"]).json["guarantee"] == "AT_MOST_ONCE"


@pytest.mark.parametrize(
    "names", [(), ("callback", "task"), ("entity", "stream"), tuple(TARGETS), ("task", "stream")]
)
def test_more_or_less_than_one(server, names):
    problem(create(server, **{name: TARGETS[name] for name in names}), 42209)


@pytest.mark.parametrize(
    "url",
    ["ftp://host/x", "localhost/x", "http://", "http:///x", "/x", "http://user:secret@host/x", "http://h:99999",
     "http://h/a b", "http://h/\n", "file:///etc/passwd", "http://[::1", "gopher://x", "http://h:0/"],
)  # fmt: skip
def test_an_invalid_url_is_refused(server, url):
    body = problem(create(server, callback={"url": url}), 42216)
    assert body["details"]["path"] == "$.callback.url" and "secret" not in json.dumps(body)


@pytest.mark.parametrize(
    "callback",
    [
        {}, {"url": ""}, {"url": 1}, {"url": "http://h/" + "x" * 2048}, {"url": "http://h", "method": "BREW"},
        {"url": "http://h", "method": "post"}, {"url": "http://h", "headers": {"a b": "x"}},
        {"url": "http://h", "headers": {"a": "x\r\ny: z"}}, {"url": "http://h", "headers": {"a": 1}},
        {"url": "http://h", "headers": {"Content-Length": "5"}}, {"url": "http://h", "headers": {"": "x"}},
        {"url": "http://h", "headers": {"host": "x"}}, {"url": "http://h", "headers": {"a": "\u20ac"}},
        {"url": "http://h", "batch": "yes"}, {"url": "http://h", "timeout": 5}, [], "http://h",
        {"url": "http://h", "headers": {f"x-{n}": "y" * 1000 for n in range(70)}},
    ],
    ids=str,
)  # fmt: skip
def test_a_callback_that_cannot_be_sent(server, callback):
    problem(create(server, callback=callback), 42208)


@pytest.mark.parametrize(
    "target",
    [
        {"task": {}}, {"task": {"name": ""}}, {"task": {"name": "t", "queue": ""}},
        {"task": {"name": "t" * 257}}, {"task": "t"}, {"entity": {"type": "a/b", "id": "1", "message": "m"}},
        {"entity": {"type": "a", "id": "1"}}, {"stream": {"name": ""}}, {"stream": {"name": "s", "x": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_a_target_that_is_not_whole(server, target):
    problem(create(server, **target), 42208)


class Sent:
    """Sends callbacks at once and gives what came of them."""

    def __init__(self, life):
        self.life = life

    def __call__(self, *says, status="ACKED", callback=None, **more):
        id = self.life.fresh()
        url = self.life.hooks.says(id, *says) if says else self.life.hooks.url(id)
        fields = {"delayMs": 0, "precisionTier": "FAST", "redelivery": SOON, **more}
        self.life.server.create(intentId=id, callback={"url": url, **(callback or {})}, **fields)
        self.life.events.reached(id, status)
        return id, self.life.get(id)


@pytest.fixture
def send(life):
    return Sent(life)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd20:ce::254]", "[64:ff9b:1::a9fe:a9fe]"])
def test_a_metadata_service_is_not_called_by_a_server_on_loopback_either(send, host):
    """It may stand behind a proxy, reached by strangers."""
    url = f"http://{host}/latest/meta-data/"
    _, shown = send(callback={"url": url}, status="DEAD_LETTERED")
    assert shown["lastError"]["kind"] == "address" and shown["attempts"] == 1


class TestRequest:
    def test_the_body_of_a_webhook(self, send):
        id, shown = send(payload={"a": 1}, tags={"t": "v"}, traceparent=TRACE)
        got = send.life.hooks.take(id)
        assert got.method == "POST" and got.headers["content-type"].startswith("application/json")
        assert got.json == {
            "intentId": id, "precisionTier": "FAST", "delivery": 1, "attempt": 1,
            "executeAt": shown["executeAt"], "lateMs": shown["lateMs"], "payload": {"a": 1},
            "tags": {"t": "v"},
        }  # fmt: skip
        assert got.headers["x-duetime-intent-id"] == id and got.headers["x-duetime-delivery"] == "1"
        assert got.headers["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
        assert "webhook-signature" not in got.headers

    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
    def test_the_method_of_a_callback_is_used(self, send, method):
        """FLAWS 6."""
        id, _ = send(callback={"method": method})
        assert send.life.hooks.take(id).method == method

    @pytest.mark.parametrize(
        ("body", "sent"),
        [({"x": [1]}, b'{"x":[1]}'), ("plain <text> \u00e9", "plain <text> \u00e9".encode()), ([], b"[]"),
         (7, b"7"), ("", b""), (None, b"null")],
        ids=str,
    )  # fmt: skip
    def test_the_body_of_a_callback_is_sent_unchanged(self, send, body, sent):
        """FLAWS 6."""
        id, shown = send(
            callback={"body": body, "headers": {"content-type": "text/x"}}, payload={"not": "this"}
        )
        got = send.life.hooks.take(id)
        assert got.headers["content-type"] == "text/x"
        assert got.body.replace(b" ", b"") == sent.replace(b" ", b"")
        assert shown["callback"]["body"] == body

    def test_a_large_one(self, send):
        """FLAWS 6: a callback of more than 256 bytes was a 500."""
        headers = {f"x-header-{number}": "v" * 500 for number in range(20)}
        id, shown = send(callback={"headers": headers, "body": "b" * 20_000}, payload="p" * 200_000)
        got = send.life.hooks.take(id)
        assert headers.items() <= got.headers.items() and got.body == b"b" * 20_000
        assert shown["callback"]["headers"] == headers

    def test_calls_are_signed_if_a_secret_is_set(self, tmp_path, hooks, fresh):
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        id = fresh()
        with ServerProcess(tmp_path / "data", webhooks__secret=secret) as server:
            server.create(intentId=id, delayMs=0, callback={"url": hooks.url(id)}, payload={"a": "\u00e9"})
            got = hooks.take(id)
            assert got.headers["webhook-id"]
            assert Webhook(secret).verify(got.body, dict(got.headers))["intentId"] == id
            assert secret not in "".join(server.words) and b"whsec" not in got.body


class TestAnswer:
    @pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
    def test_any_2xx_is_done_once(self, send, status):
        """FLAWS 5: a 204 was delivered again for ever."""
        id, shown = send(Say(status))
        assert shown["attempts"] == 1 and shown["result"] is None and shown["lastError"] is None
        send()
        send.life.hooks.take(id)
        assert send.life.hooks.count(id) == 0

    def test_a_json_body_is_its_result(self, send):
        _, shown = send(Say(200, b'{"done": [1, 2]}', {"content-type": "application/json"}))
        assert shown["result"] == {"done": [1, 2]}

    def test_another_body_is_not(self, send):
        assert send(Say(200, b"<html>", {"content-type": "text/html"}))[1]["result"] is None

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
    def test_transient_failures_are_retried(self, send, status):
        """FLAWS 5."""
        id, shown = send(Say(status), Say(200))
        assert shown["attempts"] == 2 and shown["delivery"] == 2
        assert shown["lastError"]["httpStatus"] == status and shown["lastError"]["delivery"] == 1
        assert [send.life.hooks.take(id).json["attempt"] for _ in range(2)] == [1, 2]

    @pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 409, 410, 418, 422])
    def test_permanent_failures_are_dead_letters_with_their_reason(self, send, status):
        """FLAWS 25."""
        elsewhere = send.life.fresh()
        _, shown = send(
            Say(status, b"no", {"location": send.life.hooks.url(elsewhere)}), status="DEAD_LETTERED"
        )
        assert shown["attempts"] == 1 and shown["lastError"]["httpStatus"] == status
        assert str(status) in shown["lastError"]["message"] and shown["lastError"]["kind"]
        assert send.life.hooks.count(elsewhere) == 0, "redirects are not followed"

    def test_attempts_end(self, send):
        """FLAWS 5: maxAttempts was ignored."""
        id, shown = send(Say(500), status="DEAD_LETTERED", redelivery={**SOON, "maxAttempts": 3})
        assert shown["attempts"] == 3 and shown["lastError"]["httpStatus"] == 500
        for _ in range(3):
            send.life.hooks.take(id)
        assert send.life.hooks.count(id) == 0

    def test_a_refused_connection_is_retried(self, send):
        """FLAWS 5: refused connections went straight to the dead letters."""
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        _, shown = send(
            status="DEAD_LETTERED", callback={"url": f"http://127.0.0.1:{port}/"},
            redelivery={**SOON, "maxAttempts": 2},
        )  # fmt: skip
        assert shown["attempts"] == 2 and shown["lastError"]["httpStatus"] is None

    def test_retry_after_is_waited_for(self, send):
        id, _ = send(Say(503, b"", {"retry-after": "1"}), Say(200))
        history = send.life.server.ask("GET", f"/v1/intents/{id}/history").json["entries"]
        begun = [entry["at"] for entry in history if entry["status"] == "DISPATCHING"]
        assert len(begun) == 2
        assert _ms(begun[1]) - _ms(begun[0]) >= 1_000

    def test_silence_is_ended_by_the_timeout(self, send):
        id = send.life.fresh()
        url = send.life.hooks.hold(id)
        send(
            status="DEAD_LETTERED", callback={"url": url}, timeoutMs=100,
            redelivery={**SOON, "maxAttempts": 1},
        )  # fmt: skip

    def test_at_most_once_is_not_retried_when_the_outcome_is_unknown(self, send):
        id = send.life.fresh()
        url = send.life.hooks.hold(id)
        _, shown = send(
            status="DEAD_LETTERED", callback={"url": url}, timeoutMs=100, guarantee="AT_MOST_ONCE"
        )
        assert shown["attempts"] == 1


def test_retries_survive_a_restart(tmp_path, hooks, fresh):
    """FLAWS 5: backoff settings were lost by a restart."""
    id = fresh()
    redelivery = {
        "maxAttempts": 7, "backoff": "fixed", "initialDelayMs": 60_000, "maxDelayMs": 60_000, "multiplier": 3,
        "jitter": False,
    }  # fmt: skip
    url = hooks.says(id, Say(503), Say(200))
    with ServerProcess(tmp_path / "data") as server:
        server.create(intentId=id, delayMs=0, callback={"url": url}, redelivery=redelivery)
        hooks.take(id)
        server.stop()
        server.start()
        shown = server.ask("GET", f"/v1/intents/{id}").json
        assert shown["redelivery"] == redelivery and shown["attempts"] == 1
        server.ask("POST", f"/v1/intents/{id}/fire-now")
        assert hooks.take(id).json["attempt"] == 2


class TestBatch:
    def test_each_gets_what_its_answer_says(self, life):
        """FLAWS 7: FAILED counted as success."""
        path = life.fresh()
        ids = [life.fresh() for _ in range(5)]
        results = [
            {"intentId": ids[0], "status": "ACKED"},
            {"intentId": ids[1], "status": "DEAD_LETTER", "error": "never"},
            {"intentId": ids[2], "status": "EXPIRED"},
            {"intentId": ids[3], "status": "FAILED"},  # not a word we know: a retry
        ]
        url = life.hooks.says(path, Say(200, json.dumps({"results": results}).encode()), Say(200))
        items = [
            {"intentId": id, "delayMs": 200, "precisionTier": "ECONOMY", "redelivery": SOON,
             "callback": {"url": url, "batch": True}}
            for id in ids
        ]  # fmt: skip
        assert life.server.ask("POST", "/v1/intents/batch", items).json["created"] == 5
        got = life.hooks.take(path)
        assert got.headers["x-duetime-batch-size"] == "5"
        assert {body["intentId"] for body in got.json} == set(ids)
        life.events.reached(ids[1], "DEAD_LETTERED")
        life.events.reached(ids[2], "EXPIRED")
        for id in (ids[0], ids[3], ids[4]):
            life.events.reached(id, "ACKED")
        assert [life.get(id)["attempts"] for id in ids] == [1, 1, 1, 2, 1]
        assert life.get(ids[1])["lastError"]["message"] == "never"


def _ms(text):
    from datetime import datetime

    return round(datetime.fromisoformat(text).timestamp() * 1000)
