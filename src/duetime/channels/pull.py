"""Deliveries for workers and subscribers, which pull them: each delivery names the consumer that asked for
it.

The channel knows connections, not transports: the server of a connection takes batches of deliveries out of
its `Subscriber`, writes them, and reports that. A delivery is *out* from the moment the kernel hands it over
until it has an outcome or is no longer wanted. A delivery that was never written is returned without counting
as an attempt. One that was written and has no outcome when its subscriber leaves is lost, which the kernel
decides, or returned if the subscriber had been told to stop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import ItemsView, Iterable, Iterator
from itertools import islice, takewhile

from msgspec import Struct
from msgspec.structs import replace

from duetime.channels.channel import Settler, Span, Tracer
from duetime.clock import Clock
from duetime.limits import HELD_BACK_MAX, LONG_RUN_MS, STALL_MS
from duetime.protocol.effect import Abort, Deliver, DeliveryKey, Voided
from duetime.protocol.outcome import Done, Expired, Failed, Lost, Outcome, Returned, Settlement, Snoozed
from duetime.protocol.terms import Stream

_NEVER_S = float("inf")
_DONE = Done()
_BACK = Snoozed(0)
_GONE = Lost("its consumer is gone")
_STOPPED = Returned("its worker was stopped before it was done")
# The approximate size of a delivery without its payload.
_DELIVERY_BYTES = 200


class Dropped(Struct, frozen=True):
    """A delivery whose outcome is no longer wanted, and why: cancelled, timeout or lease."""

    id: str
    delivery: int
    reason: str


def _ended(delivery: Deliver, outcome: Outcome, waited_ms: int = -1) -> Settlement:
    """The channel ends a delivery on behalf of its consumer. -1: the consumer never got it."""
    return Settlement(delivery.id, delivery.delivery, outcome, None, delivery.consumer, waited_ms)


class Connected(Struct, frozen=True):
    """Numbers of a connection that takes deliveries."""

    name: str
    sources: frozenset[str]
    held: int
    silent_ms: int
    draining: bool


class _Out(Struct):
    """A delivery without an outcome."""

    delivery: Deliver
    until_s: float
    put_s: float
    written: bool = False
    waited_ms: int = 0
    """How long it waited until it was written."""
    span: Span | None = None

    def ended(self, outcome: Outcome) -> None:
        if self.span is not None:
            self.span.end(outcome)


class Subscriber:
    """One connection that takes deliveries."""

    def __init__(self, channel: StreamChannel, name: str, auto: bool) -> None:
        self.name = name
        self.auto = auto
        """Outcomes are not awaited: a written delivery is done."""
        self.voided: dict[str, int] = {}
        """By lane: credits that the kernel voided because the consumer was silent. They are asked for again
        at its next sign of life. The kernel keeps all other credits."""
        self.sources: set[str] = set()
        """All lanes it ever asked for."""
        self.seen_s = 0.0
        """The time of its last heartbeat, by the event loop's clock."""
        self.draining = False
        self.superseded = False
        """Its client has a newer connection, and continues there with the deliveries it holds."""
        self._channel = channel
        self._out: dict[DeliveryKey, _Out] = {}
        self._queue: deque[Deliver] = deque()
        self._dropped: list[Dropped] = []
        self._news: asyncio.Future[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at_s = _NEVER_S

    # Called by the connection.

    def take(self, items_max: int, bytes_max: int) -> tuple[list[Deliver], list[Dropped]]:
        """What to write now: deliveries in order, and deliveries that the client should drop."""
        queue, out = self._queue, self._out
        taken: list[Deliver] = []
        late: list[Settlement] = []
        size = 0
        now_s = self._channel.loop.time() if queue else 0.0
        while queue and len(taken) < items_max and size < bytes_max:
            delivery = queue.popleft()
            entry = out.get((delivery.id, delivery.delivery))
            if entry is None:
                continue
            if 0 < delivery.deadline_ms <= self._channel.clock.now_ms():
                del out[delivery.id, delivery.delivery]
                expired = Expired("the deadline passed before it was sent")
                entry.ended(expired)
                late.append(_ended(delivery, expired))
                continue
            entry.written = True
            entry.waited_ms = int(1000 * (now_s - entry.put_s))
            size += _DELIVERY_BYTES + len(delivery.payload)
            taken.append(delivery)
        if late:
            self._channel.settle(late)
        dropped, self._dropped = self._dropped, []
        return taken, dropped

    def written(self, deliveries: Iterable[Deliver]) -> None:
        """These deliveries are being sent. Those that need no outcome are done."""
        if not self.auto:
            return
        done: list[Settlement] = []
        for each in deliveries:
            entry = self._out.pop((each.id, each.delivery), None)
            if entry is not None:
                entry.ended(_DONE)
                done.append(_ended(each, _DONE, entry.waited_ms))
        if done:
            self._channel.settle(done)

    def unwritten(self, deliveries: Iterable[Deliver]) -> None:
        """These deliveries could not be sent: they are returned to the queue, and count no attempt."""
        back = [
            _ended(each, _BACK)
            for each in deliveries
            if self._out.pop((each.id, each.delivery), None) is not None
        ]
        if back:
            self._channel.settle(back)

    def answered(self, settlements: list[Settlement]) -> list[Settlement]:
        """Outcomes arrived; returns them with each delivery's waiting time added. The caller settles them."""
        found: list[Settlement] = []
        for each in settlements:
            entry = self._out.pop((each.id, each.delivery), None)
            if entry is not None:
                if entry.waited_ms and each.waited_ms >= 0:
                    each = replace(each, waited_ms=entry.waited_ms + each.waited_ms)
                if entry.span is not None:
                    entry.span.end(each.outcome)
            found.append(each)
        return found

    def keep(self, places: set[DeliveryKey]) -> None:
        """The kernel says that only these are out: the other leases ran out."""
        for place, entry in list(self._out.items()):
            if place not in places:
                self._drop(place, entry, "lease")
        self.wake()

    def drain(self) -> None:
        """Take nothing more: deliveries not yet written are returned."""
        self.draining = True
        self._hand_back()
        self.wake()

    def stopped(self) -> None:
        """Its client was stopped and has disconnected: its unfinished deliveries count no attempt."""
        self._hand_back()
        back: list[Settlement] = []
        for entry in self._out.values():
            entry.ended(_STOPPED)
            back.append(_ended(entry.delivery, _STOPPED, entry.waited_ms))
        self._out.clear()
        if back:
            self._channel.settle(back)

    def supersede(self) -> set[DeliveryKey]:
        """Its client has left this connection: deliveries not yet written are returned to the queue. Gives
        those that were written."""
        self.superseded = True
        self.drain()
        return self.places()

    async def news(self) -> None:
        """Wait until there may be something to take, or something else has changed."""
        if not (self._queue or self._dropped):
            await self.change()

    async def change(self) -> None:
        """Wait until the next change."""
        if self._news is None or self._news.done():  # an earlier waiter was cancelled
            self._news = asyncio.get_running_loop().create_future()
        await self._news

    def wake(self) -> None:
        if self._news is not None:
            if not self._news.done():
                self._news.set_result(None)
            self._news = None

    def places(self) -> set[DeliveryKey]:
        return set(self._out)

    def out(self) -> ItemsView[DeliveryKey, _Out]:
        return self._out.items()

    def __len__(self) -> int:
        """The number of deliveries that are out."""
        return len(self._out)

    # Called by the channel.

    def put(self, delivery: Deliver) -> None:
        if self.draining:
            self._channel.settle([_ended(delivery, _BACK)])
            return
        terms, until_s, now_s = delivery.terms, _NEVER_S, self._channel.loop.time()
        span: Span | None = None
        if self._channel.tracer is not None:
            span = self._channel.tracer(delivery)
            delivery = replace(delivery, traceparent=span.traceparent)
        if type(terms.target) is Stream:  # a worker checks the time limits of its functions itself
            until_s = now_s + terms.timeout_ms / 1000
            if until_s < self._watch_at_s:
                self._arm(until_s)
        self._out[delivery.id, delivery.delivery] = _Out(delivery, until_s, now_s, span=span)
        self._queue.append(delivery)

    def abort(self, place: DeliveryKey) -> None:
        entry = self._out.get(place)
        if entry is not None:
            self._drop(place, entry, "cancelled")
            self.wake()

    def end(self) -> None:
        """The connection is gone."""
        self.draining = True
        self._hand_back()
        for entry in self._out.values():
            entry.ended(_GONE)
        self._out.clear()
        self._dropped.clear()
        if self._watch is not None:
            self._watch.cancel()
        self.wake()

    def _hand_back(self) -> None:
        back: list[Settlement] = []
        for delivery in self._queue:
            entry = self._out.pop((delivery.id, delivery.delivery), None)
            if entry is not None:
                entry.ended(_BACK)
                back.append(_ended(delivery, _BACK))
        self._queue.clear()
        if back:
            self._channel.settle(back)

    def _drop(self, place: DeliveryKey, entry: _Out, reason: str) -> None:
        del self._out[place]
        entry.ended(Failed(reason, f"its outcome is no longer wanted: {reason}"))
        if entry.written:
            self._dropped.append(Dropped(*place, reason))

    def _arm(self, at_s: float) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._channel.loop.call_at(at_s, self._look)
        self._watch_at_s = at_s

    def _look(self) -> None:
        """Check time limits. Time in which the event loop was blocked does not count: an outcome may have
        arrived in the meantime, and is read a little later."""
        now_s, next_s = self._channel.loop.time(), _NEVER_S
        still_s = now_s - self._watch_at_s
        self._watch, self._watch_at_s = None, _NEVER_S
        if still_s >= STALL_MS / 1000:
            for entry in self._out.values():
                entry.until_s += still_s + STALL_MS / 1000
        late: list[Settlement] = []
        for place, entry in list(self._out.items()):
            if entry.until_s <= now_s:
                waited_ms = entry.waited_ms if entry.written else -1
                late.append(_ended(entry.delivery, self._too_late(entry), waited_ms))
                self._drop(place, entry, "timeout")
            elif entry.until_s < next_s:
                next_s = entry.until_s
        if next_s < _NEVER_S:
            self._arm(next_s)
        if late:
            self._channel.settle(late)
            self.wake()

    def _too_late(self, entry: _Out) -> Outcome:
        timeout_ms = entry.delivery.terms.timeout_ms
        if entry.written:
            return Failed("timeout", f"{self.name!r} gave no outcome within {timeout_ms} ms")
        return Failed("timeout", f"{self.name!r} did not read it within {timeout_ms} ms")


class StreamChannel:
    """Carries deliveries to the consumers that asked for them."""

    def __init__(self, clock: Clock, tracer: Tracer | None = None) -> None:
        """`tracer` begins the span of a delivery when it is handed over; it ends with the outcome."""
        self.clock = clock
        self.tracer = tracer
        self._subscribers: dict[str, Subscriber] = {}
        self._touched: set[Subscriber] = set()
        self._closed = False

    def open(self, settle: Settler) -> None:
        self._settle = settle
        self.loop = asyncio.get_running_loop()

    def join(self, name: str, *, auto: bool) -> Subscriber:
        """A new connection. Its name must never have been used: outcomes and leases refer to it."""
        assert name not in self._subscribers, "every connection has its own name"
        subscriber = self._subscribers[name] = Subscriber(self, name, auto)
        subscriber.seen_s = self.loop.time()
        return subscriber

    def connected(self) -> list[Connected]:
        """All current connections."""
        if not self._subscribers:
            return []
        now_s = self.loop.time()
        return [
            Connected(
                each.name,
                frozenset(each.sources),
                len(each),
                round(1000 * (now_s - each.seen_s)),
                each.draining,
            )
            for each in self._subscribers.values()
        ]

    def supersede(self, name: str) -> set[DeliveryKey] | None:
        """The client of a connection has a new one. Deliveries not yet written to the old one are returned to
        the queue; gives those that were written. None: the old connection is gone, so this is unknown."""
        subscriber = self._subscribers.get(name)
        return None if subscriber is None else subscriber.supersede()

    def begun(self) -> Iterator[tuple[str, int]]:
        """Deliveries that have been running for a while: their ids, and how long each waited here. If there
        are many, only some; short ones are seen when they end."""
        before_s = self.loop.time() - LONG_RUN_MS / 1000
        found = (
            (place[0], entry.waited_ms)
            for each in self._subscribers.values()
            for place, entry in takewhile(lambda item: item[1].put_s <= before_s, each.out())
            if entry.written
        )
        return islice(found, HELD_BACK_MAX)

    def leave(self, subscriber: Subscriber) -> None:
        """The connection is gone. The caller also tells the kernel, which marks written deliveries lost."""
        if self._subscribers.pop(subscriber.name, None) is not None:
            subscriber.end()

    def settle(self, settlements: list[Settlement]) -> None:
        if not self._closed:
            self._settle(settlements)

    def deliver(self, delivery: Deliver) -> None:
        if self._closed:
            return
        subscriber = self._subscribers.get(delivery.consumer)
        if subscriber is None:  # it left while this was on its way
            self.settle([_ended(delivery, _BACK)])
            return
        subscriber.put(delivery)
        self._touched.add(subscriber)

    def flush(self) -> None:
        for subscriber in self._touched:
            subscriber.wake()
        self._touched.clear()

    def abort(self, abort: Abort) -> None:
        subscriber = self._subscribers.get(abort.consumer)
        if subscriber is not None:
            subscriber.abort((abort.id, abort.delivery))

    def void(self, voided: Voided) -> None:
        subscriber = self._subscribers.get(voided.consumer)
        if subscriber is not None:
            for lane, credits in voided.credits.items():
                subscriber.voided[lane] = subscriber.voided.get(lane, 0) + credits

    def running(self) -> int:
        return sum(map(len, self._subscribers.values()))

    async def close(self) -> None:
        """Nothing more is settled: the deliveries that are out have leases, which run out."""
        self._closed = True
        for subscriber in list(self._subscribers.values()):
            self.leave(subscriber)
