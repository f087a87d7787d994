"""Claims over HTTP: a request takes deliveries, and later requests settle them or extend their leases.

Every claim is a consumer of its own, so the rules of the kernel hold as for a connection of gRPC: fences,
leases, limits, fairness. A claim has one lease for all its deliveries: extending one of them extends all.
The kernel knows the holder of each delivery, so outcomes also count after a restart of the server.

A client that disappears loses nothing. If its connection breaks before the response is written, its
deliveries are returned at once and count no attempt; later, they come back when their lease ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec.structs import replace

from duetime.api.access.auth import check_lanes
from duetime.api.access.call_slots import Places
from duetime.api.access.quotas import bearer
from duetime.api.access.revocations import Revocations, revoked
from duetime.api.deliveries.consumers import ask, claim_name, count, is_own_claim, leave
from duetime.api.service import Service
from duetime.channels.pull import StreamChannel
from duetime.errors import NotReady
from duetime.limits import (
    BATCH_TURN_ITEMS,
    CLAIM_ARRIVAL_S,
    CLAIM_BYTES_MAX,
    CLAIMS_MAX,
    LEASE_MS,
    SECOND_MS,
)
from duetime.protocol.command import Beat, Demand
from duetime.protocol.effect import Deliver, DeliveryKey
from duetime.protocol.intent import DISPATCHING, Intent
from duetime.protocol.outcome import Settlement
from duetime.protocol.terms import Entity, type_lane
from duetime.protocol.view import Progress

Closed = Callable[[], Awaitable[None]]
"""Waits until the client has gone."""


class Claim:
    """The deliveries of one request."""

    def __init__(self, claims: Claims, name: str, lane: str, token: str) -> None:
        self.name = name
        self.deliveries: list[Deliver] = []
        self.is_answered = False
        self._claims = claims
        self._engine = claims.service.running
        self._lane = lane
        self._token = token
        self._subscriber = claims.channel.join(name, auto=False)
        self._subscriber.sources.add(lane)
        self._over = False
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, most: int, wait_ms: int, closed: Closed) -> bool:
        """Take what is ready, or wait for a first delivery. False: the client has gone."""
        await self._demand(most, standing=False)
        gone = False
        if wait_ms and not self._over and not self._engine.reads.held(self.name):
            await self._demand(most, standing=True)
            gone = await self._wait(wait_ms / 1000, closed)
            await self._demand(0, standing=False)
        await self._arrival()
        self.deliveries, _ = self._subscriber.take(most, CLAIM_BYTES_MAX)
        self._subscriber.drain()  # the rest, if they are too large together
        return not gone

    async def _demand(self, credits: int, *, standing: bool) -> None:
        await ask(self._engine, Demand(self.name, self._lane, credits, standing))

    async def _wait(self, wait_s: float, closed: Closed) -> bool:
        """Wait for a first delivery. Returns whether the client has gone."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        gone = asyncio.ensure_future(closed())
        try:
            while not (len(self._subscriber) or self._over or gone.done()):
                news = asyncio.ensure_future(self._subscriber.change())
                left_s = max(0.0, until_s - loop.time())
                done, _ = await asyncio.wait(
                    {gone, news}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
                )
                news.cancel()
                if not done:
                    break
            return gone.done()
        finally:
            gone.cancel()

    async def _arrival(self) -> None:
        """Wait for the deliveries that the kernel has handed over: those that run at most once wait for the
        disk."""
        subscriber, held = self._subscriber, self._engine.reads.held
        while len(subscriber) < len(held(self.name)) and not subscriber.draining:
            change = asyncio.ensure_future(subscriber.change())
            await asyncio.wait({change}, timeout=CLAIM_ARRIVAL_S)
            change.cancel()

    def stop(self) -> None:
        """Wait no longer."""
        self._over = True
        self._subscriber.wake()

    def answered(self, whole: bool) -> None:
        """The response was written, or not. Then the client never got its deliveries."""
        self.is_answered = True
        if not whole:
            self._subscriber.unwritten(self.deliveries)
            self._subscriber.drain()
        if whole and self._claims.stopping:
            self.close()
        elif not self.close_empty():
            self._arm()

    def settling(self, settlement: Settlement) -> Settlement:
        """An outcome has arrived."""
        return self._subscriber.answered([settlement])[0]

    def seen(self) -> None:
        """A sign of life."""
        self._subscriber.seen_s = asyncio.get_running_loop().time()

    def close_empty(self) -> bool:
        """End the claim, if none of its deliveries is left."""
        held = self._engine.reads.held(self.name)
        if len(self._subscriber) and len(self._subscriber) > len(held):
            self._subscriber.keep({(intent.id, intent.delivery) for intent in held.values()})
        if len(self._subscriber):
            return False
        self.close()
        leave(self._engine, self.name)
        return True

    def close(self) -> None:
        """Forget it. The leases of its deliveries run on."""
        if self._timer is not None:
            self._timer.cancel()
        if self._claims.forget(self.name):
            self._claims.channel.leave(self._subscriber)
            self._claims.places.end(self._token)

    def _arm(self) -> None:
        lease_ms = min((each.terms.lease_ms for each in self.deliveries), default=0)
        after_s = min(max(lease_ms, SECOND_MS), LEASE_MS) / 1000
        self._timer = asyncio.get_running_loop().call_later(after_s, self._look)

    def _look(self) -> None:
        if not self.close_empty():
            self._arm()


