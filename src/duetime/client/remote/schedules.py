"""The schedules of a server, with the types of the protocol: a part of the remote backend."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import Raw

from duetime.client.app.times import moment_ms
from duetime.client.http.requests import path
from duetime.client.http.transport import Request, Transport
from duetime.client.remote import translate
from duetime.json_types import Json
from duetime.protocol.schedule import Schedule as Rule
from duetime.timefmt import iso
from duetime.wire.intent import Intent
from duetime.wire.schedule import Backfill, NextTicks, Orphans, Schedule, Schedules


class RemoteSchedules:
    """The operations on schedules. A subclass has the transport."""

    _transport: Transport

    async def put_schedule(self, schedule: Rule) -> Schedule:
        return await self._asked("PUT", path("schedules", schedule.id), schedule_fields(schedule))

    async def drop_schedule(self, id: str) -> Schedule:
        return await self._asked("DELETE", path("schedules", id))

    async def pause_schedule(self, id: str) -> Schedule:
        return await self._asked("POST", path("schedules", id, "pause"))

    async def resume_schedule(self, id: str) -> Schedule:
        return await self._asked("POST", path("schedules", id, "resume"))

    async def trigger_schedule(self, id: str) -> Intent:
        answer = await self._transport.send(Request("POST", path("schedules", id, "trigger")))
        return self._transport.read(answer, Intent)

    async def schedule(self, id: str) -> Schedule:
        return await self._asked("GET", path("schedules", id))

    async def schedules(self) -> list[Schedule]:
        answer = await self._transport.send(Request("GET", "/v1/schedules"))
        return self._transport.read(answer, Schedules).schedules

    async def next_ticks(self, id: str, count: int) -> list[int]:
        request = Request("GET", path("schedules", id, "next"), [("count", str(count))])
        answer = self._transport.read(await self._transport.send(request), NextTicks)
        return [moment_ms(each) for each in answer.times]

    async def backfill(self, id: str, from_ms: int, to_ms: int) -> Backfill:
        body = msgspec.json.encode({"from": iso(from_ms), "to": iso(to_ms)})
        request = Request("POST", path("schedules", id, "backfill"), body=body)
        return self._transport.read(await self._transport.send(request), Backfill)

    async def own_schedules(self, source: str, ids: Collection[str], delete: bool) -> list[str]:
        body = msgspec.json.encode({"source": source, "ids": list(ids), "delete": delete})
        answer = await self._transport.send(Request("POST", "/v1/schedules/owned", body=body))
        return self._transport.read(answer, Orphans).ids

    async def _asked(self, method: str, where: str, fields: Json | None = None) -> Schedule:
        body = None if fields is None else msgspec.json.encode(fields)
        answer = await self._transport.send(Request(method, where, body=body))
        return self._transport.read(answer, Schedule)


def schedule_fields(schedule: Rule) -> Json:
    """The fields of a schedule for the API."""
    fields: Json = {
        "zone": schedule.zone,
        "jitterMs": schedule.jitter_ms,
        "overlap": schedule.overlap.name,
        "misfire": schedule.misfire.name,
        "catchUp": schedule.catch_up,
        "source": schedule.source,
        "intent": translate.terms_fields(schedule.terms),
    }
    if schedule.skip:
        fields["skip"] = schedule.skip
    if schedule.payload:
        fields["intent"]["payload"] = Raw(schedule.payload)
    if schedule.cron:
        fields["cron"] = schedule.cron
    else:
        fields["everyMs"] = schedule.every_ms
    for name, at_ms in (("start", schedule.start_ms), ("end", schedule.end_ms)):
        if at_ms:
            fields[name] = iso(at_ms)
    return fields
