"""The backend of `App("http://...")`: the same operations on a server.

Functions of such an app do not run in this process: the server delivers their intents to workers of the
queue. They are registered so that `schedule` knows their names and signatures.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from duetime.client.app.times import moment_ms
from duetime.client.http.client import lanes_of, transition
from duetime.client.http.requests import filter_body, path, query, revision
from duetime.client.http.transport import Request, Transport
from duetime.client.remote import translate
from duetime.client.remote.schedules import RemoteSchedules
from duetime.client.remote.submitter import Submits
from duetime.client.remote.waiter import Ends
from duetime.errors import DuetimeError, InvalidField, NoSuchIntent, Unreachable
from duetime.json_types import Json
from duetime.limits import APP_RETRY_S, APP_RETRY_S_MAX, APP_START_S, PAGE_MAX
from duetime.protocol.command import Cancel, Command, FireNow, Patch, Pause, Resize, Resume, Revive, SetLane
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Item
from duetime.protocol.terms import AckLevel, Terms, Tier
from duetime.protocol.view import LaneView, Overview, TierView
from duetime.refusals import Submitted
from duetime.wire.bulk import Bulk, Verb
from duetime.wire.chronoscope import Chronoscope
from duetime.wire.event import Transition
from duetime.wire.history import Entry, History, Parent, Parents, Why
from duetime.wire.intent import Intent, Page, Status
from duetime.wire.lane import Lane
from duetime.wire.progress import Logs
from duetime.wire.views import Ended

# Observers reconnect while the app runs.
_FOREVER_S = float("inf")
_logger = logging.getLogger("duetime")


T = TypeVar("T")


class _Result(Struct):
    """The undecoded result of an intent."""

    result: Raw


class RemoteBackend(RemoteSchedules):
    """One server, with the types of the protocol."""

    def __init__(self, url: str, token: str | None, now_ms: Callable[[], int]) -> None:
        self._transport = Transport(url, token)
        self._clock = now_ms
        self._asked_ms = 0
        self._ends = Ends(self._transport, self._ended)
        self._submits = Submits(self._transport)
        self._observers: dict[tuple[str, ...], list[Callable[[Transition], None]]] = {}
        """By the states that they observe."""
        self._watches: dict[tuple[str, ...], asyncio.Task[None]] = {}
        """For each of these, a stream of events."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waits: asyncio.Task[None] | None = None
        """Waits for a server that was down at the start."""
        self._is_up = False

    async def start(self) -> None:
        await self._transport.open()
        self._loop = asyncio.get_running_loop()

    async def reach(self, then: Callable[[], Awaitable[None]]) -> None:
        """Send one request, so that a wrong token is reported at the start. If the server is down, go on
        trying in the background, so that a program can start before its server."""
        try:
            await self._reach(then)
        except DuetimeError as error:
            if not error.retryable:
                raise
            said = "The app waits for the server: %s Calls raise Unreachable until it is up."
            _logger.warning(said, error.message)
            self._waits = asyncio.create_task(self._reach_later(then))

    async def _reach(self, then: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(APP_START_S):
                await self._transport.send(Request("GET", "/v1/intents", [("limit", "1")]), tries=1)
        except TimeoutError:
            raise Unreachable(f"{self._transport.url} cannot be reached: no answer in time.") from None
        await then()
        self._is_up = True
        self._watch_if_wanted()

    async def _reach_later(self, then: Callable[[], Awaitable[None]]) -> None:
        url, wait_s = self._transport.url, APP_RETRY_S
        while not self._is_up:
            await asyncio.sleep(wait_s * random.uniform(0.8, 1.2))
            wait_s = min(2 * wait_s, APP_RETRY_S_MAX)
            try:
                await self._reach(then)
                _logger.info("The server %s is up; the app continues.", url)
            except Exception as error:
                if not isinstance(error, DuetimeError) or not error.retryable:
                    _logger.error("The app is not registered at %s: %s", url, error, exc_info=error)
                    return

    async def close(self, drain_ms: int | None = None) -> None:
        if self._waits is not None:
            self._waits.cancel()
            await asyncio.gather(self._waits, return_exceptions=True)
        await self._ends.close()
        for watch in self._watches.values():
            watch.cancel()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)
        self._watches.clear()
        await self._transport.close()

    async def quiet(self) -> None:
        """No functions run here."""

    def now_ms(self) -> int:
        """The time of the call. Delays are relative to it until they are sent, in the same step."""
        self._asked_ms = self._clock()
        return self._asked_ms

    # New intents.

    async def submit_one(self, terms: Terms, item: Item, ack: AckLevel) -> Submitted:
        return await self._submits.one(terms, item, self._asked_ms)

    async def submit(self, terms: tuple[Terms, ...], items: Iterable[Item], ack: AckLevel) -> list[Submitted]:
        return await self._submits.many(terms, items, self._asked_ms)

    async def send_bodies(self, bodies: Sequence[bytes]) -> list[DuetimeError | None]:
        """Submit encoded intents, each with a key. Returns the error of each, or None."""
        return await self._submits.bodies(bodies)

    # Changes.

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any:
        fields: Json | None = None
        method, expected = "POST", getattr(command, "revision", 0)
        match command:
            case Cancel(id):
                where, fields = path("intents", id, "cancel"), {"tree": True} if command.tree else None
            case FireNow(id):
                where = path("intents", id, "fire-now")
            case Revive(id):
                where, fields = path("intents", id, "revive"), translate.revive_fields(command)
            case Patch(id):
                method, where = "PATCH", path("intents", id)
                fields = translate.patch_fields(command)
            case Pause(lane):
                where = path("admin", "lanes", lane, "pause")
            case Resume(lane):
                where = path("admin", "lanes", lane, "resume")
            case SetLane(lane, settings):
                method, where = "PATCH", path("admin", "lanes", lane)
                fields = translate.lane_fields(settings)
            case Resize(tier, permits):
                method, where = "PATCH", path("admin", "tiers", Tier(tier).name)
                fields = {"concurrency": permits}
            case _:
                raise InvalidField(f"{type(command).__name__} is not available on a server.")
        body = msgspec.json.encode(fields) if fields else None
        headers = revision(expected or None)
        answer = await self._transport.send(Request(method, where, body=body, headers=headers))
        if isinstance(command, Cancel | FireNow | Revive | Patch):
            return self._transport.read(answer, Intent)
        return None

    # Reads.

    async def get(self, id: str) -> Intent | None:
        return await self._found(Intent, path("intents", id))

    async def why(self, id: str) -> Why | None:
        return await self._found(Why, path("intents", id, "why"))

    async def history(self, id: str) -> list[Entry] | None:
        found = await self._found(History, path("intents", id, "history"))
        return None if found is None else found.entries

    async def logs(self, id: str) -> list[str] | None:
        found = await self._found(Logs, path("intents", id, "logs"))
        return None if found is None else found.lines

    async def parents(self, id: str, first: int, limit: int) -> list[Parent] | None:
        pairs = [("cursor", str(first)), ("limit", str(min(limit, PAGE_MAX)))]
        found = await self._found(Parents, path("intents", id, "parents"), pairs)
        return None if found is None else found.items

    async def _found(self, kind: type[T], where: str, pairs: Sequence[tuple[str, str]] = ()) -> T | None:
        try:
            answer = await self._transport.send(Request("GET", where, pairs))
        except NoSuchIntent:
            return None
        return self._transport.read(answer, kind)

    async def page(self, filter: Filter, before: str | None, limit: int) -> list[Intent]:
        fields = translate.filter_fields(filter)
        found: list[Intent] = []
        cursor: str | None = None
        while len(found) < limit:
            place = {"before": before} if cursor is None else {"cursor": cursor}
            pairs = query(fields, limit=min(limit - len(found), PAGE_MAX), **place)
            answer = await self._transport.send(Request("GET", "/v1/intents", pairs))
            page = self._transport.read(answer, Page)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def many(self, verb: Verb, filter: Filter, cursor: str | None, limit: int) -> Bulk:
        where = "/v1/intents/cancel" if verb == "cancel" else f"/v1/admin/dead-letters/{verb}"
        fields: Json = {"filter": filter_body(translate.filter_fields(filter)), "limit": limit}
        if cursor is not None:
            fields["cursor"] = cursor
        answer = await self._transport.send(Request("POST", where, body=msgspec.json.encode(fields)))
        return self._transport.read(answer, Bulk)

    async def overview(self) -> Overview:
        answer = await self._transport.send(Request("GET", "/v1/admin/chronoscope"))
        return overview_of(self._transport.read(answer, Chronoscope))

    async def metrics(self) -> dict[str, Any]:
        """The server's metrics, by name."""
        answer = await self._transport.send(Request("GET", "/metrics"))
        found: dict[str, Any] = msgspec.json.decode(answer)
        return found

    async def lanes(self) -> list[LaneView]:
        found = [msgspec.convert(each, Lane) async for each in lanes_of(self._transport)]
        return [
            LaneView(
                n.name, n.name.startswith("entity:"), n.pushed, n.paused, n.pending, n.ready, n.running,
                n.consumers,
            )
            for n in found
        ]  # fmt: skip

    async def wait(self, id: str) -> Ended:
        return await self._ends.wait(id)

    async def _ended(self, id: str) -> Ended | None:
        """The intent, if it has ended."""
        answer = await self._transport.send(Request("GET", path("intents", id)))
        intent = self._transport.read(answer, Intent)
        if not intent.status.final:
            return None
        result = bytes(msgspec.json.decode(answer, type=_Result).result)
        return Ended(intent.status, None if result == b"null" else result, intent.result_gone, lambda: intent)

    # Observers.

    def observe(
        self, observer: Callable[[Transition], None], statuses: Collection[Status] = ()
    ) -> Callable[[], None]:
        """Call `observer` with every transition to these states (none: to any) that the server reports."""
        observers = self._observers.setdefault(tuple(status.value for status in statuses), [])
        observers.append(observer)
        if self._loop is not None:  # the caller may be in another thread
            self._loop.call_soon_threadsafe(self._watch_if_wanted)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                observers.remove(observer)

        return stop

    def _watch_if_wanted(self) -> None:
        if not self._transport.is_open or not self._is_up:
            return
        for statuses, observers in self._observers.items():
            if observers and statuses not in self._watches:
                watch = asyncio.get_running_loop().create_task(self._watch_events(statuses, observers))
                self._watches[statuses] = watch

    async def _watch_events(
        self, statuses: tuple[str, ...], observers: list[Callable[[Transition], None]]
    ) -> None:
        pairs = query({"status": statuses or None})
        request = Request("GET", "/v1/events", pairs, accept="text/event-stream")
        try:
            async with contextlib.aclosing(self._transport.events(request, _FOREVER_S)) as events:
                async for event in events:
                    found = transition(event)
                    if found is not None and found.gap:
                        _logger.warning("The server no longer has some transitions: observers miss them.")
                    elif found is not None:
                        _tell(observers, found)
        except DuetimeError as error:
            _logger.error("Observers receive no more transitions: %s", error)


def _tell(observers: list[Callable[[Transition], None]], change: Transition) -> None:
    for observer in tuple(observers):
        try:
            observer(change)
        except (Exception, SystemExit):
            _logger.exception("An observer failed on %s.", change.intent_id)


def overview_of(shown: Chronoscope) -> Overview:
    """The chronoscope of a server as an App's overview. Figures that a server does not send are 0."""
    return Overview(
        at_ms=moment_ms(shown.at),
        records=0,
        epoch=shown.epoch,
        counts=shown.counts,
        tiers=tuple(
            TierView(
                tier.tier,
                tier.permits.max,
                tier.permits.max - tier.permits.available,
                tier.permits.lent,
                tier.borrows,
            )
            for tier in shown.tiers
        ),
        lanes=len(shown.lanes) + shown.more_lanes,
        entities=shown.entities,
        cohorts=shown.cohorts,
        stale_outcomes=0,
        next_ms=None if shown.next_wake_at is None else moment_ms(shown.next_wake_at),
    )