class Claims:
    """All claims that wait or hold deliveries."""

    def __init__(self, service: Service, channel: StreamChannel, revocations: Revocations) -> None:
        self.service = service
        self.channel = channel
        self.places = Places(CLAIMS_MAX, "claims", wait_ms=1_000)
        self._revocations = revocations
        self._open: dict[str, Claim] = {}
        self.stopping = False

    async def claim(self, lane: str, consumer: str, most: int, wait_ms: int, closed: Closed) -> Claim:
        """Take deliveries of a lane. The caller calls `answered` of the claim."""
        check_lanes((lane,))
        if self.stopping:
            raise NotReady("The server is stopping.", waitMs=1_000)
        token = bearer.get()
        name = claim_name(consumer, token)
        self.places.check(token)
        claim = Claim(self, name, lane, token)
        self.places.begin(token)
        self._open[name] = claim
        lost: list[None] = []

        def revoke() -> None:
            lost.append(None)
            claim.stop()

        try:
            with self._revocations.watching(revoke):
                present = await claim.take(most, wait_ms, closed)
            if lost:
                raise revoked()
        except BaseException:
            claim.answered(False)
            raise
        if not present:
            claim.answered(False)
            claim.deliveries = []
        return claim

    async def settle(self, lane: str, consumer: str, settlements: list[Settlement]) -> list[bool]:
        """Settle deliveries. Returns for each whether it counted."""
        check_lanes((lane,))
        engine = self.service.running
        names = await self._holders(lane, consumer, ((each.id, each.delivery) for each in settlements))
        own: list[Settlement] = []
        for each, name in zip(settlements, names, strict=True):
            if name:
                settlement, claim = replace(each, consumer=name), self._open.get(name)
                own.append(settlement if claim is None else claim.settling(settlement))
        counted = iter(await count(engine, own)) if own else iter(())
        for name in dict.fromkeys(filter(None, names)):
            claim = self._open.get(name)
            if claim is not None:
                claim.seen()
                claim.close_empty()
            elif not engine.reads.held(name):  # claimed before a restart
                leave(engine, name)
        return [bool(name) and next(counted) for name in names]

    async def extend(
        self, lane: str, consumer: str, held: list[DeliveryKey], reports: Mapping[DeliveryKey, Progress]
    ) -> list[bool]:
        """Renew the leases of deliveries, and report their progress. Returns for each whether the consumer
        still holds it."""
        check_lanes((lane,))
        engine = self.service.running
        names = dict.fromkeys(filter(None, await self._holders(lane, consumer, held)))
        await asyncio.gather(*(ask(engine, Beat(name)) for name in names))
        for name in names:
            if (claim := self._open.get(name)) is not None:
                claim.seen()
            if reports:
                engine.report(name, reports)
        return [bool(name) for name in await self._holders(lane, consumer, held)]

    def stop(self) -> None:
        """The server stops: waiting claims are answered. Held deliveries can be settled after a restart, so
        the shutdown does not wait for them."""
        self.stopping = True
        for claim in list(self._open.values()):
            claim.stop()
            if claim.is_answered:
                claim.close()

    def forget(self, name: str) -> bool:
        return self._open.pop(name, None) is not None

    async def _holders(self, lane: str, consumer: str, keys: Iterable[DeliveryKey]) -> list[str]:
        """For each delivery the claim that holds it; empty if none of this consumer does."""
        intent_of, token = self.service.running.reads.intent, bearer.get()
        names: list[str] = []
        for number, (id, delivery) in enumerate(keys):
            if number % BATCH_TURN_ITEMS == 0 and number:
                await asyncio.sleep(0)  # tidy: let others have their turn
            intent = intent_of(id)
            held = (
                intent is not None
                and intent.status is DISPATCHING
                and intent.delivery == delivery
                and _source(intent) == lane
                and is_own_claim(intent.consumer, consumer, token)
            )
            names.append(intent.consumer if intent is not None and held else "")
        return names


def _source(intent: Intent) -> str:
    """The lane from which its consumer took it."""
    target = intent.terms.target
    return type_lane(target.kind) if isinstance(target, Entity) else intent.terms.lane
