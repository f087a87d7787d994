"""Dependencies over HTTP: their results, their failures, and delays after their end."""

from __future__ import annotations

import pytest

from tests.http.checks import problem
from tests.receiver import Say

NOW = {"delayMs": 0}


def made(server, body):
    answer = server.ask("POST", "/v1/intents", body)
    assert answer.status == 201, answer.body
    return answer.json["intentId"]


def test_a_webhook_gets_the_results_of_its_parents(server, hooks, events, fresh):
    path = fresh()
    one, last = hooks.says(fresh(), Say(200, b'{"n": 1}')), hooks.says(path, Say(200))
    parent = made(server, {"callback": {"url": one}, **NOW})
    child = made(server, {"callback": {"url": last, "parents": True}, "after": [parent], **NOW})
    events.reached(child, "ACKED")
    call = hooks.take(path)
    assert call.json["parents"] == [{"intentId": parent, "status": "ACKED", "result": {"n": 1}}]
    assert call.json["moreParents"] is False
    assert server.ask("GET", f"/v1/intents/{child}").json["callback"]["parents"] is True


def test_a_branch_for_failures(server, hooks, events, fresh):
    bad, good = hooks.says(fresh(), Say(410)), hooks.says(fresh(), Say(200))
    branch = {"callback": {"url": good, "parents": True}, "afterOn": "FAILURE", **NOW}
    failed = made(server, {"callback": {"url": bad}, **NOW})
    handler = made(server, {**branch, "after": [failed]})
    events.reached(handler, "ACKED")
    done = made(server, {"callback": {"url": good}, **NOW})
    unneeded = made(server, {**branch, "after": [done]})
    events.reached(unneeded, "CANCELED")
    why = server.ask("GET", f"/v1/intents/{unneeded}/why").json
    assert why["code"] == "not-needed" and "everything it waited for succeeded" in why["sentence"]


def test_a_delay_after_the_end_of_the_dependencies(server, hooks, events, fresh):
    parent = made(server, {"callback": {"url": hooks.says(fresh(), Say(200))}, **NOW})
    events.reached(parent, "ACKED")
    child = made(server, {"stream": {"name": fresh()}, "after": [parent], "afterDelayMs": 3_600_000})
    shown = server.ask("GET", f"/v1/intents/{child}").json
    assert (shown["status"], shown["afterDelayMs"], shown["firstArgument"]) == ("SCHEDULED", 3_600_000, None)
    assert (
        "after the end of what it waited for"
        in server.ask("GET", f"/v1/intents/{child}/why").json["sentence"]
    )


def test_the_first_argument_of_a_function(server, hooks, events, fresh):
    parent = made(server, {"callback": {"url": hooks.says(fresh(), Say(200, b"41"))}, **NOW})
    task = {"task": {"name": "f", "queue": fresh()}, "payload": [[1]], **NOW}
    child = made(server, {**task, "after": [parent], "firstArgument": "RESULT"})
    shown = server.ask("GET", f"/v1/intents/{child}").json
    assert (shown["firstArgument"], shown["payload"]) == ("RESULT", [[1]])


def test_the_callback_of_a_group_gets_the_results_of_its_members(server, hooks, events, fresh):
    url = hooks.says(fresh(), Say(200, b"[1]"))
    then = {"task": {"name": "f", "queue": fresh()}, "firstArgument": "RESULTS", "afterDelayMs": 3_600_000}
    body = {"then": then, "members": [{"callback": {"url": url}}]}
    id = server.ask("POST", "/v1/groups", body).json["groupId"]
    events.reached(id, "SCHEDULED")
    shown = server.ask("GET", f"/v1/intents/{id}").json
    assert (shown["firstArgument"], shown["afterDelayMs"], shown["members"]) == ("RESULTS", 3_600_000, 1)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"afterDelayMs": 1}, "needs `after`"),
        ({"firstArgument": "RESULT"}, "needs `after`"),
        ({"firstArgument": "RESULT", "after": ["nobody"], "payload": {"a": 1}}, "[[arguments], {names}]"),
        ({"firstArgument": "OTHER", "after": ["nobody"]}, "$.firstArgument"),
        (
            {"task": None, "stream": {"name": "s"}, "firstArgument": "RESULT", "after": ["p"]},
            "Only a function",
        ),
        ({"task": None, "callback": {"url": "http://h/", "parents": True, "body": "x"}}, "default body"),
        ({"task": None, "callback": {"url": "http://h/", "parents": True, "method": "GET"}}, "default body"),
    ],
)
def test_impossible_requests_are_refused(server, fresh, fields, where):
    answer = server.ask("POST", "/v1/intents", {"task": {"name": "f"}, **NOW, **fields})
    assert where in problem(answer, 42208)["detail"]
