"""A subscriber for tests: says Hello, takes deliveries, answers them. Run as a program it only holds them."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2
from duetime.v1.stub import DuetimeStub

WAIT_S = 30
_OPTIONS = [
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.use_local_subchannel_pool", 1),  # each test its own connection
]


def channel_to(address: str, root: bytes | None = None) -> grpc.aio.Channel:
    """A connection to `grpc://host:port`."""
    scheme, _, place = address.partition("://")
    if scheme == "grpcs":
        return grpc.aio.secure_channel(place, grpc.ssl_channel_credentials(root), _OPTIONS)
    return grpc.aio.insecure_channel(place, _OPTIONS)


def metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    return () if token is None else (("x-duetime-token", token),)


@asynccontextmanager
async def calling(address: str) -> AsyncIterator[DuetimeStub]:
    async with channel_to(address) as channel:
        yield DuetimeStub(channel)


def credit(stream: str, credits: int, kind: str = "stream") -> pb.Credit:
    source = pb.Source(stream=stream) if kind == "stream" else pb.Source(queue=stream)
    return pb.Credit(source=source, credits=credits)


class Subscriber:
    """One connection of its own."""

    def __init__(
        self,
        address: str,
        stream: str,
        credits: int,
        *,
        auto: bool = False,
        kind: str = "stream",
        name: str = "tester",
        token: str | None = None,
        earlier: Iterable[str] = (),
        holding: Iterable[pb.Delivery] | None = None,
    ) -> None:
        self.stream = stream
        self.kind = kind
        self._channel = channel_to(address)
        self._call = DuetimeStub(self._channel).Deliveries(metadata=metadata(token))
        mode = pb.ACK_MODE_AUTO if auto else pb.ACK_MODE_MANUAL
        self.hello = pb.Hello(
            consumer=name, ack_mode=mode, credits=[credit(stream, credits, kind)], earlier=earlier
        )
        if holding is not None:
            held = [pb.Holding.Held(intent_id=each.intent_id, delivery=each.delivery) for each in holding]
            self.hello.holding.CopyFrom(pb.Holding(held=held))
        self._kept: deque[pb.ServerMessage] = deque()
        self.welcome = pb.Welcome()

    async def __aenter__(self) -> Subscriber:
        await self.send(hello=self.hello)
        self.welcome = await self.next("welcome")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._call.cancel()
        await self._channel.close()

    async def end_writing(self) -> None:
        """End the client's side of the stream."""
        await self._call.done_writing()

    async def cut(self) -> None:
        """Close the connection without a word."""
        await self._channel.close()

    async def send(self, **message: Any) -> None:
        await self._call.write(pb.ClientMessage(**message))

    async def read(self) -> pb.ServerMessage | None:
        """The next message; None at the end."""
        async with asyncio.timeout(WAIT_S):
            found: Any = await self._call.read()
        return None if found is grpc.aio.EOF else found

    async def next(self, kind: str) -> Any:
        """The next message of a kind; the others are kept for later."""
        for message in self._kept:
            if message.WhichOneof("message") == kind:
                self._kept.remove(message)
                return getattr(message, kind)
        while True:
            found = await self.read()
            assert found is not None, f"the stream ended without {kind}"
            if found.WhichOneof("message") == kind:
                return getattr(found, kind)
            self._kept.append(found)

    async def take(self, count: int) -> list[pb.Delivery]:
        """So many deliveries."""
        found: list[pb.Delivery] = []
        while len(found) < count:
            found += (await self.next("deliveries")).deliveries
        assert len(found) == count, f"{len(found)} came instead of {count}"
        return found

    async def one(self) -> pb.Delivery:
        return (await self.take(1))[0]

    async def ack(self, *acks: pb.Ack, more: int = 0) -> pb.AckResults:
        given = [credit(self.stream, more, self.kind)] if more else []
        await self.send(acks=pb.Acks(acks=acks, credits=given, number=7))
        results: pb.AckResults = await self.next("ack_results")
        assert results.number == 7
        return results

    async def give(self, credits: int) -> None:
        await self.send(credits=pb.Credits(credits=[credit(self.stream, credits, self.kind)]))

    async def beat(self) -> None:
        await self.send(heartbeat=pb.Heartbeat())

    async def silence(self) -> bool:
        """Whether nothing is on its way: an answer to an empty Acks comes behind everything else."""
        await self.ack()
        return not any(message.WhichOneof("message") == "deliveries" for message in self._kept)

    async def leave(self) -> grpc.StatusCode:
        """End this side, and wait for the other one."""
        await self._call.done_writing()
        return await self.end()

    async def end(self) -> grpc.StatusCode:
        """Read until the server ends the stream; how it did."""
        async with asyncio.timeout(WAIT_S):
            try:
                while await self._call.read() is not grpc.aio.EOF:
                    pass
            except grpc.aio.AioRpcError as error:
                return error.code()
            return await self._call.code()


def done(delivery: pb.Delivery, result: bytes | None = None) -> pb.Ack:
    outcome = pb.Done() if result is None else pb.Done(result=result)
    return pb.Ack(intent_id=delivery.intent_id, delivery=delivery.delivery, done=outcome)


def failed(delivery: pb.Delivery, **fields: Any) -> pb.Ack:
    return pb.Ack(intent_id=delivery.intent_id, delivery=delivery.delivery, failed=pb.Failed(**fields))


async def create(stub: DuetimeStub, ids: Iterable[str], stream: str, **fields: Any) -> None:
    """Intents for a stream, due now."""
    news = [
        intents_pb2.NewIntent(
            intent_id=id, stream=intents_pb2.Stream(name=stream), **{"delay_ms": 0, **fields}
        )
        for id in ids
    ]
    made = await stub.CreateBatch(intents_pb2.CreateBatchRequest(intents=news))
    assert made.created == len(news), made


def trailer(error: grpc.aio.AioRpcError) -> Mapping[str, Any]:
    return dict(error.trailing_metadata())


async def _hold(address: str, stream: str, credits: int) -> None:
    async with Subscriber(address, stream, credits) as subscriber:
        await subscriber.take(credits)
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_hold(sys.argv[1], sys.argv[2], int(sys.argv[3])))
