"""Schedules: routes and handlers."""

from __future__ import annotations

import contextlib
import re
from functools import lru_cache
from hashlib import blake2b

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from duetime import errors as e
from duetime.api.access.auth import Role, check_target, is_bound
from duetime.api.codec import times as moments
from duetime.api.codec.filters import check_names, number_from
from duetime.api.http.endpoint import Call, Handler
from duetime.api.http.exchange import Answer
from duetime.api.http.request_ids import request_id
from duetime.api.http.router import Parameter, Route
from duetime.api.resources.intents import encode, expected_revision, no_body
from duetime.api.resources.routes import REQUEST_ID, REVISION
from duetime.api.service import Service
from duetime.engine.schedules import calendar
from duetime.engine.schedules.backfill import backfill
from duetime.errors import DuetimeError, InvalidField
from duetime.limits import (
    CRON_TICKS,
    CRONS_KEPT,
    DAY_MS,
    NEXT_TICKS_DEFAULT,
    NEXT_TICKS_MAX,
    SCHEDULE_ID_CHARS_MAX,
)
from duetime.protocol.schedule import Misfire, Overlap, Schedule, Timetable
from duetime.protocol.terms import Bare, Terms, lane_of
from duetime.wire import schedule as wire
from duetime.wire import views
from duetime.wire.intent import Intent, Nothing
from duetime.wire.shapes import written

_new = msgspec.json.Decoder(wire.NewSchedule)
_range = msgspec.json.Decoder(wire.BackfillRange)
_owned = msgspec.json.Decoder(wire.OwnedSchedules)
_ID = re.compile(r"[A-Za-z0-9_.:-]+")
_NO_TERMS = Terms(Bare(), lane_of(Bare()))


