"""Predictions and autoscaling over HTTP: their routes, their parameters, and the order of a lane."""

from __future__ import annotations

import pytest

from tests.http.checks import problem

LANE = "/v1/admin/lanes/stream:predicted"


def test_the_order_of_a_lane_is_set_and_shown(server):
    assert server.ask("PATCH", LANE, {"priority": 5}).json["order"] == "FIFO"
    assert server.ask("PATCH", LANE, {"order": "SHADOW"}).json["order"] == "SHADOW"
    shown = server.ask("PATCH", LANE, {"burst": 3}).json
    assert (shown["order"], shown["priority"], shown["burst"]) == ("SHADOW", 5, 3)
    lanes = {each["lane"]: each for each in server.ask("GET", "/v1/admin/predictions").json["lanes"]}
    assert lanes["stream:predicted"] == {
        "lane": "stream:predicted", "order": "SHADOW", "source": "none", "gain": None,
    }  # fmt: skip
    assert server.ask("PATCH", LANE, {"order": "FIFO"}).json["order"] == "FIFO"
    assert server.ask("GET", "/v1/admin/predictions").json["model"]["state"] == "OFF"


def test_an_order_there_is_not(server):
    problem(server.ask("PATCH", LANE, {"order": "LIFO"}), 42208)
    problem(server.ask("PATCH", "/v1/admin/lanes/entity:cart/1", {"order": "EXPECTED"}), 42208)


def test_autoscale_tells_of_one_queue_and_of_all(server):
    server.create(delayMs=0, stream={"name": "scaled"})
    server.create(delayMs=5_000, stream={"name": "scaled"})
    server.create(delayMs=3_600_000, stream={"name": "scaled"})
    answer = server.ask("GET", "/v1/admin/autoscale?queue=stream:scaled&targetSeconds=30").json
    assert answer["targetSeconds"] == 30
    [queue] = answer["queues"]
    assert (queue["queue"], queue["lane"]) == ("scaled", "stream:scaled")
    assert (queue["backlog"], queue["coming"], queue["workers"], queue["risk"]) == (1, 1, 0, "HIGH")
    assert queue["suggestedWorkers"] == 1 and "no worker" in queue["narrative"]
    every = server.ask("GET", "/v1/admin/autoscale").json["queues"]
    assert "stream:scaled" in [each["lane"] for each in every]
    [nothing] = server.ask("GET", "/v1/admin/autoscale?queue=nobody-asks").json["queues"]
    assert (nothing["lane"], nothing["suggestedWorkers"]) == ("task:nobody-asks", 0)


@pytest.mark.parametrize(
    "query", ["queue=", "targetSeconds=0", "targetSeconds=x", "targetSeconds=100000", "more=1"]
)
def test_a_wrong_parameter_is_named_in_the_error(server, query):
    problem(server.ask("GET", f"/v1/admin/autoscale?{query}"), 40002)


def test_predictions_take_no_parameters(server):
    problem(server.ask("GET", "/v1/admin/predictions?queue=x"), 40002)
