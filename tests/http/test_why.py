"""`GET /v1/intents/{id}/why` on a real server: a sentence that is true, in each situation there is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import partial

import pytest

from duetime import errors
from duetime.api.codec.intent_decoder import Defaults
from duetime.api.service import Service
from duetime.engine.reads.library import Library
from duetime.store.archive import Archive
from tests.grpc.subscriber import Subscriber
from tests.http.checks import problem
from tests.http.life import HOUR_MS, now_s
from tests.http.listener import Listener, Seen
from tests.http.server import ServerProcess
from tests.receiver import Hooks, Say

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
FIELDS = {"intentId", "status", "code", "sentence", "data"}


def why(server, id):
    answer = server.ask("GET", f"/v1/intents/{id}/why")
    assert answer.status == 200, answer.body
    found = answer.json
    assert set(found) == FIELDS and found["intentId"] == id
    # No raw milliseconds. Ids and the names of connections may have long numbers in them.
    sentence = re.sub(rf"{re.escape(id)}|~[0-9a-f]+", "", found["sentence"])
    assert not re.search(r"\d{8}", sentence), found
    for name, value in found["data"].items():
        assert not (type(value) is int and value > 10**9), f"{name} is raw"
        assert not name.endswith("At") or MOMENT.fullmatch(value), f"{name} is no moment"
    return found


def test_an_intent_is_not_due_yet(server, fresh):
    id = server.create(intentId=fresh(), delayMs=HOUR_MS)["intentId"]
    found = why(server, id)
    assert found["code"] == "waiting-for-time" and found["status"] == "SCHEDULED"
    assert re.fullmatch(r"Its time has not come; it is due in 59 min 5\d s\.", found["sentence"])
    assert set(found["data"]) == {"wakeAt", "waitMs"}


def test_an_intent_waits_for_a_retry(life):
    id = life.fresh()
    url = life.hooks.says(id, Say(503, b"down for repairs"))
    policy = {"initialDelayMs": 60_000, "jitter": False}
    life.server.create(intentId=id, delayMs=0, callback={"url": url}, redelivery=policy)
    life.events.until(lambda seen: seen.data.get("intentId") == id and seen.data["error"])
    found = why(life.server, id)
    assert found["code"] == "waiting-for-retry"
    assert re.fullmatch(
        r"Attempt 1 of 5 failed \d+ ms ago \(http: .*503.*\); attempt 2 is due in 59 s\.", found["sentence"]
    )
    assert {"failedAt", "wakeAt", "attempts", "kind"} <= set(found["data"])


def test_an_intent_waits_for_its_dependencies(life):
    parent, id = life.fresh(), life.fresh()
    life.server.create(intentId=parent)
    life.server.create(intentId=id, delayMs=0, after=[parent])
    found = why(life.server, id)
    assert found["code"] == "blocked" and found["data"]["after"] == [parent]
    assert f"'{parent}' (SCHEDULED)" in found["sentence"]


def test_the_lane_is_paused(server, fresh):
    queue = fresh()
    assert server.ask("POST", f"/v1/admin/lanes/task:{queue}/pause").status == 200
    id = server.create(intentId=fresh(), delayMs=0, task={"name": "t", "queue": queue})["intentId"]
    found = why(server, id)
    assert found["code"] == "paused" and f"'task:{queue}' is paused" in found["sentence"]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"stream": {"name": "void"}}, "No subscriber is ready for the stream 'void'."),
        ({"task": {"name": "t", "queue": "void"}}, "No worker is ready for the queue 'void'."),
        ({"entity": {"type": "e", "id": "1", "message": "m"}}, "No worker is ready for the entity 'e/1'."),
    ],
)
def test_no_consumer_takes_its_queue(server, fresh, target, text):
    id = server.create(intentId=fresh(), delayMs=0, **target)["intentId"]
    found = why(server, id)
    assert found["code"] == "no-worker" and found["sentence"].startswith(text)
    server.ask("POST", f"/v1/intents/{id}/cancel")


def test_a_subscriber_holds_it_and_has_no_credit_for_the_next(life):
    first, second, stream = life.fresh(), life.fresh(), life.fresh()
    for id in (first, second):
        life.server.create(intentId=id, delayMs=0, stream={"name": stream})

    async def main():
        async with Subscriber(life.server.grpc, stream, 1) as subscriber:
            await subscriber.one()
            running, waiting = why(life.server, first), why(life.server, second)
            assert running["code"] == "running" and running["status"] == "DISPATCHING"
            assert re.search(r"with 'tester.*its lease ends in \d+ s unless", running["sentence"])
            assert {"startedAt", "leaseEndsAt", "consumer", "delivery"} <= set(running["data"])
            assert waiting["code"] == "workers-busy"
            assert (
                f"Every subscriber of the stream '{stream}' is busy: 1 delivery running"
                in waiting["sentence"]
            )
            assert len(waiting["data"]["busy"]) == 1

    asyncio.run(main())


def test_an_intent_is_running(life):
    id = life.at("DISPATCHING")
    found = why(life.server, id)
    assert found["code"] == "running"
    assert re.fullmatch(
        r"It has been on its way to 127\.0\.0\.1:\d+ for .+ \(delivery 1, attempt 1 of 5\)\.",
        found["sentence"],
    )
    life.hooks.let_go(id)


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        ("ACKED", "acked", r"It was acknowledged .+ ago, on attempt 1; it started \d+ ms after .+\."),
        ("CANCELED", "canceled", r"It was cancelled .+ ago, before it ran\."),
        ("EXPIRED", "expired", r"It expired .+ ago: the deadline passed before it could be handed out\."),
        (
            "DEAD_LETTERED",
            "dead-lettered",
            r"It became a dead letter .+ ago, after 1 attempt: .*418.* \(http\)\.",
        ),
    ],
)  # fmt: skip
def test_an_intent_has_ended(life, status, code, text):
    found = why(life.server, life.at(status))
    assert found["code"] == code and re.fullmatch(text, found["sentence"]), found
    assert MOMENT.fullmatch(found["data"]["finishedAt"])


def test_an_unknown_intent_is_not_found(server):
    problem(server.ask("GET", "/v1/intents/not-there/why"), 40401)


@pytest.fixture
def small(tmp_path, hooks) -> Iterator[ServerProcess]:
    """A server with few permits."""
    with ServerProcess(
        tmp_path / "data", tiers__standard=1, tiers__economy=1, limits__lateness_guard="false"
    ) as server:
        yield server


def test_no_permit_is_left(small, hooks, fresh):
    holder, id = fresh(), fresh()
    small.create(intentId=holder, delayMs=0, callback={"url": hooks.hold(holder)})
    hooks.take(holder)
    small.create(intentId=id, delayMs=0, callback={"url": hooks.url(id)})
    found = why(small, id)
    assert found["code"] == "no-permit"
    assert found["sentence"].startswith("All 1 permits of STANDARD are in use.")
    hooks.let_go(holder)
    hooks.take(id)


def test_a_host_has_used_its_share_of_the_permits(small, hooks, fresh):
    assert small.ask("PATCH", "/v1/admin/tiers/STANDARD", {"concurrency": 5}).status == 200
    held = [fresh() for _ in range(4)]
    for each in held:
        small.create(intentId=each, delayMs=0, callback={"url": hooks.hold(each)})
        hooks.take(each)
    id = fresh()
    small.create(intentId=id, delayMs=0, callback={"url": hooks.url(id)})
    found = why(small, id)
    assert found["code"] == "host-busy", found
    assert re.match(r"4 callbacks of STANDARD to 127\.0\.0\.1:\d+ are under way, and 1 of", found["sentence"])
    for each in held:
        hooks.let_go(each)


def failed(id: str, seen: Seen) -> bool:
    return seen.data.get("intentId") == id and bool(seen.data["error"])


def test_the_circuit_breaker_of_the_endpoint_is_open(tmp_path, fresh):
    """Twenty failures in a row open the breaker; the next one is put off, and says why."""
    with Hooks() as broken, ServerProcess(tmp_path / "data") as server, Listener(server) as events:
        url = broken.says("broken", Say(500))
        policy = {"maxAttempts": 2, "initialDelayMs": HOUR_MS, "maxDelayMs": HOUR_MS}
        ids = [fresh() for _ in range(20)]
        for each in ids:
            server.create(intentId=each, delayMs=0, callback={"url": url}, redelivery=policy)
        for each in ids:
            events.until(partial(failed, each))
        id = fresh()
        server.create(intentId=id, delayMs=0, callback={"url": url}, redelivery=policy)
        events.until(
            lambda seen: seen.data.get("intentId") == id and seen.data["previousStatus"] == "DISPATCHING"
        )
        found = why(server, id)
        assert found["code"] == "snoozed"
        assert re.fullmatch(
            r"It was snoozed for .+ \(http://127\.0\.0\.1:\d+/\S+ failed 20 times in a row; it was not"
            r" called\); it is due again in .+\.",
            found["sentence"],
        )


def test_the_engine_recovers(tmp_path):
    async def main():
        service = Service(Defaults(), Library(Archive(tmp_path / "store.db")))
        with pytest.raises(errors.NotReady, match="still recovering") as caught:
            service.why("a")
        assert caught.value.retryable and caught.value.details["waitMs"] == 500
        with pytest.raises(errors.NotReady, match="still recovering"):
            await service.get("a")  # what is not in the checkpoint may be on the log

    asyncio.run(main())


def test_a_deadline_comes_before_the_retry(life):
    id = life.fresh()
    url = life.hooks.says(id, Say(503))
    policy = {"initialDelayMs": 60_000, "jitter": False}
    life.server.create(
        intentId=id, delayMs=0, callback={"url": url}, redelivery=policy, deadline=now_s(30_000)
    )
    life.events.until(lambda seen: seen.data.get("intentId") == id and seen.data["error"])
    found = why(life.server, id)
    assert "; its deadline comes first, and it expires in 2" in found["sentence"]
    assert MOMENT.fullmatch(found["data"]["deadlineAt"])
