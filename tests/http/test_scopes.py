"""Tokens bound to queues and entity types; callbacks' headers, which not everybody sees; revoked tokens."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from duetime.api.access import tokens
from duetime.v1 import deliveries_pb2, intents_pb2
from tests.grpc.subscriber import Subscriber, calling, metadata
from tests.grpc.test_port import DENIED, UNAUTHENTICATED, outcome
from tests.http.checks import problem
from tests.http.listener import Listener
from tests.http.server import ServerProcess

MAIL = {"task": {"name": "send", "queue": "mail"}}
CART = {"entity": {"type": "cart", "id": "1", "message": "add"}}
OUTSIDE = (
    {"task": {"name": "send", "queue": "other"}},
    {"entity": {"type": "order", "id": "1", "message": "add"}},
    {"stream": {"name": "s"}},
    {"callback": {"url": "http://localhost:9/"}},
)
SECRET = "Bearer very-secret"
HOOK = {"callback": {"url": "http://localhost:9/", "headers": {"Authorization": SECRET, "X-Api-Key": "k"}}}
LATER = {"delayMs": 3_600_000}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scopes") / "data"
    known = {role: tokens.new(folder, role, role) for role in ("read", "worker", "submit", "admin")}
    for role in ("submit", "worker"):
        known[f"bound-{role}"] = tokens.new(
            folder, role, f"b-{role}", queues=("mail",), entity_types=("cart",)
        )
    with ServerProcess(folder) as server:
        yield server, {name: {"X-Duetime-Token": token} for name, token in known.items()}


def made(server, headers, target):
    answer = server.ask("POST", "/v1/intents", {**LATER, **target}, headers)
    assert answer.status == 201, answer.body
    return answer.json["intentId"]


def test_a_bound_token_submits_only_to_its_own(guarded):
    server, known = guarded
    mine = known["bound-submit"]
    for target in (MAIL, CART):
        assert server.ask("POST", "/v1/intents", {**LATER, **target}, mine).status == 201
    for target in OUTSIDE:
        refusal = problem(server.ask("POST", "/v1/intents", {**LATER, **target}, mine), 40301)
        assert "the queues mail and the entity types cart" in refusal["detail"]
        batch = server.ask("POST", "/v1/intents/batch", [{**LATER, **MAIL}, {**LATER, **target}], mine).json
        assert [item["status"] for item in batch["items"]] == [201, 403]
        schedule = {"everyMs": 60_000, "intent": target}
        problem(server.ask("PUT", "/v1/schedules/mine", schedule, mine), 40301)
        group = {"then": {**LATER, **MAIL}, "members": [{**LATER, **target}]}
        problem(server.ask("POST", "/v1/groups", group, mine), 40301)


def test_a_bound_token_changes_only_its_own(guarded):
    server, known = guarded
    mine, admin = known["bound-submit"], known["admin"]
    own, theirs = made(server, admin, MAIL), made(server, admin, OUTSIDE[0])
    for verb in ("fire-now", "cancel", "revive"):
        problem(server.ask("POST", f"/v1/intents/{theirs}/{verb}", {}, mine), 40301)
        problem(server.ask("POST", f"/v1/intents/nobody/{verb}", {}, mine), 40401)
    problem(server.ask("PATCH", f"/v1/intents/{theirs}", {"priority": 1}, mine), 40301)
    assert server.ask("PATCH", f"/v1/intents/{own}", {"priority": 1}, mine).status == 200
    schedule = {"everyMs": 3_600_000, "intent": OUTSIDE[0]}
    assert server.ask("PUT", "/v1/schedules/theirs", schedule, admin).status == 200
    problem(server.ask("PUT", "/v1/schedules/theirs", {**schedule, "intent": MAIL}, mine), 40301)
    problem(server.ask("DELETE", "/v1/schedules/theirs", None, mine), 40301)
    for verb in ("pause", "resume", "trigger"):
        problem(server.ask("POST", f"/v1/schedules/theirs/{verb}", None, mine), 40301)
    assert server.ask("PUT", "/v1/schedules/own", {**schedule, "intent": MAIL}, mine).status == 200
    assert server.ask("POST", "/v1/schedules/own/trigger", None, mine).status == 201


def test_a_bound_token_changes_nothing_outside_by_way_of_its_own(guarded):
    """A tree that reaches further, a place that another queue's intent has, a group of another queue."""
    server, known = guarded
    mine, admin = known["bound-submit"], known["admin"]

    def status(id):
        return server.ask("GET", f"/v1/intents/{id}", None, admin).json["status"]

    root = made(server, admin, MAIL)
    below = made(server, admin, {**OUTSIDE[0], "after": [root]})
    refusal = problem(server.ask("POST", f"/v1/intents/{root}/cancel", {"tree": True}, mine), 40301)
    assert below in refusal["detail"] and "task:other" in refusal["detail"]
    assert [status(root), status(below)] == ["SCHEDULED", "BLOCKED"]
    assert server.ask("POST", f"/v1/intents/{root}/cancel", {"tree": True}, admin).status == 200

    theirs = made(server, admin, {**OUTSIDE[0], "collapseKey": "theirs"})
    problem(server.ask("POST", "/v1/intents", {**LATER, **MAIL, "collapseKey": "theirs"}, mine), 40301)
    assert status(theirs) == "SCHEDULED"
    first, second = (made(server, mine, {**MAIL, "collapseKey": "own"}) for _ in range(2))
    assert [status(first), status(second)] == ["CANCELED", "SCHEDULED"]

    group = {"then": {**LATER, **OUTSIDE[0]}, "size": 2, "members": []}
    id = server.ask("POST", "/v1/groups", group, admin).json["groupId"]
    more = {"first": 0, "members": [{**LATER, **CART}]}
    answer = server.ask("POST", f"/v1/groups/{id}/members", more, mine)
    assert [each["status"] for each in answer.json["errors"]] == [403]
    own = {"then": {**LATER, **MAIL}, "members": [{**LATER, **CART}]}
    assert server.ask("POST", "/v1/groups", own, mine).status == 201


