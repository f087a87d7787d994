"""A typed client of Duetime's HTTP API, for async and plain programs.

`async with Client(url) as client: await client.get(id)`, or `with Client(url) as client:
client.get(id).wait()`. Errors are those of `duetime.errors`, the same as with an embedded engine.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, Unpack, overload

import msgspec
from msgspec.structs import replace

from duetime.client.app.background import Background
from duetime.client.app.call import Call, check_process
from duetime.client.app.payload import encode
from duetime.client.app.stream import EventStream
from duetime.client.app.times import Moment
from duetime.client.http import deliveries
from duetime.client.http.dead_letters import DeadLetters
from duetime.client.http.groups import ServerGroups
from duetime.client.http.request_types import Changes, LaneChanges, NewIntent, Revival
from duetime.client.http.requests import FilterFields, body, filter_body, path, query, revision, written
from duetime.client.http.schedules import ServerSchedules
from duetime.client.http.sse import Event
from duetime.client.http.transport import Request, Transport
from duetime.errors import BadQuery, Closed, InvalidField
from duetime.json_types import Json
from duetime.limits import CLIENT_RECONNECT_S, PAGE_MAX
from duetime.wire.autoscale import Autoscale
from duetime.wire.bulk import Bulk
from duetime.wire.chronoscope import Chronoscope
from duetime.wire.delivery import (
    ClaimedDeliveries,
    ClaimedDelivery,
    DeliveryOutcome,
    ExtendedDeliveries,
    HeldDelivery,
    SettledDeliveries,
)
from duetime.wire.event import Transition
from duetime.wire.function import FunctionList
from duetime.wire.health import Health
from duetime.wire.history import History, Parent, Why
from duetime.wire.intent import Batch, Intent, Page
from duetime.wire.lane import Lane
from duetime.wire.log import LogSegment, LogSegments
from duetime.wire.predictions import Predictions
from duetime.wire.progress import Logs
from duetime.wire.replay import Life, Past
from duetime.wire.tier import TierSize
from duetime.wire.timeline import Timeline

T = TypeVar("T")


class Client:
    """One server. Without arguments: DUETIME_URL (or http://localhost:7928) and DUETIME_TOKEN.

    `tries`: how often a request is sent if the connection fails or the server asks to retry; writes are safe
    to repeat, because each has a request id. `tls`: for https with your own certificate authority.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tries: int = 5,
        timeout_s: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport = Transport(url, token, tries=tries, timeout_s=timeout_s, tls=tls)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._background: Background | None = None
        self.url = self._transport.url
        self.dead_letters = DeadLetters(self)
        self.schedules = ServerSchedules(self)
        self.groups = ServerGroups(self)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    # Lifecycle.

    async def __aenter__(self) -> Client:
        await self._open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._close()

    def __enter__(self) -> Client:
        background = Background("duetime-client")
        background.start(self._open)
        self._background = background
        return self

    def __exit__(self, *exc: object) -> None:
        if self._background is not None:
            background, self._background = self._background, None
            if self._pid == os.getpid():
                background.stop(self._close())

    async def _open(self) -> None:
        if self._loop is not None:
            raise InvalidField("The client is already open.", hint="Open the client once and share it.")
        await self._transport.open()
        self._loop, self._pid = asyncio.get_running_loop(), os.getpid()

    async def _close(self) -> None:
        self._loop = None
        await self._transport.close()

    # Intents.

    def create(self, **fields: Unpack[NewIntent]) -> Call[Intent]:
        """Create an intent, or return the one with its idempotency key."""
        return self.ask(Request("POST", "/v1/intents", body=body(fields)), Intent)

    def create_many(self, many: Iterable[NewIntent]) -> Call[Batch]:
        """Create many intents together. Returns a result or an error for each, in order."""
        items = encode([written(each) for each in many], "The request")
        return self.ask(Request("POST", "/v1/intents/batch", body=items), Batch)

    def get(self, id: str) -> Call[Intent]:
        """An intent with all fields."""
        return self.ask(Request("GET", path("intents", id)), Intent)

    def logs(self, id: str) -> Call[Logs]:
        """The log lines of the newest attempt that has ended."""
        return self.ask(Request("GET", path("intents", id, "logs")), Logs)

    def functions(self) -> Call[FunctionList]:
        """The functions of the server's workers, with their parameters."""
        return self.ask(Request("GET", "/v1/admin/functions"), FunctionList)

    def list(
        self,
        *,
        order: str = "newest",
        limit: int = 50,
        cursor: str | None = None,
        **filter: Unpack[FilterFields],
    ) -> Call[Page]:
        """A page of intents, newest first, or by due time with `order="due"`."""
        return self.call(self.page("/v1/intents", query(filter, order=order), limit, cursor))

    def every(self, *, order: str = "newest", **filter: Unpack[FilterFields]) -> EventStream[Intent]:
        """All matching intents, page by page: `async for`, or plain `for`."""
        return self.stream(self.pages("/v1/intents", query(filter, order=order)))

    def history(self, id: str) -> Call[History]:
        """All state transitions, with times."""
        return self.ask(Request("GET", path("intents", id, "history")), History)

    def why(self, id: str) -> Call[Why]:
        """Why it has not run yet, or how it ended, as a sentence."""
        return self.ask(Request("GET", path("intents", id, "why")), Why)

    def patch(
        self, id: str, *, expected_revision: int | None = None, **changes: Unpack[Changes]
    ) -> Call[Intent]:
        """Change it while it waits. Omitted fields are unchanged."""
        headers = revision(expected_revision)
        request = Request("PATCH", path("intents", id), body=body(changes), headers=headers)
        return self.ask(request, Intent)

    def cancel(self, id: str, *, tree: bool = False, expected_revision: int | None = None) -> Call[Intent]:
        """Cancel it, even while it runs. `tree`: also its dependents and its group's members."""
        return self._post(path("intents", id, "cancel"), {"tree": True} if tree else {}, expected_revision)

    def cancel_many(
        self, *, limit: int | None = None, cursor: str | None = None, **filter: Unpack[FilterFields]
    ) -> Call[Bulk]:
        """Cancel up to `limit` intents that match the filter and have not ended (default: 1,000).

        If `next_cursor` of the result is not None, more may match: pass it as `cursor`.
        """
        fields = {"filter": filter_body(filter), "limit": limit, "cursor": cursor}
        given = {name: value for name, value in fields.items() if value is not None}
        return self.ask(Request("POST", "/v1/intents/cancel", body=body(given)), Bulk)

    def parents(self, id: str) -> Call[Sequence[Parent]]:
        """The dependencies, or the members of its group, with their results, in order."""
        return self.call(self.groups.parents(id))

    def fire_now(self, id: str, *, expected_revision: int | None = None) -> Call[Intent]:
        """Make it due now."""
        return self._post(path("intents", id, "fire-now"), {}, expected_revision)

    def revive(
        self, id: str, *, expected_revision: int | None = None, **changes: Unpack[Revival]
    ) -> Call[Intent]:
        """Retry a dead letter, with a new set of attempts."""
        return self._post(path("intents", id, "revive"), dict(changes), expected_revision)

    # Deliveries, for workers over HTTP. `duetime worker` uses gRPC.

    def claim(
        self,
        queue: str | None = None,
        *,
        consumer: str,
        stream: str | None = None,
        entity: str | None = None,
        max: int = 1,
        wait_ms: int = 0,
    ) -> Call[Sequence[ClaimedDelivery]]:
        """Take deliveries of a queue, a stream or an entity type. `wait_ms`: wait for the first one."""
        place = deliveries.source(queue, stream, entity)
        return self.call(self._claim(deliveries.claim(place, consumer, max, wait_ms)))

    def settle(
        self,
        outcomes: Iterable[DeliveryOutcome],
        queue: str | None = None,
        *,
        consumer: str,
        stream: str | None = None,
        entity: str | None = None,
    ) -> Call[SettledDeliveries]:
        """Report outcomes of claimed deliveries, such as `delivery.done()`. Returns which counted."""
        place = deliveries.source(queue, stream, entity)
        return self.ask(deliveries.settle(place, consumer, outcomes), SettledDeliveries)

    def extend(
        self,
        held: Iterable[ClaimedDelivery | HeldDelivery],
        queue: str | None = None,
        *,
        consumer: str,
        stream: str | None = None,
        entity: str | None = None,
    ) -> Call[ExtendedDeliveries]:
        """Renew the leases of claimed deliveries; `delivery.at(3, 10)` also reports progress. Returns which
        of them the consumer still holds."""
        place = deliveries.source(queue, stream, entity)
        return self.ask(deliveries.extend(place, consumer, held), ExtendedDeliveries)

    # The server.

    def health(self, *, deep: bool = False) -> Call[Health]:
        """Whether the server is on time. The state DOWN is a normal response, not an error."""
        return self.ask(Request("GET", "/health/deep" if deep else "/health", welcome=(503,)), Health)

    def metrics(self) -> Call[str]:
        """The metrics, as Prometheus text."""
        return self.call(self._metrics())

    def chronoscope(self) -> Call[Chronoscope]:
        """Engine internals: tiers, permits, lateness, log and store."""
        return self.ask(Request("GET", "/v1/admin/chronoscope"), Chronoscope)

    def timeline(
        self, *, since: Moment | None = None, until: Moment | None = None, slots: int | None = None
    ) -> Call[Timeline]:
        """The upcoming intents by time slot, and whether they will be on time."""
        pairs = query({}, since=since, until=until, slots=slots)
        return self.ask(Request("GET", "/v1/admin/timeline", pairs), Timeline)

    def predictions(self) -> Call[Predictions]:
        """The durations of functions, and the gain of ordering by them."""
        return self.ask(Request("GET", "/v1/admin/predictions"), Predictions)

    def autoscale(self, queue: str | None = None, *, target_seconds: int | None = None) -> Call[Autoscale]:
        """The number of workers that each queue, or one queue, needs to finish its backlog within a time."""
        pairs = query({}, queue=queue, target_seconds=target_seconds)
        return self.ask(Request("GET", "/v1/admin/autoscale", pairs), Autoscale)

    def resize(self, tier: str, concurrency: int) -> Call[TierSize]:
        """Change the number of permits of a tier immediately."""
        request = Request("PATCH", path("admin", "tiers", tier), body=body({"concurrency": concurrency}))
        return self.ask(request, TierSize)

    def lanes(self, *, entities: bool = True) -> Call[Sequence[Lane]]:
        """The lanes with intents, consumers or settings. `entities`: include those of single entities."""
        return self.call(self._lanes(entities))

    def set_lane(self, lane: str, **changes: Unpack[LaneChanges]) -> Call[Lane]:
        """Change the limits of a lane, such as `task:default`, immediately. Omitted fields are unchanged."""
        request = Request("PATCH", path("admin", "lanes", lane), body=body(changes))
        return self.ask(request, Lane)

    def pause(self, lane: str) -> Call[None]:
        """Pause deliveries from a lane, such as `task:default`."""
        return self.call(self._do(Request("POST", path("admin", "lanes", lane, "pause"))))

    def resume(self, lane: str) -> Call[None]:
        """Resume deliveries from a lane."""
        return self.call(self._do(Request("POST", path("admin", "lanes", lane, "resume"))))

    def segments(self) -> Call[Sequence[LogSegment]]:
        """The files of the log, oldest first."""
        return self.call(self._segments())

    @overload
    def replay(self, id: str, *, at: Moment | None = None) -> Call[Life]: ...

    @overload
    def replay(self, id: None = None, *, at: Moment | None = None) -> Call[Past]: ...

    def replay(self, id: str | None = None, *, at: Moment | None = None) -> Call[Any]:
        """The history of an intent, or the state of the whole engine, at a point in time."""
        pairs = query({}, intent_id=id, at=at)
        return self.ask(Request("GET", "/v1/admin/replay", pairs), Past if id is None else Life)

    def events(
        self,
        *,
        intent_id: str | None = None,
        after: str | None = None,
        reconnect_s: float = CLIENT_RECONNECT_S,
        **filter: Unpack[FilterFields],
    ) -> EventStream[Transition]:
        """State transitions as they happen, until you stop reading. After a lost connection it resumes.
        `after` resumes after an earlier `event_id`."""
        pairs = query(filter, intent_id=intent_id)
        request = Request("GET", "/v1/events", pairs, accept="text/event-stream")
        return self.stream(self._events(request, reconnect_s, after or ""))

    # Internal.

    def ask(self, request: Request, kind: type[T]) -> Call[T]:
        """Send any request, and decode the response as this type."""
        return self.call(self._ask(request, kind))

    def call(self, coroutine: Coroutine[Any, Any, T]) -> Call[T]:
        return Call(coroutine, self._running_loop)

    def stream(self, generator: AsyncGenerator[T, None]) -> EventStream[T]:
        return EventStream(generator, self._running_loop)

    def read(self, answer: bytes, kind: type[T]) -> T:
        """Decode the body of a response as this type."""
        return self._transport.read(answer, kind)

    def _post(self, where: str, fields: Json, expected: int | None) -> Call[Intent]:
        said = body(fields) if fields else None
        return self.ask(Request("POST", where, body=said, headers=revision(expected)), Intent)

    async def _ask(self, request: Request, kind: type[T]) -> T:
        return self.read(await self._transport.send(request), kind)

    async def _do(self, request: Request) -> None:
        await self._transport.send(request)

    async def _claim(self, request: Request) -> Sequence[ClaimedDelivery]:
        return (await self._ask(request, ClaimedDeliveries)).deliveries

    async def _metrics(self) -> str:
        request = Request("GET", "/metrics", accept="text/plain")
        return (await self._transport.send(request)).decode()

    async def _lanes(self, entities: bool) -> Sequence[Lane]:
        found = lanes_of(self._transport, entities=entities)
        return [msgspec.convert(lane, Lane) async for lane in found]

    def lanes_as_shown(self, *, entities: bool = True) -> AsyncGenerator[Json, None]:
        """All pages of the lanes."""
        return lanes_of(self._transport, entities=entities)

    async def _segments(self) -> Sequence[LogSegment]:
        found: LogSegments = await self._ask(Request("GET", "/v1/admin/log/segments"), LogSegments)
        return found.segments

    async def page(
        self, where: str, pairs: Sequence[tuple[str, str]], limit: int, cursor: str | None
    ) -> Page:
        """One page. A server limits the search of one request, so it is repeated until the page is full."""
        items: list[Intent] = []
        while True:
            asked = [*pairs, *query({}, limit=limit - len(items), cursor=cursor)]
            page: Any = await self._ask(Request("GET", where, asked), Page)
            if not isinstance(page, Page):  # a subclass may return pages undecoded
                return page  # type: ignore[no-any-return]
            items += page.items
            cursor = page.next_cursor
            if not page.partial or cursor is None:
                return Page(items, cursor)

    async def pages(self, where: str, pairs: Sequence[tuple[str, str]]) -> AsyncGenerator[Intent, None]:
        cursor: tuple[tuple[str, str], ...] = ()
        while True:
            request = Request("GET", where, [*pairs, ("limit", str(PAGE_MAX)), *cursor])
            page = self._transport.read(await self._transport.send(request), Page)
            for intent in page.items:
                yield intent
            if page.next_cursor is None:
                return
            cursor = (("cursor", page.next_cursor),)

    async def _events(
        self, request: Request, reconnect_s: float, after: str
    ) -> AsyncGenerator[Transition, None]:
        async with aclosing(self._transport.events(request, reconnect_s, last_id=after)) as events:
            async for event in events:
                found = transition(event)
                if found is not None:
                    yield found

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise Closed(
                "The client is not open.", hint="Use it inside `with client:` or `async with client:`."
            )
        check_process(self._pid)
        return self._loop


async def lanes_of(transport: Transport, *, entities: bool = True) -> AsyncGenerator[Json, None]:
    """The lanes of a server, page by page. An older server has no pages and returns all."""
    where, cursor = "/v1/admin/lanes", None
    while True:
        asked = query({}, cursor=cursor, entities=None if entities else "false")
        try:
            answer = await transport.send(Request("GET", where, asked))
        except BadQuery:
            if cursor is not None:
                raise
            answer = await transport.send(Request("GET", where))
        page = transport.read(answer, Json)
        for lane in page["lanes"]:
            if entities or not lane["name"].startswith("entity:"):
                yield lane
        cursor = page.get("nextCursor")
        if cursor is None:
            return


def transition(event: Event) -> Transition | None:
    """The transition of an event; None for an unknown kind of event."""
    if event.kind == "transition":
        found = msgspec.json.decode(event.data, type=Transition)
        return replace(found, event_id=event.id)
    if event.kind == "gap":
        none: Any = ""
        return Transition(intent_id="", status=none, gap=True, event_id=event.id)
    return None
