"""Schedules: put, drop, pause, resume, trigger; and their ticks, which become intents.

The moments of a rule are resolved outside and are on the record; here they are integers. A tick
is decided once: its intent's id contains the tick, and `last_ms` only grows.
"""

from __future__ import annotations

from zlib import crc32

from msgspec.structs import replace

from duetime.kernel.commands import cancel, submit
from duetime.kernel.state import State
from duetime.limits import SCHEDULES_MAX, TICK_RETRY_MS
from duetime.protocol.command import (
    Cancel,
    DropSchedule,
    PauseSchedule,
    PutSchedule,
    ResumeSchedule,
    Tick,
    Trigger,
)
from duetime.protocol.intent import FINAL, Intent, Item
from duetime.protocol.reply import Existing, Reason, Refusal
from duetime.protocol.schedule import Overlap, Schedule, Timetable, tick_id

ByCaller = PutSchedule | DropSchedule | PauseSchedule | ResumeSchedule | Trigger
Verb = ByCaller | Tick


def apply(state: State, command: Verb) -> Timetable | Intent | Existing | Refusal:
    """The resulting schedule; for a trigger, the intent."""
    if isinstance(command, PutSchedule):
        return _put(state, command)
    table = state.timetables.all.get(command.id)
    if table is None:
        return _missing(command.id)
    if isinstance(command, Trigger):
        return _trigger(state, table, command.name)
    if isinstance(command, Tick):
        return _tick(state, table, command)
    moved = _moved(table, command.revision)
    if moved is not None:
        return moved
    if isinstance(command, DropSchedule):
        state.timetables.drop(table)
        return table
    if isinstance(command, PauseSchedule):
        return table if table.paused else _change(state, table, paused=True)
    if not table.paused:
        return table
    next_ms = command.next_ms
    return _change(state, table, paused=False, next_ms=next_ms, wake_ms=next_ms, refused="")


def known(state: State, command: ByCaller) -> Timetable | Existing | Refusal | None:
    """The answer to a command that would change nothing, or None. Reads only."""
    tables = state.timetables.all
    if isinstance(command, PutSchedule):
        old = tables.get(command.schedule.id)
        if old is None:
            return None
        return _moved(old, command.revision) or (old if old.schedule == command.schedule else None)
    table = tables.get(command.id)
    if table is None:
        return _missing(command.id)
    if isinstance(command, Trigger):
        there = None if command.name is None else state.store.get(_triggered_id(table, command.name))
        return None if there is None else Existing(there)
    moved = _moved(table, command.revision)
    if moved is not None or isinstance(command, DropSchedule):
        return moved
    return table if table.paused == isinstance(command, PauseSchedule) else None


def _missing(id: str) -> Refusal:
    return Refusal(Reason.NO_SUCH_SCHEDULE, f"There is no schedule with the id {id!r}.")


def _triggered_id(table: Timetable, name: str | int) -> str:
    return f"{table.id}@now-{name}"


def release(state: State) -> None:
    """Intents of schedules ended: make the ticks that waited for them."""
    tables = state.timetables
    over, tables.over = tables.over, []
    for id in over:
        table = tables.all[tables.runs.pop(id)]
        table = replace(table, live=tuple(other for other in table.live if other != id))
        if table.queued_ms and not table.live:
            # It was accepted at its time: no limit refuses it now.
            item = tick_item(table.schedule, table.queued_ms)
            table = _make(state, replace(table, queued_ms=0), item)
        tables.keep(table)


def spread_ms(schedule: Schedule, time_ms: int) -> int:
    """How much later than its tick an intent runs: a stable hash, so that a replay decides the same."""
    if not schedule.jitter_ms:
        return 0
    return crc32(tick_id(schedule.id, time_ms).encode()) % (schedule.jitter_ms + 1)


def _put(state: State, command: PutSchedule) -> Timetable | Refusal:
    schedule, tables = command.schedule, state.timetables
    old = tables.all.get(schedule.id)
    if old is None:
        if len(tables.all) >= SCHEDULES_MAX:
            return Refusal(Reason.BUSY, f"{SCHEDULES_MAX} schedules are there, the most there may be.")
        table = Timetable(schedule, command.next_ms, command.next_ms, state.at_ms, state.at_ms)
        tables.keep(table)
        return table
    moved = _moved(old, command.revision)
    if moved is not None:
        return moved
    if old.schedule == schedule:
        return old
    live = old.live
    if old.schedule.overlap is Overlap.ALLOW and not live:  # earlier intents were not tracked
        last = state.store.get(old.last_id) if old.last_id else None
        live = () if last is None or last.status in FINAL else (last.id,)
    next_ms = command.next_ms
    return _change(state, old, schedule=schedule, next_ms=next_ms, wake_ms=next_ms, live=live, refused="")


