"""A subscriber of a stream over gRPC: takes due intents, ten at a time, and acknowledges each.

Needs a server (`duetime serve`, or `make run` in a clone) at localhost:7929, or at this address:

    python examples/server_stream.py localhost:7929
"""

import asyncio
import json
import sys

import grpc.aio

from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2
from duetime.v1.stub import DuetimeStub

STREAM = "readings"


async def produce(duetime: DuetimeStub, count: int) -> None:
    """Create readings that are due within the next second."""
    news = [
        intents_pb2.NewIntent(
            delay_ms=number * 50,
            stream=intents_pb2.Stream(name=STREAM),
            payload=json.dumps([number]).encode(),
        )
        for number in range(count)
    ]
    await duetime.CreateBatch(intents_pb2.CreateBatchRequest(intents=news))


async def consume(duetime: DuetimeStub, count: int) -> list[int]:
    """Handle `count` deliveries. A credit allows one more delivery; each acknowledgement returns one."""
    source = pb.Source(stream=STREAM)
    call = duetime.Deliveries()
    hello = pb.Hello(consumer="example", ack_mode=pb.ACK_MODE_MANUAL)
    hello.credits.append(pb.Credit(source=source, credits=10))
    await call.write(pb.ClientMessage(hello=hello))
    done: list[int] = []
    async for message in call:
        if message.WhichOneof("message") == "deliveries":
            acks = pb.Acks()
            for delivery in message.deliveries.deliveries:
                done += json.loads(delivery.payload)
                acks.acks.append(
                    pb.Ack(intent_id=delivery.intent_id, delivery=delivery.delivery, done=pb.Done())
                )
            acks.credits.append(pb.Credit(source=source, credits=len(acks.acks)))
            await call.write(pb.ClientMessage(acks=acks))
        elif message.WhichOneof("message") == "ack_results" and len(done) >= count:
            break  # the last answers have arrived
    await call.done_writing()
    return done


async def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "localhost:7929"
    async with grpc.aio.insecure_channel(address) as channel:
        duetime = DuetimeStub(channel)
        await produce(duetime, 20)
        print("handled:", sorted(await consume(duetime, 20)))


if __name__ == "__main__":
    asyncio.run(main())
