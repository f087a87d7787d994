"""Errors: every code of the contract that one node can give, in the one shape; nothing else gets out."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest

from tests.http.checks import problem

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}


def test_40001_revision_header(server):
    problem(server.ask("POST", "/v1/intents/x/cancel", None, {"X-Duetime-Expected-Revision": "new"}), 40001)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/events?status=GONE", "/v1/events?tier=SLOW", "/v1/events?wrong=1", "/v1/events?entity=/",
        "/v1/events?tier=FAST&tier=HIGH", "/v1/events?status=%ff",
        "/v1/events?" + "&".join(f"a{n}=1" for n in range(101)),
    ],
)  # fmt: skip
def test_40002_bad_query(server, path):
    problem(server.ask("GET", path), 40002)


def test_40002_bad_event_id(server):
    for text in ("x", "1", "1.x", "-1.0", "1.2.3", "9" * 70 + ".1", "\xb2.1", "1.\xb2", ""):
        problem(server.ask("GET", "/v1/events", None, {"Last-Event-ID": text}), 40002)


def test_40003_not_json(server):
    problem(server.ask("POST", "/v1/intents", b"{"), 40003)
    problem(server.ask("PATCH", "/v1/intents/x", b""), 40003)
    problem(server.ask("POST", "/v1/intents/batch", b""), 40003)


def test_40401_no_such_intent(server):
    body = problem(server.ask("GET", "/v1/intents/no-such-intent"), 40401)
    assert body["recoveryHint"]["endpoint"] == "GET /v1/intents"


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/intent", "/nowhere", "/v1/intents/", "/v1/intents/a/b/c", "/v1/intents/x/nothing",
     "/v2/intents", "/DOCS", "//", "/v1/intents/a%2Fb", "/%00", "/v1/admin"],
)  # fmt: skip
def test_40402_no_such_route(server, path):
    problem(server.ask("GET", path), 40402)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/intents", {"POST"}), ("DELETE", "/v1/intents/x", {"GET", "PATCH"}),
        ("PUT", "/v1/intents/x", {"GET", "PATCH"}), ("GET", "/v1/intents/x/cancel", {"POST"}),
        ("POST", "/docs", {"GET"}), ("POST", "/v1/events", {"GET"}), ("TRACE", "/v1/intents", {"POST"}),
    ],
)  # fmt: skip
def test_40501_method(server, method, path, allowed):
    answer = server.ask(method, path)
    problem(answer, 40501)
    named = set(answer.headers["allow"].split(", "))
    assert allowed <= named and method not in named


def test_409s(life):
    id = life.at("SCHEDULED")
    problem(life.server.ask("POST", "/v1/intents", {**NEW, "intentId": id}), 40904)
    problem(life.do("cancel", id, X_Duetime_Expected_Revision="999"), 40902)


def test_41301_too_large(server):
    problem(server.ask("POST", "/v1/intents", {**NEW, "payload": "x" * 262_145}), 41301)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"delayMs": None}, 42201), ({"executeAt": 1, "delayMs": None}, 42206), ({"deadline": 5}, 42205),
        ({"tags": 1}, 42208), ({"stream": None}, 42209), ({"precisionTier": "x"}, 42210),
    ],
)  # fmt: skip
def test_422s(server, fields, code):
    problem(server.ask("POST", "/v1/intents", {**NEW, **fields}), code)


def test_a_head_is_a_get_without_its_body(server):
    id = server.create()["intentId"]
    got, head = server.ask("GET", f"/v1/intents/{id}"), server.ask("HEAD", f"/v1/intents/{id}")
    assert head.status == 200 and head.body == b"" and head.headers["etag"] == got.headers["etag"]


def test_many_requests_go_over_one_connection(server):
    """Whatever is answered, the connection stays usable."""
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    asked = [
        ("POST", "/v1/intents", b"{", 400),
        ("POST", "/v1/intents", json.dumps(NEW).encode(), 201),
        ("GET", "/nowhere", b"", 404),
        ("DELETE", "/v1/intents", b"{}", 405),
        ("GET", "/v1/intents/none", b"", 404),
        ("POST", "/v1/intents/none/cancel", b"[1]", 422),
        ("GET", "/openapi.json", b"", 200),
    ]
    for method, path, body, status in asked * 3:
        connection.request(method, path, body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_errors_do_not_repeat_what_could_be_secret(server):
    secret = "hunter2hunter2"
    body = {**NEW, "callback": {"url": f"http://me:{secret}@host/"}, "stream": None}
    assert secret.encode() not in server.ask("POST", "/v1/intents", body).body
    headers = {"X-Duetime-Token": secret}
    assert secret.encode() not in server.ask("GET", "/v1/intents/none", None, headers).body