def _moved(table: Timetable, revision: int) -> Refusal | None:
    if not revision or revision == table.revision:
        return None
    text = f"{table.id!r} is at revision {table.revision}, not {revision}."
    return Refusal(Reason.REVISION_MOVED, text, {"revision": table.revision})


def _change(state: State, table: Timetable, **changes: object) -> Timetable:
    """A caller changed the schedule."""
    changed = replace(table, revision=table.revision + 1, updated_at_ms=state.at_ms, **changes)
    state.timetables.keep(changed)
    return changed


def _trigger(state: State, table: Timetable, name: str | None) -> Intent | Existing | Refusal:
    """One more intent, whatever is running; unless one with this name was made before."""
    number = state.at_ms
    while (there := state.store.get(id := _triggered_id(table, name or number))) is not None:
        if name is not None:
            return Existing(there)
        number += 1
    terms = table.schedule.terms
    item = Item(id, 0, state.at_ms, table.schedule.payload, fresh=True, relative=True)
    refusal = submit.admit(state, terms, state.lanes.get(terms.lane), item)
    if refusal is not None:
        return refusal
    state.timetables.keep(_make(state, table, item))
    intent = state.store.get(id)
    assert intent is not None, "it was made just now"
    return intent


def _tick(state: State, table: Timetable, command: Tick) -> Timetable | Refusal:
    """Decide the due ticks. Where an intent cannot be accepted, its tick and later ones are tried again."""
    if table.paused or (command.revision, command.was_ms) != (table.revision, table.next_ms):
        text = f"{table.id!r} does not stand any more where this tick was for."
        return Refusal(Reason.REVISION_MOVED, text, {"revision": table.revision})
    next_ms, missed = command.next_ms, table.missed + command.missed
    doubted_ms = table.doubted_ms if table.doubted_ms <= state.at_ms else 0  # otherwise the clock came back
    table = replace(table, next_ms=next_ms, wake_ms=next_ms, missed=missed, refused="", doubted_ms=doubted_ms)
    for time_ms in command.times:
        if time_ms <= table.last_ms:
            continue  # decided before the clock was set back
        decided = _decide(state, table, time_ms)
        if isinstance(decided, Refusal):
            wake_ms, why = state.at_ms + TICK_RETRY_MS, decided.message
            table = replace(table, next_ms=time_ms, wake_ms=wake_ms, refused=why)
            break
        # During a clock jump that is not trusted, decided ticks are recognised by their ids alone: the clock
        # may come back.
        sure_ms = min(time_ms, state.believed_ms()) if state.doubt_ms else time_ms
        doubted_ms = time_ms if sure_ms < time_ms else 0
        table = replace(decided, last_ms=max(sure_ms, decided.last_ms), doubted_ms=doubted_ms)
    state.timetables.keep(table)
    return table


def _decide(state: State, table: Timetable, time_ms: int) -> Timetable | Refusal:
    """Make the intent of a tick, or skip it, by the overlap policy."""
    schedule = table.schedule
    if state.store.get(tick_id(schedule.id, time_ms)) is not None:
        return table  # by a schedule of the same name, before
    if table.live and schedule.overlap is not Overlap.ALLOW:
        if schedule.overlap is Overlap.SKIP or (schedule.overlap is Overlap.QUEUE_ONE and table.queued_ms):
            return replace(table, skipped=table.skipped + 1)
        if schedule.overlap is Overlap.QUEUE_ONE:
            return replace(table, queued_ms=time_ms)
    item, terms = tick_item(schedule, time_ms), schedule.terms
    refusal = submit.admit(state, terms, state.lanes.get(terms.lane), item)
    if refusal is not None:
        return refusal
    if schedule.overlap is Overlap.CANCEL_RUNNING:  # only now is it certain that a new one follows
        for other in table.live:
            cancel.apply(state, Cancel(other))
        table = replace(table, live=())
    return _make(state, table, item)


def _make(state: State, table: Timetable, item: Item) -> Timetable:
    """Make an intent of this schedule, and track it until it ends if later ticks depend on it."""
    terms = table.schedule.terms
    submit.make(state, terms, state.lanes.get(terms.lane), item)
    followed = table.schedule.overlap is not Overlap.ALLOW
    live = (*table.live, item.id) if followed else table.live
    return replace(table, last_id=item.id, made=table.made + 1, live=live)


def tick_item(schedule: Schedule, time_ms: int, fresh: bool = True) -> Item:
    """The intent of a tick. `fresh`: it is known that its id is free."""
    # The schedule chose its time: however late, it is not refused as too old.
    execute_at_ms = time_ms + spread_ms(schedule, time_ms)
    return Item(tick_id(schedule.id, time_ms), 0, execute_at_ms, schedule.payload, fresh=fresh, relative=True)
