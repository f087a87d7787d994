"""The server stops or dies while subscribers are connected: nothing is lost, nothing hangs."""

from __future__ import annotations

import asyncio
import signal
import time

import grpc
import pytest

from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2
from tests.grpc.subscriber import Subscriber, calling, create, done
from tests.http.server import ServerProcess

FIXED = intents_pb2.Redelivery(
    max_attempts=5, backoff=intents_pb2.BACKOFF_FIXED, initial_delay_ms=0, max_delay_ms=0, jitter=False
)


@pytest.fixture
def own(tmp_path) -> ServerProcess:
    return ServerProcess(tmp_path / "data")


def test_a_stop_with_idle_streams_is_soon_and_clean(own):
    async def main():
        with own:
            async with calling(own.grpc) as stub, Subscriber(own.grpc, "idle", 5) as subscriber:
                watch = stub.WatchIntents(intents_pb2.WatchIntentsRequest())
                await watch.read()
                started_s = time.monotonic()
                own.signal(signal.SIGTERM)
                assert (await subscriber.next("going_away")).grace_ms > 0
                assert await subscriber.end() is grpc.StatusCode.OK
                with pytest.raises(grpc.aio.AioRpcError) as ended:
                    await watch.read()
                assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
                assert await asyncio.to_thread(own.wait) == 0
                assert time.monotonic() - started_s < 10

    asyncio.run(main())


def test_an_outcome_sent_during_the_stop_counts(own):
    async def main():
        with own:
            async with calling(own.grpc) as stub, Subscriber(own.grpc, "work", 5) as subscriber:
                await create(stub, ["a", "b"], "work", redelivery=FIXED)
                held = await subscriber.take(2)
                own.signal(signal.SIGTERM)
                await subscriber.next("going_away")
                assert (await subscriber.ack(*map(done, held))).counted == 2
                assert await subscriber.end() is grpc.StatusCode.OK
                assert await asyncio.to_thread(own.wait) == 0
        with own:
            async with calling(own.grpc) as stub, Subscriber(own.grpc, "work", 5) as subscriber:
                assert await subscriber.silence()
                for id in ("a", "b"):
                    intent = await stub.Get(intents_pb2.GetRequest(intent_id=id))
                    assert intent.status == intents_pb2.STATUS_ACKED

    asyncio.run(main())


def test_a_delivery_without_an_outcome_in_time_is_retried(tmp_path):
    async def main():
        own = ServerProcess(tmp_path / "data", engine__drain_ms=3_000)
        with own:
            async with calling(own.grpc) as stub, Subscriber(own.grpc, "work", 5) as subscriber:
                await create(stub, ["a"], "work", redelivery=FIXED)
                await subscriber.one()
                own.signal(signal.SIGTERM)
                assert await subscriber.end() is grpc.StatusCode.OK
                assert await asyncio.to_thread(own.wait) == 0
        with own:
            async with Subscriber(own.grpc, "work", 5) as subscriber:
                assert (await subscriber.one()).delivery == 2

    asyncio.run(main())


def test_a_killed_server_keeps_the_leases_and_a_late_outcome_counts(own):
    async def main():
        with own:
            async with calling(own.grpc) as stub, Subscriber(own.grpc, "work", 5) as subscriber:
                await create(stub, ["kept", "gone"], "work", redelivery=FIXED, lease_ms=4_000)
                held = {each.intent_id: each for each in await subscriber.take(2)}
                own.kill()
        with own:
            async with Subscriber(own.grpc, "other", 5) as stranger:
                assert (await stranger.ack(done(held["kept"]))).counted == 0
            earlier = ["nobody~", subscriber.welcome.consumer]
            async with (
                calling(own.grpc) as stub,
                Subscriber(own.grpc, "work", 5, earlier=earlier) as back,
            ):
                # The same client on a new connection: its number is still the one that is out.
                assert (await back.ack(done(held["kept"]))).counted == 1
                again = await back.one()
                assert (again.intent_id, again.delivery) == ("gone", 2)
                intent = await stub.Get(intents_pb2.GetRequest(intent_id="kept"))
                assert intent.status == intents_pb2.STATUS_ACKED and intent.delivery == 1

    asyncio.run(main())


def test_heartbeats_do_not_keep_a_delivery_that_never_reached_the_client(own):
    """The client beats for its earlier connection; what that one was handed and lost on the way goes on."""

    async def main():
        with own:
            async with calling(own.grpc) as stub, Subscriber(own.grpc, "work", 5) as subscriber:
                await create(stub, ["here", "unseen"], "work", redelivery=FIXED, lease_ms=600_000)
                held = {each.intent_id: each for each in await subscriber.take(2)}
                own.kill()
        with own:
            earlier = [subscriber.welcome.consumer]
            async with Subscriber(own.grpc, "work", 5, earlier=earlier, holding=[held["here"]]) as back:
                await back.send(heartbeat=pb.Heartbeat())
                again = await back.one()  # at once, and not after its lease of ten minutes
                assert (again.intent_id, again.delivery) == ("unseen", 2)
                assert (await back.ack(done(held["here"]))).counted == 1

    asyncio.run(main())
