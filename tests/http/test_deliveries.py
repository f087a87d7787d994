"""Work taken over plain HTTP: the rules of a worker's connection, without the connection."""

from __future__ import annotations

import json
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from duetime.api.access import tokens
from duetime.client.http.client import Client
from duetime.errors import InvalidField
from duetime.limits import CLAIM_WAIT_MS_MAX, DELIVERIES_MAX, NAME_CHARS_MAX, SETTLE_MAX
from tests.http.checks import problem
from tests.http.raw import read
from tests.http.server import ServerProcess
from tests.http.worker import HttpWorker, answered, done, key

Fresh = Callable[[], str]
FIXED = {"maxAttempts": 5, "backoff": "fixed", "initialDelayMs": 1, "maxDelayMs": 1}


def put(server: ServerProcess, queue: str, *ids: str, **more: Any) -> None:
    for id in ids:
        fields = {"task": {"name": "t", "queue": queue}, "delayMs": 0, "redelivery": FIXED, **more}
        server.create(intentId=id, **fields)


def status(server: ServerProcess, id: str) -> str:
    return str(server.ask("GET", f"/v1/intents/{id}").json["status"])


def names(fresh: Fresh, count: int = 1) -> list[str]:
    return [fresh() for _ in range(count)]


def asked_for(server: ServerProcess, queue: str, consumers: int) -> None:
    """Wait until so many claims wait for a queue."""
    for _ in range(2_000):
        lanes = server.ask("GET", "/v1/admin/lanes?limit=500&entities=false").json["lanes"]
        if [lane["consumers"] for lane in lanes if lane["name"] == f"task:{queue}"] == [consumers]:
            return
        if not consumers and not any(lane["name"] == f"task:{queue}" for lane in lanes):
            return
    raise AssertionError("it did not come to that")


# What a claim gives.