class ScheduleRoutes:
    """Handlers of schedules."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def page(self, call: Call) -> Answer:
        check_names(call.query, ())
        tables = self._service.running.schedules.all()
        return Answer(encode(wire.Schedules(schedules=[self._shown(table) for table in tables])))

    async def get(self, call: Call) -> Answer:
        return self._answer(self._service.running.schedules.get(call.params["id"]))

    async def put(self, call: Call) -> Answer:
        new, id = call.read(_new), call.params["id"]
        if not _ID.fullmatch(id) or len(id) > SCHEDULE_ID_CHARS_MAX:
            raise InvalidField(
                f"{id[:128]!r} is not the id of a schedule.",
                hint=f"Use 1 to {SCHEDULE_ID_CHARS_MAX} letters, digits or one of _ . : -",
            )
        with contextlib.suppress(e.NoSuchSchedule):
            await self._own(call)  # an existing schedule is changed
        terms, payload = self._service.composer.planned(new.intent)
        self._service.functions.check(terms.target, payload)
        schedule = Schedule(
            id=id,
            terms=terms,
            payload=payload,
            cron=(new.cron or "").strip(),
            every_ms=new.every_ms or 0,
            zone=new.zone,
            jitter_ms=new.jitter_ms,
            start_ms=0 if new.start is None else moments.read(new.start, "$.start"),
            end_ms=0 if new.end is None else moments.read(new.end, "$.end"),
            overlap=Overlap[new.overlap],
            misfire=Misfire[new.misfire],
            catch_up=new.catch_up,
            source=new.source,
            skip=tuple(dict.fromkeys(new.skip)),
        )
        schedule = await self._owned(schedule)
        return self._answer(await self._service.running.schedules.put(schedule, expected_revision(call)))

    async def _owned(self, schedule: Schedule) -> Schedule:
        """Refuse a schedule if all schedules of its token together would exceed the token's rate."""
        asking = self._service.quotas.asking()
        if asking is None:
            return schedule
        owner, quota = asking
        others = [
            table.schedule
            for table in self._service.running.schedules.all()
            if table.schedule.owner == owner and table.id != schedule.id
        ]
        now_ms = self._service.running.now_ms()
        daily = sum(DAY_MS // _period_ms(each, now_ms) for each in (schedule, *others))
        if daily * quota.period_ms > quota.rate * DAY_MS:
            raise InvalidField(
                f"With this schedule, the token's schedules would create {daily} intents a day; it may create"
                f" {quota.rate} in {quota.period_ms} ms.",
                hint="Choose a longer interval, or use a token with a higher rate.",
                path="$.everyMs" if schedule.every_ms else "$.cron",
            )
        return replace(schedule, owner=owner)

    async def _own(self, call: Call) -> str:
        """The id of a schedule that the caller may change."""
        id = call.params["id"]
        if is_bound():
            check_target((self._service.running.schedules.get(id)).schedule.terms.target)
        return id

    async def delete(self, call: Call) -> Answer:
        no_body(call)
        id, revision = await self._own(call), expected_revision(call)
        return self._answer(await self._service.running.schedules.drop(id, revision))

    async def pause(self, call: Call) -> Answer:
        no_body(call)
        id, revision = await self._own(call), expected_revision(call)
        return self._answer(await self._service.running.schedules.pause(id, revision))

    async def resume(self, call: Call) -> Answer:
        no_body(call)
        id, revision = await self._own(call), expected_revision(call)
        return self._answer(await self._service.running.schedules.resume(id, revision))

    async def trigger(self, call: Call) -> Answer:
        no_body(call)
        request = request_id(call)
        name = None if request is None else blake2b(request.encode(), digest_size=8).hexdigest()
        engine, id = self._service.running, await self._own(call)
        paid = self._service.quotas.take(1)
        try:
            view = await engine.schedules.trigger(id, name)
        except DuetimeError:
            if paid is not None:
                paid.keep(0)
            raise
        return Answer(bytes(self._service.show.view(view)), 201)

    async def backfill(self, call: Call) -> Answer:
        asked, engine = call.read(_range), self._service.running
        schedule = engine.schedules.get(await self._own(call)).schedule
        from_ms, to_ms = moments.read(asked.from_, "$.from"), moments.read(asked.to, "$.to")
        done = await backfill(schedule, from_ms, to_ms, engine.now_ms(), self._service.submit)
        return Answer(encode(done))

    async def own(self, call: Call) -> Answer:
        owned = call.read(_owned)
        if is_bound():
            raise e.Forbidden("A token that is bound to queues cannot mark schedules as orphans.")
        engine = self._service.running
        orphans = await engine.schedules.own(owned.source, owned.ids, owned.delete)
        return Answer(encode(wire.Orphans(ids=orphans)))

    async def next(self, call: Call) -> Answer:
        check_names(call.query, ("count",))
        count = number_from(call.query, "count", NEXT_TICKS_DEFAULT, 1, NEXT_TICKS_MAX)
        times = self._service.running.schedules.next_ticks(call.params["id"], count)
        return Answer(encode(wire.NextTicks(times=[written(time_ms) for time_ms in times])))

    def _answer(self, table: Timetable) -> Answer:
        return Answer(encode(self._shown(table)), 200, [(b"etag", b'"%d"' % table.revision)])

    def _shown(self, table: Timetable) -> wire.Schedule:
        return views.schedule(table, written, Raw, self._service.show.terms(table.schedule.terms))


def _period_ms(schedule: Schedule, now_ms: int) -> int:
    """The approximate interval between ticks."""
    return schedule.every_ms or _cron_ms(schedule.cron, schedule.zone, now_ms // DAY_MS)


@lru_cache(maxsize=CRONS_KEPT)
def _cron_ms(cron: str, zone: str, day: int) -> int:
    """The approximate interval of a cron rule: from the next few ticks after the start of a day."""
    rule = Schedule("rule", _NO_TERMS, cron=cron, zone=zone)
    try:
        first, *_, last = calendar.ticks(rule, day * DAY_MS, CRON_TICKS)
    except Exception:  # an invalid rule, or one with a single tick: the error is reported elsewhere
        return DAY_MS
    return max(1, (last - first) // (CRON_TICKS - 1))


_ONE = "/v1/schedules/{id}"
_READ = (e.BadQuery, e.NoSuchSchedule, e.NotReady)
_WRITE = (
    e.BadRevision, e.NotJson, e.NoSuchSchedule, e.RevisionMoved, e.KeyReused, e.InvalidField, e.NotReady,
    e.LogUnavailable,
)  # fmt: skip


def schedule_routes(schedules: ScheduleRoutes) -> list[Route]:
    """The routes of schedules."""
    return [
        Route(
            method="GET", path="/v1/schedules", handler=schedules.page, role=Role.read, name="listSchedules",
            summary="All schedules", tag="Schedules", answers={200: wire.Schedules},
            errors=(e.BadQuery, e.NotReady),
        ),
        Route(
            method="GET", path=_ONE, handler=schedules.get, role=Role.read, name="getSchedule",
            summary="Get a schedule", tag="Schedules", answers={200: wire.Schedule}, errors=_READ,
        ),
        Route(
            method="PUT", path=_ONE, handler=schedules.put, role=Role.submit, name="putSchedule",
            summary="Create or replace a schedule", tag="Schedules", body=wire.NewSchedule,
            answers={200: wire.Schedule}, parameters=(*REVISION, REQUEST_ID),
            errors=(*_WRITE, e.BadTarget, e.BadUrl, e.UnknownTier, e.TooLarge, e.Busy), write=True,
        ),
        Route(
            method="DELETE", path=_ONE, handler=schedules.delete, role=Role.submit, name="deleteSchedule",
            summary="Delete a schedule; its intents are kept", tag="Schedules", answers={200: wire.Schedule},
            parameters=(*REVISION, REQUEST_ID), errors=_WRITE, write=True,
        ),
        Route(
            method="GET", path=f"{_ONE}/next", handler=schedules.next, role=Role.read, name="getNextTicks",
            summary="Next ticks of a schedule", tag="Schedules", answers={200: wire.NextTicks},
            parameters=(
                Parameter("count", "Number.", {"type": "integer", "minimum": 1, "maximum": NEXT_TICKS_MAX}),
            ),
            errors=_READ,
        ),
        Route(
            method="POST", path=f"{_ONE}/backfill", handler=schedules.backfill, role=Role.submit,
            name="backfillSchedule", summary="Create the intents of past ticks that have none",
            tag="Schedules", body=wire.BackfillRange, answers={200: wire.Backfill},
            parameters=(REQUEST_ID,),
            errors=(
                e.NotJson, e.NoSuchSchedule, e.KeyReused, e.InvalidField, e.Busy, e.RateLimited,
                e.LaneFull, e.EntityFull, e.NotReady, e.LogUnavailable,
            ),
            write=True,
        ),
        Route(
            method="POST", path="/v1/schedules/owned", handler=schedules.own, role=Role.submit,
            name="ownSchedules", summary="State the schedules of a program; find its orphans",
            tag="Schedules", body=wire.OwnedSchedules, answers={200: wire.Orphans},
            parameters=(REQUEST_ID,), errors=_WRITE, write=True,
        ),
        _verb("pause", schedules.pause, "pauseSchedule", "Pause a schedule"),
        _verb("resume", schedules.resume, "resumeSchedule", "Resume a schedule"),
        Route(
            method="POST", path=f"{_ONE}/trigger", handler=schedules.trigger, role=Role.submit,
            name="triggerSchedule", summary="Create one extra intent of a schedule now", tag="Schedules",
            body=Nothing, body_required=False, answers={201: Intent}, parameters=(REQUEST_ID,),
            errors=(
                e.NotJson, e.NoSuchSchedule, e.KeyReused, e.InvalidField, e.Busy, e.RateLimited,
                e.LaneFull, e.EntityFull, e.NotReady, e.LogUnavailable,
            ),
            write=True,
        ),
    ]  # fmt: skip


def _verb(verb: str, handler: Handler, name: str, summary: str) -> Route:
    return Route(
        method="POST",
        path=f"{_ONE}/{verb}",
        handler=handler,
        role=Role.submit,
        name=name,
        summary=summary,
        tag="Schedules",
        body=Nothing,
        body_required=False,
        answers={200: wire.Schedule},
        parameters=(*REVISION, REQUEST_ID),
        errors=_WRITE,
        write=True,
    )
