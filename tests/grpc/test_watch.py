"""WatchIntents: the transitions of the server-sent events, with the same ids."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from duetime.v1 import intents_pb2 as pb
from tests.grpc.subscriber import Subscriber, calling, create, done, trailer
from tests.http.server import ServerProcess

UNKNOWN: Any = 77


async def message(watch) -> Any:
    async with asyncio.timeout(30):
        return await watch.read()


async def transitions(watch, count: int) -> list[pb.Transition]:
    found: list[pb.Transition] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += (await watch.read()).transitions
    return found


def test_the_life_of_an_intent_is_seen_in_order(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "seen", 1) as subscriber:
            watch = stub.WatchIntents(pb.WatchIntentsRequest(intent_id="seen-1"))
            first = await message(watch)
            assert not first.transitions and not first.gap and first.last_event_id
            await create(stub, ["seen-0", "seen-1"], "seen")
            await subscriber.ack(done(await subscriber.one()), more=1)
            await subscriber.ack(done(await subscriber.one()))
            seen = await transitions(watch, 4)
            assert [each.status for each in seen] == [
                pb.STATUS_SCHEDULED, pb.STATUS_DUE, pb.STATUS_DISPATCHING, pb.STATUS_ACKED,
            ]  # fmt: skip
            assert seen[0].previous_status == pb.STATUS_UNSPECIFIED
            assert seen[1].previous_status == pb.STATUS_SCHEDULED
            assert {each.intent_id for each in seen} == {"seen-1"} and seen[0].lane == "stream:seen"
            assert seen[2].delivery == 1 and seen[3].at_ms >= seen[0].at_ms
            watch.cancel()

    asyncio.run(main())


def test_a_watch_resumes_after_an_event(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            watch = stub.WatchIntents(pb.WatchIntentsRequest(queue="resumed"))
            await watch.read()
            task = pb.Task(name="t", queue="resumed")
            for id in ("resumed-1", "resumed-2"):
                new = pb.NewIntent(intent_id=id, delay_ms=3_600_000, task=task)
                await stub.Create(pb.CreateRequest(intent=new))
            seen = await transitions(watch, 2)
            watch.cancel()
            request = pb.WatchIntentsRequest(queue="resumed", last_event_id=seen[0].event_id)
            again = stub.WatchIntents(request)
            assert not (await message(again)).gap
            assert [each.event_id for each in await transitions(again, 1)] == [seen[1].event_id]
            again.cancel()

    asyncio.run(main())


def test_a_listener_that_resumes_too_late_gets_a_gap(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            watch = stub.WatchIntents(pb.WatchIntentsRequest(last_event_id="1.0"))
            assert (await message(watch)).gap
            watch.cancel()

    asyncio.run(main())


def test_statuses_filter(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            statuses = [pb.STATUS_CANCELED]
            watch = stub.WatchIntents(
                pb.WatchIntentsRequest(statuses=statuses, entity_type="cart", entity_id="7")
            )
            await watch.read()
            for id in ("cart-1", "cart-2"):
                entity = pb.Entity(type="cart", id="7" if id == "cart-2" else "8", message="close")
                new = pb.NewIntent(intent_id=id, delay_ms=3_600_000, entity=entity)
                await stub.Create(pb.CreateRequest(intent=new))
                await stub.Cancel(pb.CancelRequest(intent_id=id))
            assert [each.intent_id for each in await transitions(watch, 1)] == ["cart-2"]
            watch.cancel()

    asyncio.run(main())


@pytest.mark.parametrize(
    "request_", [pb.WatchIntentsRequest(last_event_id="x"), pb.WatchIntentsRequest(statuses=[UNKNOWN])]
)
def test_a_wrong_watch_is_refused(server: ServerProcess, request_):
    async def main():
        async with calling(server.grpc) as stub:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub.WatchIntents(request_).read()
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert trailer(error.value)["duetime-error-code"] == "40002"

    asyncio.run(main())
