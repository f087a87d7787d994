"""`expires`: a relative deadline over HTTP, over gRPC and from the command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import datetime

import pytest

from duetime import App, Client
from duetime.v1 import intents_pb2 as pb
from tests.e2e.process import environment
from tests.grpc.subscriber import calling
from tests.http.checks import problem

NOBODY = {"stream": {"name": "nobody"}}


def seconds(shown):
    """The time from execution to the deadline; None without a deadline."""
    if shown["deadline"] is None:
        return None
    ends, runs = (datetime.fromisoformat(shown[name]) for name in ("deadline", "executeAt"))
    return (ends - runs).total_seconds()


def get(server, id):
    return server.ask("GET", f"/v1/intents/{id}").json


def test_intents_and_batches(server):
    made = server.create(delayMs=60_000, expiresMs=5_000)
    assert (made["expiresMs"], seconds(made)) == (5_000, 5)
    new = {**NOBODY, "delayMs": 60_000}
    batch = server.ask("POST", "/v1/intents/batch", [{**new, "expiresMs": 7_000}, new]).json
    assert [seconds(item["intent"]) for item in batch["items"]] == [7, None]
    assert server.create(delayMs=60_000)["expiresMs"] is None


def test_an_intent_expires(server, events):
    made = server.create(delayMs=0, expiresMs=100)
    events.reached(made["intentId"], "EXPIRED")


@pytest.mark.parametrize("wrong", [0, -1, "5s", 10**15])
def test_a_wrong_value_is_refused(server, wrong):
    problem(server.ask("POST", "/v1/intents", {**NOBODY, "delayMs": 1, "expiresMs": wrong}), 42208)


def test_a_deadline_of_both_kinds_is_refused(server):
    body = {**NOBODY, "delayMs": 1, "expiresMs": 5_000, "deadline": "2100-01-01T00:00:00Z"}
    assert "Both deadline and expiresMs" in problem(server.ask("POST", "/v1/intents", body), 42208)["detail"]


def test_groups(server, fresh):
    group = {
        "groupId": fresh(),
        "then": {**NOBODY, "expiresMs": 9_000},
        "members": [{**NOBODY, "delayMs": 60_000, "expiresMs": 5_000}],
    }
    assert server.ask("POST", "/v1/groups", group).status == 201
    id = group["groupId"]
    assert seconds(get(server, f"{id}.0")) == 5
    assert (get(server, id)["expiresMs"], seconds(get(server, id))) == (9_000, None)  # not released yet


def test_schedules(server, fresh):
    id = fresh()
    body = {"everyMs": 3_600_000, "intent": {**NOBODY, "expiresMs": 5_000}}
    assert server.ask("PUT", f"/v1/schedules/{id}", body).json["intent"]["expiresMs"] == 5_000
    made = server.ask("POST", f"/v1/schedules/{id}/trigger").json
    assert (made["expiresMs"], seconds(made)) == (5_000, 5)


def test_grpc(server):
    async def main():
        async with calling(server.grpc) as stub:
            new = pb.NewIntent(delay_ms=60_000, stream=pb.Stream(name="nobody"), expires_ms=5_000)
            one = (await stub.Create(pb.CreateRequest(intent=new))).intent
            many = await stub.CreateBatch(pb.CreateBatchRequest(intents=[new, new]))
            return [one, *(each.intent for each in many.items)]

    found = asyncio.run(main())
    assert [(each.expires_ms, seconds(get(server, each.intent_id))) for each in found] == [(5_000, 5)] * 3


def test_an_app_and_a_client(server):
    app = App(server.url)

    @app.task(name="offer", queue="nobody", expires="60s")
    def offer() -> None: ...

    with app, Client(server.url) as client:
        ids = [offer.delay("1h").schedule().wait().id, *(h.id for h in offer.schedule_many([()]).wait())]
        ids.append(client.create(delay_ms=1, expires_ms=60_000, stream={"name": "nobody"}).wait().intent_id)
    assert [seconds(get(server, id)) for id in ids] == [60, 60, 60]


def test_the_command_line(server, fresh):
    def run(*arguments):
        command = [sys.executable, "-m", "duetime", *arguments, "--url", server.url]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    id, schedule = fresh(), fresh()
    run("schedule", "stream:nobody", "--in", "1h", "--id", id, "--expires", "90s")
    assert seconds(get(server, id)) == 90
    assert json.loads(run("get", id, "--json"))["expiresMs"] == 90_000
    run("schedules", "put", schedule, "stream:nobody", "--every", "1h", "--expires", "5m")
    shown = server.ask("GET", f"/v1/schedules/{schedule}").json
    assert shown["intent"]["expiresMs"] == 300_000
