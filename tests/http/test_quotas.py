"""A token's own rate: what its bearer may make, over HTTP and gRPC alike, and what it is told beyond that."""

from __future__ import annotations

import json

import pytest

from duetime.api.access import tokens
from duetime.v1 import intents_pb2 as pb
from tests.grpc.subscriber import calling
from tests.grpc.test_calls import code_of, new, refused
from tests.http.checks import problem
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}
# Too slow for a test to see it filled again.
SLOW = "1/h"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quotas") / "data"
    tokens.new(folder, "admin", "admin")
    with ServerProcess(folder) as server:
        yield server


@pytest.fixture
def bearer(guarded, fresh):
    """Makes a token with a rate, which a running server knows at once; gives its headers."""

    def make(rate, burst=None, role="submit"):
        return {"X-Duetime-Token": tokens.new(guarded.folder, role, fresh(), rate, burst)}

    return make


def post(server, headers, **more):
    return server.ask("POST", "/v1/intents", {**NEW, **more}, headers)


def test_the_burst_then_no_more(guarded, bearer):
    mine = bearer(SLOW, 3)
    assert [post(guarded, mine).status for _ in range(3)] == [201] * 3
    answer = post(guarded, mine)
    refusal = problem(answer, 42901)
    assert answer.status == 429 and refusal["retryable"]
    wait_ms = refusal["details"]["retryAfterMs"]
    assert 3_590_000 < wait_ms <= 3_600_000 and refusal["recoveryHint"]["waitMs"] == wait_ms
    assert int(answer.headers["retry-after"]) == -(-wait_ms // 1000)
    assert "1 intents in 3600000 ms" in refusal["detail"]


def test_reading_costs_nothing_and_goes_on(guarded, bearer):
    mine = bearer(SLOW, 1)
    id = post(guarded, mine).json["intentId"]
    problem(post(guarded, mine), 42901)
    assert guarded.ask("GET", f"/v1/intents/{id}", None, mine).status == 200
    assert guarded.ask("POST", f"/v1/intents/{id}/cancel", None, mine).status == 200


def test_each_token_has_its_own(guarded, bearer):
    mine, theirs = bearer(SLOW, 1), bearer(SLOW, 1)
    assert post(guarded, mine).status == post(guarded, theirs).status == 201
    problem(post(guarded, mine), 42901)
    free = bearer(None)
    assert all(post(guarded, free).status == 201 for _ in range(20))


def test_a_quota_refills_over_time(guarded, bearer):
    mine = bearer("20/s", 1)
    made = 0
    for _ in range(2_000):
        made += post(guarded, mine).status == 201
        if made == 5:
            return
    pytest.fail(f"{made} were made in 2,000 tries")


def test_a_batch_counts_each_and_may_go_into_debt(guarded, bearer):
    mine = bearer("1/s", 10)
    answer = guarded.ask("POST", "/v1/intents/batch", [NEW] * 1_000, mine)
    assert answer.status == 200 and answer.json["created"] == 1_000
    refusal = problem(guarded.ask("POST", "/v1/intents/batch", [NEW], mine), 42901)
    assert 980_000 < refusal["details"]["retryAfterMs"] <= 991_000


def test_a_request_that_creates_nothing_costs_no_quota(guarded, bearer, fresh):
    mine, key = bearer(SLOW, 2), fresh()
    assert post(guarded, mine, idempotencyKey=key).status == 201
    for _ in range(5):
        assert post(guarded, mine, idempotencyKey=key).status == 200
        problem(post(guarded, mine, precisionTier="NEVER"), 42210)
        problem(post(guarded, mine, executeAt=1, delayMs=None), 42206)
        batch = [{**NEW, "idempotencyKey": key}, {**NEW, "executeAt": 5, "delayMs": None}, {}]
        assert guarded.ask("POST", "/v1/intents/batch", batch, mine).json["created"] == 0
    assert post(guarded, mine).status == 201
    problem(post(guarded, mine), 42901)


def test_a_repeated_request_costs_nothing(guarded, bearer, fresh):
    mine = bearer(SLOW, 1) | {"X-Duetime-Request-Id": fresh()}
    first = post(guarded, mine)
    assert first.status == 201 and post(guarded, mine).json == first.json


def test_a_trigger_makes_one_too(guarded, bearer, fresh):
    mine, id = bearer(SLOW, 1), fresh().replace("_", "-")
    plan = {"everyMs": 3_600_000, "intent": {"stream": {"name": "nobody"}}}
    free = bearer(None, role="admin")
    assert guarded.ask("PUT", f"/v1/schedules/{id}", plan, free).status in (200, 201)
    problem(guarded.ask("POST", "/v1/schedules/nobody/trigger", None, mine), 40403)
    assert guarded.ask("POST", f"/v1/schedules/{id}/trigger", None, mine).status == 201
    problem(guarded.ask("POST", f"/v1/schedules/{id}/trigger", None, mine), 42901)


def test_a_group_counts_its_members_and_its_callback(guarded, bearer):
    mine = bearer("1/s", 10)
    target = {"stream": {"name": "nobody"}}
    group = {"then": target, "members": [target] * 100}
    made = guarded.ask("POST", "/v1/groups", group, mine)
    assert made.status == 201 and made.json["created"] == 100
    refusal = problem(guarded.ask("POST", "/v1/groups", group, mine), 42901)
    assert 85_000 < refusal["details"]["retryAfterMs"] <= 92_000


def test_a_request_over_its_quota_is_counted_as_rejected(guarded, bearer):
    mine, free = bearer(SLOW, 1), bearer(None, role="admin")

    def count():
        text = guarded.ask("GET", "/metrics", None, free | {"Accept": "text/plain"}).body.decode()
        lines = [
            line for line in text.splitlines() if line.startswith("duetime_rejected") and "42901" in line
        ]
        return sum(float(line.split()[-1]) for line in lines)

    before = count()
    for _ in range(3):
        post(guarded, mine)
    assert count() == before + 2


@asynchronous
async def test_grpc_and_http_share_the_bucket(guarded, bearer):
    mine = bearer(SLOW, 3)
    metadata = (("x-duetime-token", mine["X-Duetime-Token"]),)
    async with calling(guarded.grpc) as stub:
        await stub.Create(pb.CreateRequest(intent=new()), metadata=metadata)
        assert post(guarded, mine).status == 201
        batch = pb.CreateBatchRequest(intents=[new(), new()])
        await stub.CreateBatch(batch, metadata=metadata)
        error = await refused(stub.Create(pb.CreateRequest(intent=new()), metadata=metadata))
        assert code_of(error) == 42901 and error.code().name == "RESOURCE_EXHAUSTED"
        shown = json.loads(dict(error.trailing_metadata())["duetime-problem-bin"])
        assert shown["details"]["retryAfterMs"] > 3_600_000, "two hours of debt, less one"
    problem(post(guarded, mine), 42901)


def test_a_new_rate_holds_at_once(guarded, bearer):
    mine = bearer(SLOW, 1)
    assert post(guarded, mine).status == 201
    problem(post(guarded, mine), 42901)
    path = guarded.folder / tokens.FILE_NAME
    kept = json.loads(path.read_text())
    for token in kept:
        if token["sha256"] == tokens.digest(mine["X-Duetime-Token"]):
            token["rate"], token["burst"] = "1000000/s", 1_000_000
    path.write_text(json.dumps(kept))
    assert all(post(guarded, mine).status == 201 for _ in range(5))


class TestSchedules:
    """What a token's schedules make counts against its rate."""

    def put(self, server, headers, id, **rule):
        body = {**rule, "intent": {"stream": {"name": "nobody"}}}
        return server.ask("PUT", f"/v1/schedules/{id}", body, headers)

    def test_they_keep_within_its_rate_all_together(self, guarded, bearer, fresh):
        mine = bearer("30/m", 5)
        refusal = problem(self.put(guarded, mine, fresh(), everyMs=1_000), 42208)
        assert "86400 intents a day" in refusal["message"]
        first = fresh()
        assert self.put(guarded, mine, first, everyMs=3_000).status == 200
        assert self.put(guarded, mine, first, everyMs=4_000).status == 200, "its own old rule does not count"
        problem(self.put(guarded, mine, fresh(), everyMs=3_000), 42208)
        assert self.put(guarded, mine, fresh(), cron="0 9 * * *", zone="Europe/Paris").status == 200
        problem(self.put(guarded, mine, fresh(), cron="* * * * * *"), 42208)

    def test_a_daily_one_fits_a_slow_token(self, guarded, bearer, fresh):
        assert self.put(guarded, bearer(SLOW), fresh(), cron="0 9 * * *").status == 200

    def test_a_token_without_a_rate_has_only_the_floor(self, guarded, fresh):
        free = {"X-Duetime-Token": tokens.new(guarded.folder, "submit", fresh())}
        id = fresh()
        problem(self.put(guarded, free, id, everyMs=999), 42208)
        assert self.put(guarded, free, id, everyMs=1_000).status == 200
        assert guarded.ask("DELETE", f"/v1/schedules/{id}", None, free).status == 200
