"""Backfill: the intents of a schedule's past ticks, for those that have none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from duetime.engine.schedules import calendar
from duetime.errors import DuetimeError, IdExists, InvalidField
from duetime.kernel.commands.schedules import tick_item
from duetime.limits import BACKFILL_TICKS_MAX
from duetime.protocol.intent import Item
from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import Terms
from duetime.refusals import Submitted
from duetime.timefmt import iso
from duetime.wire.schedule import Backfill

TICK_HEADER: Final = "duetime-tick"
Submit = Callable[[tuple[Terms, ...], tuple[Item, ...]], Awaitable[list[Submitted]]]


async def backfill(schedule: Schedule, from_ms: int, to_ms: int, now_ms: int, submit: Submit) -> Backfill:
    """Create the intents of the ticks in this range, up to its end. They have the ids of the ticks, so a tick
    whose intent still exists is left out, and the same call again creates nothing. They are due now: they are
    not late, and their deadline counts from now. A header has the time of the tick."""
    if not from_ms < to_ms <= now_ms:
        raise InvalidField(
            "A backfill is a range in the past: from before to, and to not after now.",
            hint="Later ticks create their intents at their time.",
        )
    times = calendar.ticks(schedule, from_ms - 1, BACKFILL_TICKS_MAX + 1)
    times = [time_ms for time_ms in times if time_ms < to_ms]
    if len(times) > BACKFILL_TICKS_MAX:
        raise InvalidField(
            f"The range has more than {BACKFILL_TICKS_MAX} ticks.", hint="Backfill shorter ranges."
        )
    items = tuple(
        replace(
            tick_item(schedule, time_ms, fresh=False),
            execute_at_ms=now_ms,
            headers={TICK_HEADER: iso(time_ms)},
        )
        for time_ms in times
    )
    replies = await submit((schedule.terms,), items) if items else []
    existing = sum(isinstance(reply, IdExists) for reply in replies)
    for reply in replies:
        if isinstance(reply, DuetimeError) and not isinstance(reply, IdExists):
            raise reply
    return Backfill(ticks=len(times), created=len(times) - existing, existing=existing)
