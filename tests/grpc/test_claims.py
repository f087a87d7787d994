"""Unique and collapse keys over gRPC: the same words, the same rules."""

from __future__ import annotations

import pytest

from duetime.v1 import intents_pb2 as pb
from tests.grpc.subscriber import calling
from tests.grpc.test_calls import code_of, made, new, refused
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous


async def create(stub, **fields):
    return await stub.Create(pb.CreateRequest(intent=new(**fields)))


@asynchronous
async def test_a_unique_key_gives_the_holder(server: ServerProcess):
    async with calling(server.grpc) as stub:
        unique = pb.Unique(key="g-1", until=pb.UNTIL_TIME, for_ms=60_000)
        first = await create(stub, unique=unique)
        assert not first.existing and first.intent.unique == unique
        again = await create(stub, unique=pb.Unique(key="g-1"))
        assert again.existing and again.intent == first.intent
        error = await refused(create(stub, unique=unique, on_duplicate=pb.ON_DUPLICATE_REJECT))
        assert code_of(error) == 40905


@asynchronous
async def test_a_unique_key_without_an_end_is_held_until_the_end(server: ServerProcess):
    async with calling(server.grpc) as stub:
        intent = await made(stub, unique=pb.Unique(key="g-2"))
        assert intent.unique.until == pb.UNTIL_END and not intent.unique.HasField("for_ms")


@asynchronous
async def test_a_collapse_key_takes_the_place(server: ServerProcess):
    async with calling(server.grpc) as stub:
        first = await made(stub, collapse_key="g-3", collapse=pb.COLLAPSE_THROTTLE)
        second = await made(stub, collapse_key="g-3", collapse=pb.COLLAPSE_THROTTLE, delay_ms=9_000_000)
        assert second.execute_at_ms == first.execute_at_ms
        assert (second.collapse_key, second.collapse) == ("g-3", pb.COLLAPSE_THROTTLE)
        old = await stub.Get(pb.GetRequest(intent_id=first.intent_id))
        assert old.status == pb.STATUS_CANCELED
        third = await made(stub, collapse_key="g-3")
        assert third.collapse == pb.COLLAPSE_DEBOUNCE
        assert server.ask("GET", f"/v1/intents/{third.intent_id}").json["collapse"] == "DEBOUNCE"


@pytest.mark.parametrize(
    "fields",
    [
        {"unique": pb.Unique(key="g-4"), "collapse_key": "g-4"},
        {"unique": pb.Unique(key="g-4", until=pb.UNTIL_TIME)},
        {"unique": pb.Unique(key="")},
        {
            "unique": pb.Unique(key="g-4", until=9)  # type: ignore[arg-type]  # a number from the future
        },
        {"collapse_key": "g-4", "collapse": 9},
        {"collapse": pb.COLLAPSE_DEBOUNCE},
    ],
)
def test_invalid_combinations_are_refused(server: ServerProcess, fields):
    @asynchronous
    async def main():
        async with calling(server.grpc) as stub:
            assert code_of(await refused(create(stub, **fields))) == 42208

    main()