def test_a_claim_has_everything_that_a_worker_needs(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    own = {"headers": {"user": "ada"}, "tags": {"team": "a"}, "traceparent": trace}
    put(server, queue, id, payload={"n": 1}, leaseMs=9_000, **own)
    found = HttpWorker(server, queue).one()
    assert found["lateMs"] >= 0 and found.pop("lateMs") is not None
    assert found.pop("executeAt").endswith("Z")
    assert found == {
        "intentId": id, "delivery": 1, "attempt": 1, "maxAttempts": 5, "task": {"name": "t", "queue": queue},
        "entity": None, "stream": None, "payload": {"n": 1}, **own,
        "deadline": None, "precisionTier": "STANDARD", "timeoutMs": 30_000, "leaseMs": 9_000,
    }  # fmt: skip


def test_a_claim_takes_what_is_ready_and_no_more_than_asked(server: ServerProcess, fresh: Fresh):
    worker = HttpWorker(server, queue := fresh())
    ids = names(fresh, 5)
    put(server, queue, *ids)
    first = worker.claim(3)
    assert [each["intentId"] for each in first] == ids[:3]
    rest = worker.claim(3)
    assert [each["intentId"] for each in rest] == ids[3:]
    assert worker.claim(3, wait_ms=0) == [] == worker.claim(3, wait_ms=50)
    assert worker.settle(*map(done, first + rest)) == [True] * 5
    assert {status(server, id) for id in ids} == {"ACKED"}


def test_a_claim_waits_for_the_first_delivery(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    worker = HttpWorker(server, queue)
    with worker.waiting() as connection:
        asked_for(server, queue, 1)
        put(server, queue, id)
        [delivery] = answered(connection)
    assert worker.settle(done(delivery, result=[1])) == [True]
    assert server.ask("GET", f"/v1/intents/{id}").json["result"] == [1]


def test_two_consumers_share_a_queue(server: ServerProcess, fresh: Fresh):
    queue = fresh()
    one, two = HttpWorker(server, queue, "one"), HttpWorker(server, queue, "two")
    ids = names(fresh, 2)
    with one.waiting() as first, two.waiting() as second:
        asked_for(server, queue, 2)
        put(server, queue, *ids)
        [mine], [theirs] = answered(first), answered(second)
    assert {mine["intentId"], theirs["intentId"]} == set(ids)
    assert two.settle(done(mine), done(theirs)) == [False, True], "each settles its own"
    assert two.extend(mine) == [False] and one.extend(mine) == [True]
    assert one.settle(done(mine)) == [True]


def test_the_limits_of_a_queue_hold_for_claims(server: ServerProcess, fresh: Fresh):
    queue, *ids = names(fresh, 4)
    put(server, queue, *ids)
    worker, lane = HttpWorker(server, queue), f"/v1/admin/lanes/task%3A{queue}"
    assert server.ask("PATCH", lane, {"concurrency": 1}).status == 200
    first = worker.claim(3)
    assert len(first) == 1 and worker.claim(3, wait_ms=50) == []
    assert worker.settle(*map(done, first)) == [True]
    assert server.ask("POST", f"{lane}/pause").status == 200
    assert worker.claim(3, wait_ms=50) == []
    with worker.waiting() as connection:
        asked_for(server, queue, 1)
        assert server.ask("PATCH", lane, {"concurrency": None}).status == 200
        assert server.ask("POST", f"{lane}/resume").status == 200
        assert 1 <= len(answered(connection)) <= 2


def test_keys_take_turns_in_claims(server: ServerProcess, fresh: Fresh):
    queue, *ids = names(fresh, 7)
    put(server, queue, *ids[:3], fairnessKey="a")
    put(server, queue, *ids[3:], fairnessKey="b")
    worker = HttpWorker(server, queue)
    found = [worker.one()["intentId"] in ids[:3] for _ in range(6)]
    assert found[:4].count(True) == 2, "each key has its share"


# Outcomes.


def test_a_failed_delivery_is_retried_until_its_attempts_are_used(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    put(server, queue, id, redelivery={**FIXED, "maxAttempts": 2})
    worker = HttpWorker(server, queue)
    for attempt in (1, 2):
        delivery = worker.one()
        assert (delivery["attempt"], delivery["delivery"]) == (attempt, attempt)
        failed = {**key(delivery), "outcome": "failed", "kind": "Smtp", "message": "no", "log": "a\nb"}
        assert worker.settle(failed) == [True]
    shown = server.ask("GET", f"/v1/intents/{id}").json
    assert shown["status"] == "DEAD_LETTERED"
    assert (shown["lastError"]["kind"], shown["lastError"]["message"]) == ("Smtp", "no")
    assert server.ask("GET", f"/v1/intents/{id}/logs").json["lines"] == ["a", "b"]


def test_a_delay_replaces_that_of_the_policy(server: ServerProcess, fresh: Fresh):
    queue, *ids = names(fresh, 3)
    put(server, queue, *ids)
    worker = HttpWorker(server, queue)
    delayed, after = worker.claim(2)
    counted = worker.settle(
        {**key(delayed), "outcome": "failed", "delayMs": 3_600_000},
        {**key(after), "outcome": "failed", "retryAfterMs": 3_600_000},
    )
    assert counted == [True, True]
    assert worker.claim(2, wait_ms=100) == []
    assert [status(server, id) for id in ids] == ["SCHEDULED", "SCHEDULED"]


def test_other_outcomes(server: ServerProcess, fresh: Fresh):
    queue = fresh()
    rejected, snoozed, returned = ids = names(fresh, 3)
    put(server, queue, *ids)
    worker = HttpWorker(server, queue)
    taken = {each["intentId"]: key(each) for each in worker.claim(3)}
    counted = worker.settle(
        {**taken[rejected], "outcome": "rejected", "message": "never"},
        {**taken[snoozed], "outcome": "snoozed", "delayMs": 1, "reason": "later"},
        {**taken[returned], "outcome": "returned", "message": "stopping"},
    )
    assert counted == [True, True, True]
    assert status(server, rejected) == "DEAD_LETTERED"
    again = {each["intentId"]: each for _ in range(2) for each in worker.claim(1)}
    assert {id: each["attempt"] for id, each in again.items()} == {snoozed: 1, returned: 1}
    assert worker.settle(*map(done, again.values())) == [True, True]


@pytest.mark.parametrize("result", ["x" * 2_000_000], ids=["large"])
def test_a_result_that_is_too_large_makes_a_dead_letter(server: ServerProcess, fresh: Fresh, result: str):
    queue, id = names(fresh, 2)
    put(server, queue, id)
    worker = HttpWorker(server, queue)
    assert worker.settle(done(worker.one(), result=result)) == [True]
    assert "its result has more than" in server.ask("GET", f"/v1/intents/{id}").json["lastError"]["message"]


# Fences.


def test_a_second_outcome_is_stale(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    put(server, queue, id)
    worker = HttpWorker(server, queue)
    delivery = worker.one()
    assert worker.settle(done(delivery), done(delivery)) == [True, False]
    assert worker.settle(done(delivery)) == [False]
    assert worker.settle(done({"intentId": "nobody", "delivery": 1})) == [False]


def test_a_repeated_request_gets_the_first_answer(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    put(server, queue, id)
    worker = HttpWorker(server, queue, headers={"X-Duetime-Request-Id": fresh()})
    delivery = HttpWorker(server, queue).one()
    assert worker.settle(done(delivery)) == worker.settle(done(delivery)) == [True]


def test_an_outcome_of_another_queue_is_stale(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    put(server, queue, id)
    delivery = HttpWorker(server, queue).one()
    assert HttpWorker(server, fresh()).settle(done(delivery)) == [False]
    assert HttpWorker(server, f"streams/{queue}").settle(done(delivery)) == [False]
    assert HttpWorker(server, queue).settle(done(delivery)) == [True]


def test_a_lease_ends_unless_it_is_extended(server: ServerProcess, fresh: Fresh):
    queue, kept, lost = names(fresh, 3)
    worker = HttpWorker(server, queue)
    put(server, queue, kept, leaseMs=10_000)
    held = worker.one()
    put(server, queue, lost, leaseMs=1_000)
    left = worker.one()
    again: list[Any] = []
    for _ in range(20):  # each wait is a part of the lease
        again = worker.claim(1, wait_ms=500)
        assert worker.extend(held) == [True]
        if again:
            break
    assert again[0]["intentId"] == lost and again[0]["delivery"] == 2, "the claims have leases of their own"
    assert worker.extend(held, left, again[0]) == [True, False, True]
    assert worker.settle(done(left), done(again[0]), done(held)) == [False, True, True]


def test_a_claim_has_one_lease(server: ServerProcess, fresh: Fresh):
    queue, *ids = names(fresh, 3)
    put(server, queue, *ids, leaseMs=3_000)
    worker = HttpWorker(server, queue)
    one, two = worker.claim(2)
    for _ in range(5):
        assert worker.claim(1, wait_ms=900) == []
        assert worker.extend(one) == [True]
    assert worker.settle(done(one), done(two)) == [True, True]


def test_a_cancelled_delivery_is_not_held_any_more(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    put(server, queue, id)
    worker = HttpWorker(server, queue)
    delivery = worker.one()
    assert server.ask("POST", f"/v1/intents/{id}/cancel").status == 200
    assert worker.extend(delivery) == [False] and worker.settle(done(delivery)) == [False]


def test_progress_is_reported_by_the_holder(server: ServerProcess, fresh: Fresh):
    queue, id = names(fresh, 2)
    put(server, queue, id)
    delivery = key(HttpWorker(server, queue, "mine").one())
    for consumer, done_ in (("mine", 3), ("theirs", 7)):
        report = {**delivery, "progress": {"done": done_, "total": 10, "note": "x" * 300}}
        assert HttpWorker(server, queue, consumer).ask("extend", deliveries=[report]).status == 200
    shown = server.ask("GET", f"/v1/intents/{id}").json["progress"]
    assert (shown["done"], shown["total"], shown["note"]) == (3, 10, "x" * 200)


# Clients that disappear.


def gone(connection: socket.socket) -> None:
    """Close it with a reset, as a machine that restarts does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("end", [socket.socket.close, gone], ids=["closed", "reset"])
def test_a_claim_whose_client_has_gone_takes_nothing(
    server: ServerProcess, fresh: Fresh, end: Callable[[socket.socket], None]
):
    queue, id = names(fresh, 2)
    worker = HttpWorker(server, queue)
    with worker.waiting() as connection:
        asked_for(server, queue, 1)
        end(connection)
        asked_for(server, queue, 0)
    put(server, queue, id, guarantee="AT_MOST_ONCE")
    delivery = worker.one()
    assert (delivery["delivery"], delivery["attempt"]) == (1, 1)


def test_a_worker_that_dies_after_the_answer_loses_its_deliveries_by_lease(
    server: ServerProcess, fresh: Fresh
):
    queue, id = names(fresh, 2)
    put(server, queue, id, leaseMs=500)
    assert HttpWorker(server, queue, "dead").one()["delivery"] == 1
    again = HttpWorker(server, queue, "alive").one()
    assert (again["delivery"], again["attempt"]) == (2, 2)


# The server stops, dies and starts.


def test_a_waiting_claim_ends_at_shutdown(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        worker = HttpWorker(server, "q")
        with worker.waiting() as connection:
            asked_for(server, "q", 1)
            server.signal(signal.SIGTERM)
            assert answered(connection) == []
        assert server.wait(20) == 0
        assert not [line for line in server.words if "Traceback" in line]


@pytest.mark.parametrize("end", [ServerProcess.stop, ServerProcess.kill], ids=["stopped", "killed"])
def test_a_delivery_is_settled_after_a_restart(tmp_path, end: Callable[[ServerProcess], object]):
    with ServerProcess(tmp_path / "data", engine__drain_ms=600_000) as server:
        put(server, "q", "held", "extended", guarantee="AT_MOST_ONCE", ackLevel="DURABLE")
        worker = HttpWorker(server, "q")
        held, extended = worker.claim(2)
        end(server)  # it does not wait for them: they could not be settled meanwhile
        server.start()
        assert worker.extend(held, extended) == [True, True]
        assert worker.settle(done(held)) == [True]
        assert worker.settle(done(extended), done(held)) == [True, False]
        assert status(server, "held") == status(server, "extended") == "ACKED"


# Streams and entities.


def test_intents_of_a_stream_are_claimed(server: ServerProcess, fresh: Fresh):
    stream, id = names(fresh, 2)
    server.create(intentId=id, stream={"name": stream}, delayMs=0)
    worker = HttpWorker(server, f"streams/{stream}")
    delivery = worker.one()
    assert delivery["stream"] == {"name": stream} and delivery["task"] is None
    assert worker.settle(done(delivery)) == [True]


def test_an_intent_of_a_stream_has_a_time_limit(server: ServerProcess, fresh: Fresh):
    stream, id = names(fresh, 2)
    server.create(intentId=id, stream={"name": stream}, delayMs=0, timeoutMs=200, redelivery=FIXED)
    worker = HttpWorker(server, f"streams/{stream}")
    first = worker.one()
    assert worker.one()["attempt"] == 2
    assert worker.settle(done(first)) == [False]
    assert (
        "gave no outcome within 200 ms" in server.ask("GET", f"/v1/intents/{id}").json["lastError"]["message"]
    )


def test_messages_of_an_entity_come_one_at_a_time(server: ServerProcess, fresh: Fresh):
    kind = f"kind{abs(hash(fresh())) % 10**9}"
    for number in range(3):
        entity = {"type": kind, "id": "7", "message": f"m{number}"}
        server.create(entity=entity, delayMs=0)
    worker = HttpWorker(server, f"entities/{kind}")
    for number in range(3):
        [delivery] = worker.claim(10)
        assert delivery["entity"] == {"type": kind, "id": "7", "message": f"m{number}"}
        assert worker.claim(10, wait_ms=0) == []
        assert worker.settle(done(delivery)) == [True]


# Limits, and bad input.


def test_a_response_is_bounded_by_its_bytes(server: ServerProcess, fresh: Fresh):
    queue, *ids = names(fresh, 31)
    put(server, queue, *ids, payload="x" * 200_000)
    worker = HttpWorker(server, queue)
    seen: dict[str, Any] = {}
    for _ in range(2):
        found = worker.claim(30)
        assert 1 <= len(found) <= 22
        assert worker.settle(*map(done, found)) == [True] * len(found)
        seen |= {each["intentId"]: each["attempt"] for each in found}
    assert len(seen) == 30 and set(seen.values()) == {1}, "what did not fit counts no attempt"


@pytest.mark.parametrize(
    ("verb", "body", "code", "text"),
    [
        ("claim", b"{", 40003, "truncated"),
        ("claim", b"[]", 42208, "object"),
        ("claim", {}, 42208, "consumer"),
        ("claim", {"consumer": ""}, 42208, "$.consumer"),
        ("claim", {"consumer": "x" * 101}, 42208, "$.consumer"),
        ("claim", {"consumer": "a\nb"}, 42208, "printable"),
        ("claim", {"consumer": "a", "max": 0}, 42208, "$.max"),
        ("claim", {"consumer": "a", "max": DELIVERIES_MAX + 1}, 42208, "$.max"),
        ("claim", {"consumer": "a", "max": 1.5}, 42208, "$.max"),
        ("claim", {"consumer": "a", "waitMs": -1}, 42208, "$.waitMs"),
        ("claim", {"consumer": "a", "waitMs": CLAIM_WAIT_MS_MAX + 1}, 42208, "$.waitMs"),
        ("claim", {"consumer": "a", "leaseMs": 5}, 42208, "leaseMs"),
        ("settle", {"consumer": "a"}, 42208, "outcomes"),
        ("settle", {"consumer": "a", "outcomes": []}, 42208, "$.outcomes"),
        ("settle", {"consumer": "a", "outcomes": [{}]}, 42208, "outcome"),
        ("settle", {"consumer": "a", "outcomes": [{"outcome": "won"}]}, 42208, "won"),
        (
            "settle",
            {"consumer": "a", "outcomes": [{"outcome": "done", "intentId": "i", "delivery": 0}]},
            42208,
            "$.outcomes[0].delivery",
        ),
        (
            "settle",
            {"consumer": "a", "outcomes": [{"outcome": "snoozed", "intentId": "i", "delivery": 1}]},
            42208,
            "delayMs",
        ),
        (
            "settle",
            {"consumer": "a", "outcomes": [{"outcome": "done", "intentId": "i", "delivery": 2**64}]},
            42208,
            "delivery",
        ),
        (
            "settle",
            {
                "consumer": "a",
                "outcomes": [{"outcome": "done", "intentId": "i", "delivery": 1}] * (SETTLE_MAX + 1),
            },
            42208,
            "$.outcomes",
        ),
        ("settle", {"consumer": "a", "outcomes": [{"outcome": "won"}]}, 42208, "snoozed or returned"),
        ("extend", {"consumer": "a", "deliveries": []}, 42208, "$.deliveries"),
        ("extend", {"consumer": "a", "deliveries": [{"intentId": "a b", "delivery": 1}]}, 42208, "intentId"),
    ],
)
def test_bad_input_is_refused(server: ServerProcess, verb: str, body: Any, code: int, text: str):
    refusal = problem(server.ask("POST", f"/v1/queues/q/{verb}", body), code)
    assert text in json.dumps(refusal)


def test_a_name_that_is_too_long_is_refused(server: ServerProcess):
    worker = HttpWorker(server, f"queues/{'q' * (NAME_CHARS_MAX + 1)}")
    for verb, fields in (("claim", {}), ("settle", {"outcomes": [done({"intentId": "i", "delivery": 1})]})):
        assert "characters" in worker.refused(verb, 42208, **fields)["message"]


def test_outcomes_of_unknown_intents_are_stale(server: ServerProcess, fresh: Fresh):
    outcomes = [done({"intentId": f"none-{n}", "delivery": 1}) for n in range(SETTLE_MAX)]
    assert HttpWorker(server, fresh()).settle(*outcomes) == [False] * SETTLE_MAX


# Tokens.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deliveries") / "data"
    known = {name: tokens.new(folder, name, name) for name in ("worker", "submit", "admin")}
    known["other"] = tokens.new(folder, "worker", "other")
    known["bound"] = tokens.new(folder, "worker", "bound", queues=("mail",), entity_types=("cart",))
    known["revoked"] = tokens.new(folder, "worker", "revoked")
    with ServerProcess(folder) as server:
        yield server, {name: {"X-Duetime-Token": token} for name, token in known.items()}


def test_a_bound_token_takes_only_from_its_own(guarded):
    server, known = guarded
    for queue in ("mail", "entities/cart"):
        assert HttpWorker(server, queue, headers=known["bound"]).claim(1, 0) == []
    for queue in ("other", "entities/order", "streams/mail"):
        worker = HttpWorker(server, queue, headers=known["bound"])
        delivery = {"intentId": "i", "delivery": 1}
        worker.refused("claim", 40301)
        worker.refused("settle", 40301, outcomes=[done(delivery)])
        worker.refused("extend", 40301, deliveries=[delivery])
    HttpWorker(server, "mail", headers=known["submit"]).refused("claim", 40301)


def test_another_token_settles_nothing(guarded):
    server, known = guarded
    mine, theirs = (HttpWorker(server, "mail", headers=known[name]) for name in ("worker", "other"))
    task = {"task": {"name": "t", "queue": "mail"}, "delayMs": 0}
    assert server.ask("POST", "/v1/intents", task, known["admin"]).status == 201
    delivery = mine.one()
    assert theirs.settle(done(delivery)) == theirs.extend(delivery) == [False]
    assert mine.settle(done(delivery)) == [True]


def test_a_revoked_token_waits_no_longer(guarded):
    server, known = guarded
    worker = HttpWorker(server, "mail", headers=known["revoked"])
    with worker.waiting() as connection:
        tokens.revoke(server.folder, "revoked")
        [answer] = read(connection, 1)
    problem(answer, 40101)


# The client.


def test_the_client_claims_settles_and_extends(server: ServerProcess, fresh: Fresh):
    queue, *ids = names(fresh, 6)
    put(server, queue, *ids, payload={"n": 1})
    with Client(server.url) as client:
        taken = client.claim(queue, consumer="c", max=5, wait_ms=1_000).wait()
        assert [each.intent_id for each in taken] == ids and taken[0].payload == {"n": 1}
        extended = client.extend([taken[0].at(1, 2, "half"), *taken[1:]], queue, consumer="c").wait()
        progress = client.get(ids[0]).wait().progress
        assert progress is not None
        assert (progress.done, progress.total, progress.note) == (1, 2, "half")
        assert all(each.held for each in extended.results)
        done, failed, rejected, snoozed, returned = taken
        outcomes = [
            done.done({"x": 1}, log="line"),
            failed.failed("no", kind="Oops", delay_ms=9_000_000),
            rejected.rejected("never"),
            snoozed.snoozed(9_000_000, "busy"),
            returned.returned("stopping"),
        ]
        settled = client.settle(outcomes, queue, consumer="c").wait()
        assert (settled.counted, settled.stale) == (5, 0)
        assert client.get(ids[0]).wait().result == {"x": 1}
        [again] = client.claim(queue, consumer="c", max=5, wait_ms=5_000).wait()
        assert again.intent_id == ids[4] and again.attempt == 1
        assert client.settle([again.done()], queue, consumer="c").wait().counted == 1
        assert client.claim(stream=queue, consumer="c").wait() == []
        assert client.claim(entity="cart", consumer="c").wait() == []
        with pytest.raises(InvalidField, match="name one of them"):
            client.claim(consumer="c")
