"""Server-sent events of transitions, resumable by id.

The newest events are kept in one ring buffer. Each listener reads it at its own pace, and a slow one delays
nobody. A listener that resumes with an id that is no longer in the buffer gets a `gap` event and continues
with the oldest event. Without listeners for a while, nothing is recorded, and the engine has no cost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from duetime.api.access.revocations import Revocations
from duetime.api.codec.filters import filter_from
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer, Exchange
from duetime.api.service import Service
from duetime.errors import BadQuery
from duetime.limits import EVENTS_BYTES_MAX, EVENTS_COMMENT_S, EVENTS_KEPT, EVENTS_LINGER_S, EVENTS_SENT_BYTES
from duetime.protocol.effect import Change
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Intent, Status
from duetime.protocol.terms import Callback
from duetime.wire.event import EventBody
from duetime.wire.shapes import written
from duetime.wire.views import transition

_GAP = (
    b'event: gap\ndata: {"message":"Events before this one are no longer kept; read the intents again."}\n\n'
)

_ANY_CALLBACK = Callback("")


Place = tuple[int, int]
"""The id of an event: the position on the log after its batch, and its number in the batch."""


class ServerEvent(Struct, frozen=True):
    """An encoded transition and its position."""

    place: Place
    intent: Intent
    status: Status
    text: bytes
    shown: EventBody


class Wanted(Struct, frozen=True):
    """The filter of a listener. The status is that of the event, not the current one of the intent."""

    filter: Filter
    intent_id: str | None = None

    def matches(self, event: ServerEvent) -> bool:
        if self.intent_id is not None and event.intent.id != self.intent_id:
            return False
        statuses = self.filter.statuses
        if statuses and event.status not in statuses:
            return False
        return replace(self.filter, statuses=()).matches(event.intent)


class Events:
    """The ring buffer and its listeners."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ring: deque[ServerEvent] = deque()
        self._bytes = 0
        self._listeners = 0
        self._since: Place = (0, 0)
        """All events after this position are in the buffer."""
        self._stop: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._news: asyncio.Future[None] | None = None
        self._closed = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """A listener starts: record events."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stop is None:
            engine = self._service.running
            self._since = (engine.position, 1 << 62)
            self._stop = engine.observe(self._observe)
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and not self._closed:
                self._timer = asyncio.get_running_loop().call_later(EVENTS_LINGER_S, self._forget)

    def newest(self) -> Place:
        return self._ring[-1].place if self._ring else self._since

    def oldest(self) -> Place:
        """All events after this position are in the buffer."""
        return self._since

    def gap_behind(self, place: Place) -> bool:
        """Whether events after this position may be missing."""
        return place < self._since

    def after(self, place: Place) -> list[ServerEvent]:
        """The events after a position, oldest first."""
        found: list[ServerEvent] = []
        for event in reversed(self._ring):
            if event.place <= place:
                break
            found.append(event)
        found.reverse()
        return found

    def wanted(self, wanted: Wanted, place: Place) -> tuple[list[ServerEvent], Place]:
        """The events after a position that match a filter, and the new position; at most as many bytes as one
        listener may have unread."""
        found: list[ServerEvent] = []
        size = 0
        for event in self.after(place):
            place = event.place
            if wanted.matches(event):
                found.append(event)
                size += len(event.text)
                if size >= EVENTS_SENT_BYTES:
                    break
        return found, place

    async def wait(self, within_s: float) -> bool:
        """Wait for a new event. False after a timeout, or if the server stops."""
        if self._closed:
            return False
        if self._news is None:
            self._news = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                await asyncio.shield(self._news)
        except TimeoutError:
            return False
        return not self._closed

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """The server stops: every stream ends."""
        self._closed = True
        self._forget()
        self.wake()

    def _observe(self, change: Change) -> None:
        engine = self._service.running
        intent = engine.reads.intent(change.id)
        if intent is None:
            return
        position = engine.position
        last = self._ring[-1].place if self._ring else self._since
        place = (position, last[1] + 1 if last[0] == position and last[1] < 1 << 61 else 0)
        shown = EventBody(**transition(change, intent, written))
        text = b"id: %d.%d\nevent: transition\ndata: %b\n\n" % (*place, msgspec.json.encode(shown))
        self.keep(ServerEvent(place, slimmed(intent), change.new, text, shown))
        self.wake()

    def keep(self, event: ServerEvent) -> None:
        """Add an event; drop the oldest ones beyond the limits of number and bytes."""
        ring = self._ring
        ring.append(event)
        self._bytes += _weight(event)
        while len(ring) > EVENTS_KEPT or self._bytes > EVENTS_BYTES_MAX:
            oldest = ring.popleft()
            self._bytes -= _weight(oldest)
            self._since = oldest.place

    def wake(self) -> None:
        """Wake all waiting listeners."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        self._news = None

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stop is not None:
            self._stop()
            self._stop = None
        self._ring.clear()
        self._bytes = 0