def test_a_request_id_does_not_return_the_response_of_another_token(guarded):
    server, known = guarded
    mine, other, admin = known["bound-submit"], known["submit"], known["admin"]
    same = {"X-Duetime-Request-Id": "one"}
    first, again, theirs = (
        server.ask("POST", "/v1/intents", {**LATER, **MAIL}, {**who, **same}) for who in (other, other, admin)
    )
    assert first.body == again.body and "idempotent-replayed" in again.headers
    assert theirs.status == 201 and theirs.json["intentId"] != first.json["intentId"]
    assert server.ask("POST", "/v1/intents", {**LATER, **CART}, {**mine, **same}).status == 201
    hook, same = made(server, admin, HOOK), {"X-Duetime-Request-Id": "two"}
    assert server.ask("POST", f"/v1/intents/{hook}/cancel", None, {**admin, **same}).status == 200
    problem(server.ask("POST", f"/v1/intents/{hook}/cancel", None, {**mine, **same}), 40301)

    async def cancel(token: str) -> Any:
        cancel = intents_pb2.CancelRequest(intent_id=hook)
        async with calling(server.grpc) as stub:
            sent = (*metadata(token), ("x-duetime-request-id", "three"))
            return await outcome(stub.Cancel(cancel, metadata=sent))

    async def main() -> None:
        nonlocal hook
        hook = made(server, admin, HOOK)
        assert await cancel(admin["X-Duetime-Token"]) == (grpc.StatusCode.OK, None)
        assert await cancel(admin["X-Duetime-Token"]) == (grpc.StatusCode.OK, None)
        assert await cancel(mine["X-Duetime-Token"]) == (DENIED, "40301")

    asyncio.run(main())


def test_a_bound_worker_takes_only_from_its_own(guarded):
    server, known = guarded
    token = known["bound-worker"]["X-Duetime-Token"]

    async def joined(name: str, kind: str, **more: Any):
        subscriber = Subscriber(server.grpc, name, 1, kind=kind, token=token)
        subscriber.hello.MergeFrom(deliveries_pb2.Hello(**more))
        try:
            return await outcome(subscriber.__aenter__())
        finally:
            await subscriber.__aexit__()

    async def main() -> None:
        assert await joined("mail", "queue") == (grpc.StatusCode.OK, None)
        assert await joined("other", "queue") == (DENIED, "40301")
        assert await joined("mail", "stream") == (DENIED, "40301")
        foreign = deliveries_pb2.Function(name="send", queue="other")
        assert await joined("mail", "queue", functions=[foreign]) == (DENIED, "40301")
        async with Subscriber(server.grpc, "mail", 1, kind="queue", token=token) as subscriber:
            subscriber.stream = "other"
            await subscriber.give(1)
            assert await subscriber.end() is DENIED

    asyncio.run(main())


