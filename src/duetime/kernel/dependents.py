"""Intents that wait for other intents. Owns `Rare.after`, `waiting` and `dependents`."""

from __future__ import annotations

from duetime.kernel.history import note, rare_of
from duetime.kernel.readying import expired, finish, make_due
from duetime.kernel.state import State
from duetime.kernel.transitions import edit, move
from duetime.limits import DEPENDENTS_MAX
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    DEAD_LETTERED,
    FINAL,
    SCHEDULED,
    Error,
    Intent,
    Item,
    Status,
)
from duetime.protocol.reply import Refusal


def check(state: State, item: Item) -> Refusal | None:
    """Whether everything it waits for exists and has room for one more dependent."""
    for id in item.after:
        parent = state.store.get(id)
        if parent is None:
            return Refusal("InvalidField", f"`after` names {id!r}, and there is no such intent.")
        dependents = parent.rare.dependents if parent.rare is not None else None
        if dependents is not None and len(dependents) >= DEPENDENTS_MAX:
            return Refusal("InvalidField", f"{id!r} has {DEPENDENTS_MAX} dependents, the most it may have.")
    return None


def attach(state: State, intent: Intent) -> str | None:
    """Wait for those that are not finished; the id of one that ended without success, if any."""
    rare = rare_of(intent)
    for id in dict.fromkeys(rare.after):
        parent = state.store.get(id)
        assert parent is not None, "checked before anything was changed"
        if parent.status is ACKED:
            continue
        if parent.status in FINAL:
            return id
        edit(state, parent)
        theirs = rare_of(parent)
        if theirs.dependents is None:
            theirs.dependents = []
        theirs.dependents.append(intent.id)
        rare.waiting += 1
    return None


def release(state: State) -> None:
    """Parents ended: those who waited go on, or end too. A chain of any length ends in this loop."""
    while state.ended_parents:
        parent = state.ended_parents.pop()
        rare = rare_of(parent)
        dependents, rare.dependents = rare.dependents or [], None
        for id in dict.fromkeys(dependents):
            child = state.store.get(id)
            if child is None or child.status is not BLOCKED:
                continue
            if parent.id not in rare_of(child).after:
                continue  # a namesake: the one that waited was forgotten and its id used again
            if parent.status is ACKED:
                _count_down(state, child)
            else:
                finish(state, child, DEAD_LETTERED, blocked_error(state, parent.id, parent.status))


def blocked_error(state: State, id: str, status: Status) -> Error:
    """Why an intent that waited for another one ended with it."""
    return Error(state.at_ms, 0, "dependency", f"it waited for {id!r}, which ended as {status.name}")


def _count_down(state: State, child: Intent) -> None:
    edit(state, child)
    rare_of(child).waiting -= 1
    go_on_if_free(state, child)


def go_on_if_free(state: State, child: Intent) -> None:
    """Schedule a blocked intent like any other, once nothing is left to wait for."""
    if rare_of(child).waiting:
        return
    move(state, child, SCHEDULED)
    note(child, state.at_ms, SCHEDULED, "everything it waited for is acknowledged")
    if child.execute_at_ms > state.at_ms:
        state.timers.arm(child, child.execute_at_ms)
    elif not expired(state, child):
        make_due(state, child, state.at_ms)