def _weight(event: ServerEvent) -> int:
    """The approximate memory of an event. Terms are shared, except for the event's own tags."""
    size = 2 * len(event.text)
    tags = event.intent.terms.tags
    return size if not tags else size + sum(len(name) + len(value) for name, value in tags.items())


def slimmed(intent: Intent) -> Intent:
    """The terms without payloads and bodies, for filters: the buffer must not keep those in memory."""
    terms = intent.terms
    if type(terms.target) is Callback:
        terms = replace(terms, target=_ANY_CALLBACK)
    return Intent(intent.seq, intent.id, terms, b"", intent.status, intent.execute_at_ms, 0, 0, 0)


class EventStream:
    """The route."""

    def __init__(self, events: Events, revocations: Revocations) -> None:
        self._events = events
        self._revocations = revocations

    async def __call__(self, call: Call) -> Answer | None:
        wanted = Wanted(filter_from(call.query, "intentId"), call.query.get("intentId"))
        last = call.header(b"last-event-id")
        over = asyncio.Event()
        exchange = call.exchange
        assert exchange is not None, "a stream needs a connection"

        def end() -> None:
            over.set()
            self._events.wake()

        with self._events.listening(), self._revocations.watching(end):
            place = self._events.newest() if last is None else place_from(last)
            await exchange.start_stream(
                b"text/event-stream; charset=utf-8",
                [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")],
                # Its place from the start: a client that is cut off before the first event misses nothing.
                b"retry: 1000\nid: %d.%d\n\n" % place,
            )
            if call.method == "HEAD":  # there is nothing to wait for
                await exchange.end_stream()
                return None
            gone = asyncio.ensure_future(exchange.closed())
            try:
                await self._send(exchange, wanted, place, lambda: gone.done() or over.is_set())
            finally:
                gone.cancel()
        return None

    async def _send(self, exchange: Exchange, wanted: Wanted, place: Place, over: Callable[[], bool]) -> None:
        events = self._events
        text = b""
        if place > events.newest():  # the id belongs to another log
            text = _GAP
            place = events.newest()
        while not over():
            if events.gap_behind(place):  # too old, or the listener is too slow: events were dropped
                text += _GAP
                place = events.oldest()
            found, place = events.wanted(wanted, place)
            text += b"".join(event.text for event in found)
            if text:
                await exchange.write(text)
                text = b""
            if events.closed:
                break
            if place < events.newest():  # there are more events
                continue
            if not await events.wait(EVENTS_COMMENT_S) and not events.closed:
                text = b": still here\n\n"
        await exchange.end_stream()


def place_from(text: str) -> Place:
    position, _, number = text.partition(".")
    if not (text.isascii() and position.isdigit() and number.isdigit() and len(text) < 64):
        raise BadQuery(f"Last-Event-ID {text[:64]!r} is not an event id.")
    return int(position), int(number)
