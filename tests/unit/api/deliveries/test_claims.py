"""A claim whose client never got the answer costs nothing; one that waits ends when it must."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duetime.api.access.auth import Gate
from duetime.api.access.revocations import Revocations
from duetime.api.deliveries.claims import Claim, Claims
from duetime.errors import Busy, LogUnavailable, NotReady
from duetime.limits import CLAIMS_MAX
from duetime.protocol.intent import Item, Status
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import AckLevel, Guarantee, Task, Terms, lane_of
from duetime.testing.time import EPOCH_MS
from tests.unit.api.test_session import World
from tests.unit.insight.rig import run

LANE = lane_of(Task("work"))


class Holder:
    """What claims need of a service."""

    def __init__(self, world: World) -> None:
        self.running = world.engine


async def stays() -> None:
    """A client that does not go."""
    await asyncio.Event().wait()


async def goes() -> None:
    """A client that has gone."""


@asynccontextmanager
async def claims() -> AsyncIterator[tuple[World, Claims]]:
    world = World()
    await world.engine.start()
    service: Any = Holder(world)
    made = Claims(service, world.workers, Revocations(Gate(lambda: (), str)))
    try:
        yield world, made
    finally:
        made.stop()
        await world.engine.close(0)


async def submit(world: World, *ids: str, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE) -> None:
    terms = Terms(Task("work"), LANE, guarantee=guarantee)
    items = tuple(Item(id, 0, EPOCH_MS) for id in ids)
    await world.engine.submit((terms,), items, AckLevel.ASYNC)


async def taken(made: Claims, most: int = 10, wait_ms: int = 0, closed: Any = stays) -> Claim:
    return await made.claim(LANE, "w", most, wait_ms, closed)


@pytest.mark.parametrize("guarantee", Guarantee)
def test_an_answer_that_was_not_written_costs_no_attempt(guarantee: Guarantee):
    async def main() -> None:
        async with claims() as (world, made):
            await submit(world, "a", "b", guarantee=guarantee)
            first = await taken(made)
            assert [each.id for each in first.deliveries] == ["a", "b"]
            first.answered(False)
            await world.engine.quiet()
            assert world.engine.reads.held(first.name) == {}
            second = await taken(made)
            assert [(each.id, each.delivery, each.attempt) for each in second.deliveries] == [
                ("a", 2, 1),
                ("b", 2, 1),
            ]
            second.answered(True)

    run(main())


def test_a_client_that_goes_while_it_waits_takes_nothing():
    async def main() -> None:
        async with claims() as (world, made):
            empty = await taken(made, wait_ms=30_000, closed=goes)
            assert empty.deliveries == [] and world.workers.connected() == []
            empty.answered(False)
            await submit(world, "a")
            assert world.status("a") is Status.DUE

    run(main())


def test_a_claim_ends_with_its_last_delivery():
    async def main() -> None:
        async with claims() as (world, made):
            await submit(world, "a", "b")
            claim = await taken(made)
            claim.answered(True)
            assert [each.held for each in world.workers.connected()] == [2]
            outcomes = [Settlement(id, 1, Done()) for id in ("a", "b")]
            assert await made.settle(LANE, "w", outcomes[:1]) == [True]
            assert await made.extend(LANE, "w", [("a", 1), ("b", 1)], {}) == [False, True]
            assert await made.settle(LANE, "w", outcomes) == [False, True]
            assert world.workers.connected() == [] and made.places.under_way == 0

    run(main())


def test_a_full_disk_gives_no_deliveries():
    async def main() -> None:
        async with claims() as (world, made):
            world.log.full = True
            with pytest.raises(LogUnavailable):
                await taken(made)
            assert world.workers.connected() == [] and made.places.under_way == 0
            world.log.full = False

    run(main())


def test_claims_are_limited():
    async def main() -> None:
        async with claims() as (_, made):
            made.places.under_way = CLAIMS_MAX
            with pytest.raises(Busy, match="10000 claims are running"):
                await taken(made)
            made.places.under_way = 0

    run(main())


def test_a_stop_answers_those_that_wait_and_keeps_what_is_held():
    async def main() -> None:
        async with claims() as (world, made):
            await submit(world, "held", "unwritten", "written")
            held, unwritten, written = [await taken(made, 1) for _ in range(3)]
            held.answered(True)
            waiting = asyncio.ensure_future(taken(made, wait_ms=30_000))
            while len(world.workers.connected()) < 4:
                await asyncio.sleep(0)  # tidy: a turn of the loop
            made.stop()
            (await waiting).answered(True)
            written.answered(True)
            unwritten.answered(False)
            assert world.workers.running() == 0, "the shutdown waits for none of them"
            await world.engine.quiet()
            assert world.status("held") is world.status("written") is Status.DISPATCHING
            assert world.status("unwritten") is Status.DUE
            with pytest.raises(NotReady):
                await taken(made)
            outcomes = [Settlement(id, 1, Done()) for id in ("held", "written")]
            assert await made.settle(LANE, "w", outcomes) == [True, True]

    run(main())