@pytest.mark.parametrize("who", ["read", "worker", "submit", "bound-submit", "admin"])
def test_callback_header_values_are_shown_to_submit_tokens_only(guarded, who):
    server, known = guarded
    id = made(server, known["submit"], {**HOOK, "tags": {"who": who}})
    schedule = {"cron": "0 0 1 1 *", "intent": HOOK}
    assert server.ask("PUT", f"/v1/schedules/hook-{who}", schedule, known["admin"]).status == 200
    sees = who in ("submit", "admin")

    def look(path: str) -> str:
        answer = server.ask("GET", path, None, known[who])
        assert answer.status == 200, path
        return str(answer.body, "utf-8")

    for path in (
        f"/v1/intents/{id}", f"/v1/intents?tag.who={who}", f"/v1/schedules/hook-{who}", "/v1/schedules",
        f"/v1/admin/replay?intentId={id}",
    ):  # fmt: skip
        assert (SECRET in look(path)) is sees, path
        assert "Authorization" in look(path)
    for path in (f"/v1/intents/{id}/history", f"/v1/intents/{id}/why"):
        assert SECRET not in look(path)

    async def main() -> None:
        token = metadata(known[who]["X-Duetime-Token"])
        async with calling(server.grpc) as stub:
            intent = await stub.Get(intents_pb2.GetRequest(intent_id=id), metadata=token)
            assert intent.callback.headers["Authorization"] == (SECRET if sees else "***")
            page = await stub.List(intents_pb2.ListRequest(), metadata=token)
            assert (SECRET in str(page)) is sees

    asyncio.run(main())


def test_the_headers_of_a_dead_letter_are_hidden_too(guarded):
    server, known = guarded
    wrong = {"callback": {**HOOK["callback"], "url": "http://localhost:1/"}}
    body = {"delayMs": 0, **wrong, "redelivery": {"maxAttempts": 1}, "tags": {"dead": "yes"}}
    with Listener(server, "?status=DEAD_LETTERED", known["admin"]) as listener:
        id = server.ask("POST", "/v1/intents", body, known["submit"]).json["intentId"]
        listener.reached(id, "DEAD_LETTERED")
    for who, sees in (("read", False), ("admin", True)):
        answer = server.ask("GET", "/v1/admin/dead-letters?tag.dead=yes", None, known[who])
        assert (SECRET.encode() in answer.body) is sees and id.encode() in answer.body


def test_revocation_ends_what_is_open(tmp_path):
    folder = tmp_path / "data"
    admin = tokens.new(folder, "admin", "admin")
    doomed = {role: tokens.new(folder, role, f"doomed-{role}") for role in ("read", "worker")}
    spared = tokens.new(folder, "worker", "spared")

    async def main(server: ServerProcess) -> None:
        events = Listener(server, "", {"X-Duetime-Token": doomed["read"]})
        async with calling(server.grpc) as stub:
            watch = stub.WatchIntents(intents_pb2.WatchIntentsRequest(), metadata=metadata(doomed["read"]))
            await watch.read()
            worker = Subscriber(server.grpc, "s", 1, token=doomed["worker"])
            other = Subscriber(server.grpc, "s", 1, token=spared)
            async with worker:
                new = intents_pb2.NewIntent(
                    intent_id="held", stream=intents_pb2.Stream(name="s"), delay_ms=0, lease_ms=600_000
                )
                await stub.Create(intents_pb2.CreateRequest(intent=new), metadata=metadata(admin))
                assert (await worker.one()).intent_id == "held"
                async with other:
                    for role in doomed:
                        tokens.revoke(folder, f"doomed-{role}")
                    assert await worker.end() is UNAUTHENTICATED
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        while await watch.read() is not grpc.aio.EOF:
                            pass
                    assert error.value.code() is UNAUTHENTICATED
                    again = await other.one()
                    assert (again.intent_id, again.delivery) == ("held", 2)
        assert await asyncio.to_thread(events.over.wait, 30)
        events.close()

    with ServerProcess(folder) as server:
        asyncio.run(main(server))


def test_the_first_token_closes_open_access(tmp_path):
    async def main(server: ServerProcess) -> None:
        async with Subscriber(server.grpc, "s", 1) as worker:
            tokens.new(server.folder, "admin", "first")
            assert await worker.end() is UNAUTHENTICATED

    with ServerProcess(tmp_path / "data") as server:
        asyncio.run(main(server))


def test_a_broken_token_file_is_an_anomaly_and_known_tokens_still_work(tmp_path):
    folder = tmp_path / "data"
    admin = {"X-Duetime-Token": tokens.new(folder, "admin", "admin")}
    with ServerProcess(folder) as server:
        (folder / tokens.FILE_NAME).write_bytes(b"[{")
        assert server.ask("GET", "/v1/intents", None, admin).status == 200
        problem(server.ask("GET", "/v1/intents"), 40101)
        health = server.ask("GET", "/health").json
        assert [each["code"] for each in health["anomalies"]] == ["TOKENS_UNREADABLE"]
        assert health["status"] == "DEGRADED"
