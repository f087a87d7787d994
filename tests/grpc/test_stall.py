"""A server that stood still so long that a client gave its connection up: outcomes count all the same."""

from __future__ import annotations

import asyncio
import signal

from duetime.limits import PULSE_MS, STALL_MS
from duetime.v1 import intents_pb2
from tests.e2e.process import stand_still
from tests.grpc.subscriber import Subscriber, calling, create, done
from tests.http.server import ServerProcess

# The server looks this often, and must find that a look came this much too late.
STILL_S = (PULSE_MS + STALL_MS) / 1000 + 0.2


def test_a_client_comes_back_with_what_it_did(tmp_path):
    async def main(server: ServerProcess) -> None:
        async with calling(server.grpc) as stub:
            await create(stub, ["a"], "s", guarantee=intents_pb2.GUARANTEE_AT_MOST_ONCE)
            async with Subscriber(server.grpc, "s", 1) as first:
                delivery = await first.one()
                name = first.welcome.consumer
                server.signal(signal.SIGSTOP)
            await asyncio.to_thread(stand_still, server.signal, STILL_S)
            async with Subscriber(server.grpc, "s", 1, earlier=[name]) as again:
                results = await again.ack(done(delivery))
                assert results.counted == 1, "it was not taken for lost"
            intent = await stub.Get(intents_pb2.GetRequest(intent_id="a"))
            assert intent.status == intents_pb2.STATUS_ACKED

    with ServerProcess(tmp_path / "data") as server:
        asyncio.run(main(server))
