"""Limits of rate and concurrency over HTTP: on an intent by key, and on a lane at run time."""

from __future__ import annotations

import pytest

from tests.http.checks import problem


def test_limits_are_shown_as_they_were_given(server):
    limits = [
        {"key": "tenant:42", "rate": "20/s", "burst": 5, "concurrency": 3},
        {"key": "api", "rate": "100/2m", "burst": 1, "concurrency": None},
    ]
    assert server.create(limits=limits)["limits"] == limits


@pytest.mark.parametrize(
    "limit",
    [
        {"key": "k"},
        {"key": "", "rate": "1/s"},
        {"key": "k", "rate": "0/s"},
        {"key": "k", "rate": "1/2d"},
        {"key": "k", "rate": "fast"},
        {"key": "k", "concurrency": 0},
        {"key": "k", "rate": "1/s", "burst": 0},
    ],
)
def test_a_limit_that_means_nothing_is_refused(server, limit):
    body = {"delayMs": 1000, "stream": {"name": "s"}, "limits": [limit]}
    problem(server.ask("POST", "/v1/intents", body), 42208)


def test_two_limits_with_one_key_are_refused(server):
    body = {"delayMs": 1, "stream": {"name": "s"}, "limits": [{"key": "k", "rate": "1/s"}] * 2}
    problem(server.ask("POST", "/v1/intents", body), 42208)


def test_a_lane_is_limited_at_run_time_and_the_limit_outlives_a_patch_of_something_else(server):
    path = "/v1/admin/lanes/task:flow-test"
    shown = server.ask("PATCH", path, {"rate": "10/s", "burst": 2, "concurrency": 4}).json
    assert (shown["rate"], shown["burst"], shown["concurrency"]) == ("10/s", 2, 4)
    shown = server.ask("PATCH", path, {"pendingMax": 1, "priority": 60}).json
    assert (shown["rate"], shown["pendingMax"], shown["priority"]) == ("10/s", 1, 60)
    task = {"task": {"name": "t", "queue": "flow-test"}, "delayMs": 3_600_000}
    assert server.create(**task)["priority"] == 60
    problem(server.ask("POST", "/v1/intents", task), 42902)
    lanes = {lane["name"]: lane for lane in server.ask("GET", "/v1/admin/lanes").json["lanes"]}
    assert lanes["task:flow-test"]["pending"] == 1
    cleared = server.ask("PATCH", path, {"rate": None, "concurrency": None, "pendingMax": None}).json
    assert (cleared["rate"], cleared["concurrency"], cleared["pendingMax"]) == (None, None, None)


def test_a_limit_names_itself_in_why(server):
    limits = [{"key": "why-test", "rate": "1/h"}]
    callback = {"url": "http://127.0.0.1:9/x"}
    server.create(delayMs=0, callback=callback, limits=limits)
    second = server.create(
        delayMs=0, callback=callback, limits=limits, precisionTier="ULTRA", ackLevel="DURABLE"
    )
    why = server.ask("GET", f"/v1/intents/{second['intentId']}/why").json
    assert why["code"] == "limited" and "why-test" in why["sentence"]
