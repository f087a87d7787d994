"""Transitions over gRPC, with the same buffer and the same ids as the server-sent events."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from duetime.api.access.auth import Role
from duetime.api.access.call_slots import Places
from duetime.api.access.quotas import bearer
from duetime.api.access.revocations import Revocations, revoked
from duetime.api.codec import times
from duetime.api.codec.filters import filter_from
from duetime.api.grpc import intent_codec
from duetime.api.grpc.calls import Door
from duetime.api.grpc.errors import Context, refuse
from duetime.api.grpc.reading import read
from duetime.api.http.sse import Events, Place, ServerEvent, Wanted, place_from
from duetime.errors import Busy, NotReady
from duetime.limits import GRPC_STREAMS_MAX, WATCH_CHECK_S, WATCH_UNREAD_MS
from duetime.v1 import intents_pb2 as pb


class Watches:
    """All open watches."""

    def __init__(self, events: Events, door: Door, revocations: Revocations) -> None:
        self._events = events
        self._door = door
        self._revocations = revocations
        self._open = Places(GRPC_STREAMS_MAX, "watches", wait_ms=1_000)

    async def behaviour(self, requests: object, context: Context) -> None:
        """The handler for grpc. It runs before the request is read."""
        try:
            self._door.check(context, Role.read)
            with self._open.one(bearer.get()):
                request = read(pb.WatchIntentsRequest, await self._door.message(context))
                await self._watch(request, context)
        except Exception as error:
            await refuse(context, error, "WatchIntents")

    async def _watch(self, request: pb.WatchIntentsRequest, context: Context) -> NoReturn:
        id = request.intent_id if request.HasField("intent_id") else None
        wanted = Wanted(filter_from(intent_codec.query(request)), id)
        events = self._events
        over = False

        def end() -> None:
            nonlocal over
            over = True
            events.wake()

        with events.listening(), self._revocations.watching(end):
            place = (
                place_from(request.last_event_id) if request.HasField("last_event_id") else events.newest()
            )
            await context.write(
                pb.WatchIntentsResponse(
                    gap=events.gap_behind(place), last_event_id=event_id(place)
                ).SerializeToString()
            )
            while not events.closed and not over:
                place = await self._send(context, wanted, place)
                if place >= events.newest():
                    await events.wait(WATCH_CHECK_S)
        raise revoked() if over else NotReady("The server is stopping.")

    async def _send(self, context: Context, wanted: Wanted, place: Place) -> Place:
        """The events after a position, and the new position. A watch that is too slow gets a gap."""
        gap = self._events.gap_behind(place)
        found, place = self._events.wanted(wanted, max(place, self._events.oldest()))
        if found or gap:
            transitions = map(transition, found)
            await _write(
                context,
                pb.WatchIntentsResponse(transitions=transitions, gap=gap, last_event_id=event_id(place)),
            )
        return place


async def _write(context: Context, message: pb.WatchIntentsResponse) -> None:
    """Write a message. A client that does not read is disconnected."""
    try:
        async with asyncio.timeout(WATCH_UNREAD_MS / 1000):
            await context.write(message.SerializeToString())
    except TimeoutError:
        raise Busy(
            f"Nothing was read for {WATCH_UNREAD_MS // 1000} seconds.",
            hint="Read faster or filter more; resume after the last event that was read.",
            waitMs=1_000,
        ) from None


def event_id(place: Place) -> str:
    position, number = place
    return f"{position}.{number}"


def transition(event: ServerEvent) -> pb.Transition:
    shown = event.shown
    return pb.Transition(
        event_id=event_id(event.place),
        intent_id=shown.intent_id,
        status=intent_codec.STATUSES[shown.status],
        previous_status=intent_codec.STATUSES[shown.previous_status],
        at_ms=times.read(str(shown.at), "at"),
        delivery=shown.delivery,
        attempts=shown.attempts,
        precision_tier=intent_codec.TIERS[shown.precision_tier],
        lane=shown.lane,
        late_ms=shown.late_ms,
        limited_ms=shown.limited_ms,
        error=shown.error,
        error_kind=shown.error_kind,
        task=shown.task,
        queue=shown.queue,
        tags=shown.tags,
    )
