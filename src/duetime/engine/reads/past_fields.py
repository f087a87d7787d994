"""The fields and the payload of an intent at a past moment.

An intent stores its current fields only, and its history has the times of changes. If nothing was changed
since the moment, the current fields are the answer. Otherwise they are read from the log: the record that
created the intent, and its changes up to the moment, each found by its time.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from duetime.engine.engine import Engine
from duetime.engine.reads.gauges import log_directory, log_of
from duetime.limits import REPLAY_FRAMES_MAX
from duetime.log.time_index import seek
from duetime.protocol.command import Command, FireNow, Patch, Revive, Submit
from duetime.protocol.intent import Entry, Intent
from duetime.protocol.record import decode
from duetime.protocol.terms import Terms, lane_of

# The notes of steps that change fields.
_CHANGES = frozenset(("patched", "revived", "fired now"))


class PastFields(Struct, frozen=True):
    """What a caller can set and change."""

    terms: Terms
    payload: bytes
    execute_at_ms: int
    deadline_ms: int


async def fields_at(engine: Engine, intent: Intent, entries: list[Entry], at_ms: int) -> PastFields | None:
    """The fields at a moment after its creation; None if the log that is kept begins later."""
    changes = [entry.at_ms for entry in entries if entry.note in _CHANGES]
    if all(change_ms <= at_ms for change_ms in changes):
        return PastFields(intent.terms, intent.payload, intent.execute_at_ms, intent.deadline_ms)
    found: PastFields | None = None
    for time_ms in sorted({intent.created_at_ms, *(each for each in changes if each <= at_ms)}):
        for command in await _written(engine, time_ms):
            found = _applied(found, command, intent.id, time_ms)
    return found


async def _written(engine: Engine, at_ms: int) -> list[Command]:
    """The commands with this timestamp that are still on the log."""
    directory, log = log_directory(engine), log_of(engine)
    place = None if directory is None else await asyncio.to_thread(seek, directory, at_ms - 1)
    start = await log.start() if place is None else place.position
    found: list[Command] = []
    looked = 0
    async for _, frame in log.read(start):
        looked += 1
        if frame.at_ms > at_ms or looked > REPLAY_FRAMES_MAX:
            break
        if frame.at_ms == at_ms:
            found += decode(frame.body)
    return found


def _applied(fields: PastFields | None, command: Command, id: str, at_ms: int) -> PastFields | None:
    if isinstance(command, Submit):
        for item in command.items:
            if item.id == id and fields is None:
                terms = command.terms[item.terms]
                deadline_ms = item.deadline_ms
                if terms.expires_ms and not deadline_ms and not item.after:
                    deadline_ms = item.execute_at_ms + terms.expires_ms
                return PastFields(terms, item.payload, item.execute_at_ms, deadline_ms)
    if fields is None or not isinstance(command, Patch | Revive | FireNow) or command.id != id:
        return fields
    if isinstance(command, FireNow):
        return replace(fields, execute_at_ms=min(fields.execute_at_ms, at_ms))
    names = ("redelivery", "priority", "tags", "expired_action")
    given = {name: value for name in names if (value := getattr(command, name, None)) is not None}
    execute_at_ms = command.execute_at_ms
    if isinstance(command, Revive):
        execute_at_ms = command.execute_at_ms or at_ms
        if command.target is not None:
            given |= {"target": command.target, "lane": lane_of(command.target)}
    deadline_ms = fields.deadline_ms if command.deadline_ms is None else command.deadline_ms
    return PastFields(
        terms=replace(fields.terms, **given) if given else fields.terms,
        payload=fields.payload if command.payload is None else command.payload,
        execute_at_ms=fields.execute_at_ms if execute_at_ms is None else execute_at_ms,
        deadline_ms=deadline_ms,
    )
