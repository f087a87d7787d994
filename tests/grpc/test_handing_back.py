"""What the server takes back when a connection ends, or its client has a new one."""

from __future__ import annotations

import asyncio
import json

from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2
from tests.grpc.subscriber import Subscriber, calling, create, done
from tests.grpc.test_deliveries import FIXED, until
from tests.http.server import ServerProcess


def test_a_delivery_never_written_to_its_connection_costs_no_attempt(server: ServerProcess):
    """The client gave up a connection that the server still has, and says on a new one what it holds."""

    async def main():
        ids = [f"unread-{n}" for n in range(60)]
        payload = json.dumps("x" * 200_000).encode()
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "unread", 60) as first:
            for start in range(0, 60, 20):
                await create(stub, ids[start : start + 20], "unread", payload=payload, redelivery=FIXED)
            await until(stub, "unread-59", intents_pb2.STATUS_DISPATCHING)
            earlier = [first.welcome.consumer]
            async with Subscriber(server.grpc, "unread", 60, earlier=earlier, holding=[]) as again:
                attempts = {each.intent_id: each.attempt for each in await again.take(60)}
                assert attempts["unread-0"] == 2, "it was written, and lost on the way"
                assert attempts["unread-59"] == 1, "it was not even written"

    asyncio.run(main())


def test_the_end_of_an_earlier_connection_takes_nothing_from_its_client(server: ServerProcess):
    """The client noticed before the server that the connection was broken, and goes on over a new one."""

    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "moved", 1) as first:
            await create(stub, ["moved-1"], "moved", guarantee=intents_pb2.GUARANTEE_AT_MOST_ONCE)
            held = await first.one()
            earlier = [first.welcome.consumer]
            async with Subscriber(server.grpc, "moved", 1, earlier=earlier, holding=[held]) as again:
                await again.silence()  # what it said is heard
                await first.leave()
                assert (await again.ack(done(held))).counted == 1

    asyncio.run(main())


def test_a_drained_subscriber_returns_its_deliveries_on_leaving(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            async with Subscriber(server.grpc, "stopped", 1) as first:
                await create(stub, ["stopped-1"], "stopped", redelivery=FIXED)
                await first.one()
                await first.send(drain=pb.Drain())
                assert await first.silence()
            async with Subscriber(server.grpc, "stopped", 1) as second:
                again = await second.one()
                assert (again.delivery, again.attempt) == (2, 1)

    asyncio.run(main())
