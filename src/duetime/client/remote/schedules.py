"""The schedules of a server, in the words of the protocol: the part of the remote backend that knows them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from duetime.client.app.times import moment_ms, moment_of
from duetime.client.http import models
from duetime.client.http.request_types import moment_text, path
from duetime.client.http.transport import Request, Transport
from duetime.client.remote import translate
from duetime.client.remote.translate import RawIntent, RawPlanned
from duetime.protocol.schedule import Misfire, Overlap, Schedule, Timetable
from duetime.protocol.view import View


class RawSchedule(models.Schedule, frozen=True):
    """A schedule whose intent is left as it was written."""

    intent: RawPlanned


class _All(Struct):
    schedules: list[RawSchedule]


class _Next(Struct):
    times: list[str]


class RemoteSchedules:
    """Asks a server. Whoever inherits has the transport."""

    _transport: Transport

    async def put_schedule(self, schedule: Schedule) -> Timetable:
        return await self._asked("PUT", path("schedules", schedule.id), schedule_fields(schedule))

    async def drop_schedule(self, id: str) -> Timetable:
        return await self._asked("DELETE", path("schedules", id))

    async def pause_schedule(self, id: str) -> Timetable:
        return await self._asked("POST", path("schedules", id, "pause"))

    async def resume_schedule(self, id: str) -> Timetable:
        return await self._asked("POST", path("schedules", id, "resume"))

    async def trigger_schedule(self, id: str) -> View:
        answer = await self._transport.send(Request("POST", path("schedules", id, "trigger")))
        return translate.view_of(self._transport.read(answer, RawIntent))

    async def schedule(self, id: str) -> Timetable:
        return await self._asked("GET", path("schedules", id))

    async def schedules(self) -> list[Timetable]:
        answer = await self._transport.send(Request("GET", "/v1/schedules"))
        return [timetable_of(each) for each in self._transport.read(answer, _All).schedules]

    async def next_ticks(self, id: str, count: int) -> list[int]:
        request = Request("GET", path("schedules", id, "next"), [("count", str(count))])
        answer = self._transport.read(await self._transport.send(request), _Next)
        return [moment_ms(each) for each in answer.times]

    async def _asked(self, method: str, where: str, fields: dict[str, Any] | None = None) -> Timetable:
        body = None if fields is None else msgspec.json.encode(fields)
        answer = await self._transport.send(Request(method, where, body=body))
        return timetable_of(self._transport.read(answer, RawSchedule))


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """What the API is told of a schedule."""
    fields: dict[str, Any] = {
        "zone": schedule.zone,
        "jitterMs": schedule.jitter_ms,
        "overlap": schedule.overlap.name,
        "misfire": schedule.misfire.name,
        "catchUp": schedule.catch_up,
        "source": schedule.source,
        "intent": translate.terms_fields(schedule.terms),
    }
    if schedule.payload:
        fields["intent"]["payload"] = Raw(schedule.payload)
    if schedule.cron:
        fields["cron"] = schedule.cron
    else:
        fields["everyMs"] = schedule.every_ms
    for name, at_ms in (("start", schedule.start_ms), ("end", schedule.end_ms)):
        if at_ms:
            fields[name] = moment_text(moment_of(at_ms))
    return fields


def timetable_of(shown: RawSchedule) -> Timetable:
    """A schedule as the API shows it, in the words of the protocol."""
    terms, payload = translate.planned_of(shown.intent)
    schedule = Schedule(
        id=shown.id,
        terms=terms,
        payload=payload,
        cron=shown.cron or "",
        every_ms=shown.every_ms or 0,
        zone=shown.zone,
        jitter_ms=shown.jitter_ms,
        start_ms=_ms(shown.start),
        end_ms=_ms(shown.end),
        overlap=Overlap[shown.overlap],
        misfire=Misfire[shown.misfire],
        catch_up=shown.catch_up,
        source=shown.source,
    )
    return Timetable(
        schedule,
        next_ms=_ms(shown.next_at),
        wake_ms=_ms(shown.next_at),
        created_at_ms=_ms(shown.created_at),
        updated_at_ms=_ms(shown.updated_at),
        revision=shown.revision,
        paused=shown.paused,
        last_ms=_ms(shown.last_at),
        last_id=shown.last_intent_id or "",
        queued_ms=_ms(shown.queued_at),
        made=shown.made,
        skipped=shown.skipped,
        missed=shown.missed,
        refused=shown.refused or "",
    )


def _ms(moment: Any) -> int:
    return 0 if moment is None else moment_ms(moment)
