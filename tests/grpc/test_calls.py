"""The unary calls say what HTTP says: the same intents, the same rules, the same codes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest

from duetime import errors
from duetime.api.grpc.errors import status_of
from duetime.v1 import intents_pb2 as pb
from duetime.v1.stub import SERVICE
from tests.grpc.subscriber import calling, channel_to, trailer
from tests.http.server import ServerProcess

NOBODY = pb.Stream(name="nobody")
_USUAL: dict[str, Any] = {"delay_ms": 3_600_000, "stream": NOBODY}


def new(**fields: Any) -> pb.NewIntent:
    """An intent that waits for an hour, unless told otherwise."""
    fields = {**_USUAL, **fields}
    if {"callback", "task", "entity"} & fields.keys():
        del fields["stream"]
    if "execute_at_ms" in fields:
        del fields["delay_ms"]
    return pb.NewIntent(**fields)


async def made(stub, **fields: Any) -> Any:
    return (await stub.Create(pb.CreateRequest(intent=new(**fields)))).intent


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as found:
        await call
    return found.value


def code_of(error: grpc.aio.AioRpcError) -> int:
    """The code in the trailer, which must agree with the problem beside it."""
    found = trailer(error)
    problem = json.loads(found["duetime-problem-bin"])
    assert str(problem["errorCode"]) == found["duetime-error-code"] and problem["detail"]
    return int(problem["errorCode"])


def test_an_intent_is_shown_as_over_http(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            intent = await made(
                stub, intent_id="same-1", execute_at_ms=2_000_000_000_123, deadline_ms=2_000_000_060_000,
                expired_action=pb.EXPIRED_ACTION_DEAD_LETTER, precision_tier=pb.PRECISION_TIER_HIGH,
                guarantee=pb.GUARANTEE_AT_MOST_ONCE, ack_level=pb.ACK_LEVEL_DURABLE,
                callback=pb.Callback(
                    url="http://localhost:1/x", method="PUT", headers={"a": "b"}, body=b'{"x": 1}', batch=True
                ),
                payload=b'{"n": [1, 2]}', priority=-300, tags={"k": "v"}, shard_key="s", timeout_ms=5_000,
                fairness_key="tenant-1", fairness_weight=3,
                lease_ms=6_000, idempotency_key="same-key",
                redelivery=pb.Redelivery(max_attempts=3, backoff=pb.BACKOFF_FIXED, multiplier=1.5),
                traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            )  # fmt: skip
            shown = server.ask("GET", "/v1/intents/same-1").json
        assert shown["executeAt"] == "2033-05-18T03:33:20.123Z" and intent.execute_at_ms == 2_000_000_000_123
        assert shown["deadline"] == "2033-05-18T03:34:20.000Z" and intent.deadline_ms == 2_000_000_060_000
        assert shown["expiredAction"] == "DEAD_LETTER" and shown["precisionTier"] == "HIGH"
        assert shown["guarantee"] == "AT_MOST_ONCE" and shown["ackLevel"] == "DURABLE"
        assert shown["callback"]["method"] == "PUT" and shown["callback"]["body"] == {"x": 1}
        assert intent.callback.body == b'{"x": 1}' and intent.callback.batch and shown["callback"]["batch"]
        assert shown["payload"] == json.loads(intent.payload) == {"n": [1, 2]}
        assert shown["priority"] == intent.priority == -300 and shown["tags"] == dict(intent.tags)
        assert shown["redelivery"]["multiplier"] == intent.redelivery.multiplier == 1.5
        assert shown["redelivery"]["backoff"] == "fixed" and intent.redelivery.backoff == pb.BACKOFF_FIXED
        assert (
            (shown["timeoutMs"], shown["leaseMs"]) == (intent.timeout_ms, intent.lease_ms) == (5_000, 6_000)
        )
        assert shown["idempotencyKey"] == intent.idempotency_key and shown["shardKey"] == intent.shard_key
        assert shown["fairnessKey"] == intent.fairness_key == "tenant-1"
        assert shown["fairnessWeight"] == intent.fairness_weight == 3
        assert shown["traceparent"] == intent.traceparent and shown["revision"] == intent.revision
        assert not intent.HasField("due_at_ms") and not intent.HasField("result")

    asyncio.run(main())


def test_every_field_of_the_api_has_its_place():
    """A field that is added over there must be added here."""
    from duetime.wire import intent as wire

    pairs: list[tuple[Any, Any]] = [(wire.NewIntent, pb.NewIntent), (wire.Intent, pb.Intent)]
    pairs += [(wire.RedeliveryIn, pb.Redelivery), (wire.CallbackIn, pb.Callback), (wire.ChosenSlo, pb.Slo)]
    for struct, message in pairs:
        theirs = {field.name.removesuffix("_ms") for field in message.DESCRIPTOR.fields}
        ours = {name.removesuffix("_ms") for name in struct.__struct_fields__}
        assert ours == theirs, f"{struct.__name__} and {message.__name__} differ"


def test_the_life_of_an_intent(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            await made(stub, intent_id="life-1")
            patched = await stub.Patch(
                pb.PatchRequest(
                    intent_id="life-1",
                    expected_revision=1,
                    payload=b'"new"',
                    priority=5,
                    tags=pb.Tags(values={"a": "b"}),
                    deadline_ms=2_000_000_000_000,
                )
            )
            assert patched.payload == b'"new"' and patched.priority == 5 and dict(patched.tags) == {"a": "b"}
            assert patched.deadline_ms == 2_000_000_000_000 and patched.revision > 1
            patched = await stub.Patch(pb.PatchRequest(intent_id="life-1", deadline_ms=0, tags=pb.Tags()))
            assert not patched.HasField("deadline_ms") and not patched.tags and patched.payload == b'"new"'
            fired = await stub.FireNow(pb.FireNowRequest(intent_id="life-1"))
            assert fired.status == pb.STATUS_DUE
            canceled = await stub.Cancel(pb.CancelRequest(intent_id="life-1"))
            assert canceled.status == pb.STATUS_CANCELED and canceled.finished_at_ms
            assert (await stub.Get(pb.GetRequest(intent_id="life-1"))).status == pb.STATUS_CANCELED

    asyncio.run(main())


def test_a_dead_letter_is_revived(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            callback = pb.Callback(url="http://127.0.0.1:1/refused")
            await made(
                stub, intent_id="dead-1", delay_ms=0, callback=callback,
                redelivery=pb.Redelivery(max_attempts=1),
            )  # fmt: skip
            dead = pb.Intent()
            async with asyncio.timeout(20):
                watch = stub.WatchIntents(pb.WatchIntentsRequest(intent_id="dead-1"))
                async for _ in watch:
                    dead = await stub.Get(pb.GetRequest(intent_id="dead-1"))
                    if dead.status == pb.STATUS_DEAD_LETTERED:
                        break
                watch.cancel()
            assert dead.last_error.kind and dead.last_error.at_ms and dead.last_error.delivery == 1
            later = pb.ReviveRequest(intent_id="dead-1", execute_at_ms=2_000_000_000_000, payload=b"1")
            revived = await stub.Revive(later)
            assert revived.status == pb.STATUS_SCHEDULED and revived.attempts == 0
            assert revived.execute_at_ms == 2_000_000_000_000 and revived.payload == b"1"

    asyncio.run(main())


def test_a_batch_answers_each(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            news = [new(intent_id="batch-1"), pb.NewIntent(delay_ms=1), new(intent_id="batch 2")]
            news.append(new(payload=b"{"))
            found = await stub.CreateBatch(pb.CreateBatchRequest(intents=news))
            assert [item.status for item in found.items] == [201, 422, 422, 400]
            assert [item.error.error_code for item in found.items] == [0, 42209, 42208, 40003]
            assert found.items[2].error.message.endswith("at $[2].intentId.")
            assert (found.created, found.existing, found.failed) == (1, 0, 3)
            assert found.items[0].intent.intent_id == "batch-1"

    asyncio.run(main())


def test_a_list_continues_after_its_cursor(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            ids = [f"list-{n}" for n in range(5)]
            for id in ids:
                await made(stub, intent_id=id, tags={"of": "list"})
            request = pb.ListRequest(tags={"of": "list"}, limit=2, statuses=[pb.STATUS_SCHEDULED])
            seen: list[str] = []
            while True:
                page = await stub.List(request)
                seen += [intent.intent_id for intent in page.intents]
                if not page.HasField("next_cursor"):
                    break
                request.cursor = page.next_cursor
            assert seen == ids[::-1]
            due = await stub.List(
                pb.ListRequest(tags={"of": "list"}, by_due_time=True, to_ms=2_000_000_000_000)
            )
            assert [intent.intent_id for intent in due.intents] == ids
            empty = await stub.List(pb.ListRequest(tags={"of": "list"}, tier=pb.PRECISION_TIER_ULTRA))
            assert not empty.intents

    asyncio.run(main())


def test_a_key_gives_the_intent_that_exists(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            first = await stub.Create(pb.CreateRequest(intent=new(idempotency_key="key-1")))
            again = await stub.Create(pb.CreateRequest(intent=new(idempotency_key="key-1")))
            assert again.existing and not first.existing
            assert again.intent.intent_id == first.intent.intent_id
            error = await refused(made(stub, idempotency_key="key-1", payload=b"2"))
            assert error.code() is grpc.StatusCode.ALREADY_EXISTS and code_of(error) == 40903

    asyncio.run(main())


def test_a_request_id_makes_a_write_safe_to_repeat(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            named = (("x-duetime-request-id", "request-1"),)
            request = pb.CreateRequest(intent=new())
            first = await stub.Create(request, metadata=named)
            call = stub.Create(request, metadata=named)
            assert (await call).intent.intent_id == first.intent.intent_id
            assert dict(await call.trailing_metadata())["idempotent-replayed"] == "true"
            error = await refused(stub.Create(pb.CreateRequest(intent=new(payload=b"1")), metadata=named))
            assert code_of(error) == 40903

    asyncio.run(main())


INVALID = grpc.StatusCode.INVALID_ARGUMENT
REFUSALS: list[tuple[pb.NewIntent, int]] = [
    (pb.NewIntent(stream=NOBODY), 42201),
    (pb.NewIntent(stream=NOBODY, delay_ms=1, execute_at_ms=2_000_000_000_000), 42201),
    (new(execute_at_ms=2_000_000_000_000, deadline_ms=1_999_999_999_999), 42205),
    (new(execute_at_ms=1_000_000_000_000), 42206),
    (new(execute_at_ms=-5), 42208),
    (new(execute_at_ms=1 << 62), 42208),
    (new(intent_id=""), 42208),
    (new(priority=1 << 30), 42208),
    (new(expired_action=77), 42208),
    (new(redelivery=pb.Redelivery(multiplier=float("nan"))), 42208),
    (new(tags={"": "x"}), 42208),
    (new(stream=pb.Stream()), 42208),
    (new(ack_level=pb.ACK_LEVEL_REPLICATED), 42208),
    (pb.NewIntent(delay_ms=1), 42209),
    (new(callback=pb.Callback(url="ftp://x")), 42216),
    (new(precision_tier=77), 42210),
    (new(payload=b'1, "intentId": "smuggled"'), 40003),
    (new(payload=b'"\xff"'), 40003),
    (new(callback=pb.Callback(url="http://x", body=b"\xff")), 40003),
    (new(payload=b'"' + b"x" * 300_000 + b'"'), 41301),
]


@pytest.mark.parametrize(("intent", "code"), REFUSALS)
def test_a_refused_call_has_the_error_code_of_http(server: ServerProcess, intent, code):
    async def main():
        async with calling(server.grpc) as stub:
            error = await refused(stub.Create(pb.CreateRequest(intent=intent)))
            assert (error.code(), code_of(error)) == (INVALID, code), error.details()

    asyncio.run(main())


def test_a_forbidden_call_has_its_error_code(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            await made(stub, intent_id="may-1")
            error = await refused(stub.Get(pb.GetRequest(intent_id="may-0")))
            assert (error.code(), code_of(error)) == (grpc.StatusCode.NOT_FOUND, 40401)
            error = await refused(made(stub, intent_id="may-1"))
            assert (error.code(), code_of(error)) == (grpc.StatusCode.ALREADY_EXISTS, 40904)
            error = await refused(stub.Cancel(pb.CancelRequest(intent_id="may-1", expected_revision=99)))
            assert (error.code(), code_of(error)) == (grpc.StatusCode.ABORTED, 40902)
            error = await refused(stub.Cancel(pb.CancelRequest(intent_id="may-1", expected_revision=-1)))
            assert (error.code(), code_of(error)) == (INVALID, 40001)
            error = await refused(stub.Revive(pb.ReviveRequest(intent_id="may-1")))
            assert (error.code(), code_of(error)) == (grpc.StatusCode.FAILED_PRECONDITION, 42207)
            await stub.Cancel(pb.CancelRequest(intent_id="may-1"))
            error = await refused(stub.Cancel(pb.CancelRequest(intent_id="may-1")))
            assert (error.code(), code_of(error)) == (grpc.StatusCode.FAILED_PRECONDITION, 42204)
            error = await refused(stub.Patch(pb.PatchRequest(intent_id="may-1", priority=1)))
            assert (error.code(), code_of(error)) == (grpc.StatusCode.FAILED_PRECONDITION, 42211)
            error = await refused(stub.List(pb.ListRequest(limit=501)))
            assert (error.code(), code_of(error)) == (INVALID, 40002)
            error = await refused(stub.Create(pb.CreateRequest()))
            assert (error.code(), code_of(error)) == (INVALID, 42208)

    asyncio.run(main())


def test_bytes_that_are_no_message_are_refused(server: ServerProcess):
    async def main():
        async with channel_to(server.grpc) as channel:
            get: Any = channel.unary_unary(f"/{SERVICE}/Get")
            error = await refused(get(b"\xff\xff\xff"))
            assert (error.code(), code_of(error)) == (INVALID, 40003)

    asyncio.run(main())


@pytest.mark.parametrize("kind", errors.EVERY, ids=lambda kind: kind.__name__)
def test_every_error_has_a_status(kind):
    """Only what is our own fault is INTERNAL."""
    ours = kind.status == 500
    assert (status_of(kind("x")) is grpc.StatusCode.INTERNAL) == ours
    assert (status_of(kind("x")) is grpc.StatusCode.UNAVAILABLE) == (kind.status == 503)
    retry = status_of(kind("x")) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert retry or not issubclass(kind, errors.Busy)


def test_health_is_that_of_http(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            health = await stub.Health(pb.HealthRequest())
            report = json.loads(health.report)
            assert health.status == report["status"] == server.ask("GET", "/health").json["status"]
            assert health.narrative == report["narrative"] and "vitals" in report

    asyncio.run(main())


def test_groups_and_trees(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            group = await made(stub, intent_id="grpc-g", members=2, after_on=pb.AFTER_ON_END)
            assert (group.status, group.members, group.joined, group.left) == (pb.STATUS_BLOCKED, 2, 0, 2)
            member = await made(stub, intent_id="grpc-g.0", group="grpc-g")
            assert (member.group, member.after_on) == ("grpc-g", pb.AFTER_ON_SUCCESS)
            assert code_of(await refused(made(stub, intent_id="grpc-g.7", group="grpc-g"))) == 42208
            await stub.Cancel(pb.CancelRequest(intent_id="grpc-g", tree=True))
            assert (await stub.Get(pb.GetRequest(intent_id="grpc-g.0"))).status == pb.STATUS_CANCELED

    asyncio.run(main())
