"""What a worker says besides outcomes: how far it is, what was logged, what it can run. Within bounds."""

from __future__ import annotations

import asyncio
import json
import math

import grpc

from duetime.limits import ATTEMPT_LOG_BYTES_MAX, NOTE_CHARS_MAX, PROGRESS_MAX
from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2
from tests.grpc.subscriber import Subscriber, calling, create, done
from tests.http.server import ServerProcess

Word = pb.ProgressReport.Word


def test_only_the_delivery_that_is_out_is_heard(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "far", 1) as one:
            await create(stub, ["far-1"], "far")
            delivery = await one.one()

            async def progress() -> intents_pb2.Progress | None:
                await one.ack()  # an answer comes behind everything that was said before
                found = await stub.Get(intents_pb2.GetRequest(intent_id="far-1"))
                return found.progress if found.HasField("progress") else None

            for wrong in (
                Word(intent_id="far-1", delivery=2, done=1),
                Word(intent_id="other", delivery=1, done=1),
                Word(intent_id="far-1", delivery=1, done=math.nan),
                Word(intent_id="far-1", delivery=1, done=1, total=math.inf),
            ):
                await one.send(progress=pb.ProgressReport(words=[wrong]))
                assert await progress() is None
            word = Word(intent_id="far-1", delivery=1, done=3, total=4, note="x" * 1_000)
            await one.send(progress=pb.ProgressReport(words=[word]))
            seen = await progress()
            assert seen is not None and (seen.done, seen.total, len(seen.note)) == (3, 4, NOTE_CHARS_MAX)
            shown = server.ask("GET", "/v1/intents/far-1").json["progress"]
            assert (shown["done"], shown["total"]) == (3, 4) and shown["at"].endswith("Z")
            await one.ack(done(delivery))
            assert await progress() is None

    asyncio.run(main())


def test_progress_of_another_consumers_delivery_is_ignored(server: ServerProcess):
    async def main():
        async with (
            calling(server.grpc) as stub,
            Subscriber(server.grpc, "mine", 1) as one,
            Subscriber(server.grpc, "theirs", 1) as other,
        ):
            await create(stub, ["mine-1"], "mine")
            await one.one()
            await other.send(progress=pb.ProgressReport(words=[Word(intent_id="mine-1", delivery=1, done=1)]))
            await other.ack()
            found = await stub.Get(intents_pb2.GetRequest(intent_id="mine-1"))
            assert not found.HasField("progress")

    asyncio.run(main())


def test_a_report_that_is_too_long_ends_the_stream(server: ServerProcess):
    async def main():
        async with Subscriber(server.grpc, "long", 1) as one:
            words = [Word(intent_id="x", delivery=1)] * (PROGRESS_MAX + 1)
            await one.send(progress=pb.ProgressReport(words=words))
            assert await one.end() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(main())


def test_of_a_log_the_newest_is_kept(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "log", 1) as one:
            await create(stub, ["log-1"], "log")
            ack = done(await one.one())
            ack.log = "first\n" + "é" * ATTEMPT_LOG_BYTES_MAX + "\nlast"
            await one.ack(ack)
            lines = server.ask("GET", "/v1/intents/log-1/logs").json["lines"]
            assert lines[-1] == "last" and "first" not in lines
            assert len("\n".join(lines).encode()) <= ATTEMPT_LOG_BYTES_MAX

    asyncio.run(main())


def test_messages_to_every_entity_of_a_type_are_taken(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            for number in range(4):
                entity = intents_pb2.Entity(type="cart", id=f"c{number % 2}", message="add")
                new = intents_pb2.NewIntent(intent_id=f"added-{number}", delay_ms=0, entity=entity)
                await stub.Create(intents_pb2.CreateRequest(intent=new))
            async with Subscriber(server.grpc, "cart", 0) as one:
                source = pb.Source(entity="cart")
                await one.send(credits=pb.Credits(credits=[pb.Credit(source=source, credits=4)]))
                first = await one.take(2)
                assert [each.entity.id for each in first] == ["c0", "c1"], "one of each at a time"
                assert await one.silence()
                for number in (0, 1):
                    await one.ack(done(first[number]))
                    assert (await one.one()).intent_id == f"added-{number + 2}"

    asyncio.run(main())


def test_the_functions_a_worker_registers_are_bounded(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            for functions in ([pb.Function(name="")], [pb.Function(name=f"f{n}") for n in range(1_001)]):
                call = stub.Deliveries()
                source = pb.Credit(source=pb.Source(queue="q"))
                hello = pb.Hello(
                    consumer="w", ack_mode=pb.ACK_MODE_MANUAL, credits=[source], functions=functions
                )
                await call.write(pb.ClientMessage(hello=hello))
                assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert json.loads(server.ask("GET", "/v1/admin/functions").body) == {"functions": []}

    asyncio.run(main())
