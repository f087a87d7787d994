"""Intents that wait for other intents. Owns `Rare.after`, `waiting` and `dependents`."""

from __future__ import annotations

from duetime.kernel import groups
from duetime.kernel.history import note, rare_of
from duetime.kernel.lifecycle import expired, finish, make_due
from duetime.kernel.state import State
from duetime.kernel.transitions import edit, move, touch
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
from duetime.protocol.reply import Reason, Refusal
from duetime.protocol.terms import AfterOn


def check(state: State, item: Item) -> Refusal | None:
    """Why it cannot wait for its parents: one is missing or has too many dependents. None if it can."""
    for id in item.after:
        parent = state.store.get(id)
        if parent is None:
            return Refusal(Reason.INVALID_FIELD, f"`after` names {id!r}, and there is no such intent.")
        dependents = parent.rare.dependents if parent.rare is not None else None
        if dependents is not None and len(dependents) >= DEPENDENTS_MAX and parent.status not in FINAL:
            return Refusal(
                Reason.INVALID_FIELD, f"{id!r} has {DEPENDENTS_MAX} dependents, the most it may have."
            )
    return None


def attach(state: State, intent: Intent) -> str | None:
    """Wait for the unfinished parents; returns the id of a parent that failed it, if there is one."""
    rare = rare_of(intent)
    any_end = intent.terms.after_on is AfterOn.END
    for id in dict.fromkeys(rare.after):
        parent = state.store.get(id)
        assert parent is not None, "checked before anything was changed"
        if parent.status is ACKED or (any_end and parent.status in FINAL):
            continue
        if parent.status in FINAL:
            return id
        edit(state, parent)
        theirs = rare_of(parent)
        if theirs.dependents is None:
            theirs.dependents = {}
        theirs.dependents[intent.id] = intent.seq
        rare.waiting += 1
    return None


def release(state: State) -> None:
    """Parents ended: their dependents are released or end too. One loop handles chains of any length."""
    while state.ended_parents:
        parent = state.ended_parents.pop()
        callback = groups.callback_of(state, parent)
        if callback is not None:
            touch(state, callback)
            rare_of(callback).waiting -= 1
            if callback.status is BLOCKED:
                _go_on_or_end(state, parent, callback)
        rare = rare_of(parent)
        dependents = rare.dependents or {}
        if state.rules < 2:
            rare.dependents = None  # newer rules keep them: they are cancelled with its tree
        for id, seq in dependents.items():
            child = state.store.get(id)
            # Another intent may have this id now: the one that waited was forgotten, and its id reused.
            if child is not None and child.seq == seq and child.status is BLOCKED:
                edit(state, child)
                rare_of(child).waiting -= 1
                _go_on_or_end(state, parent, child)


def blocked_error(state: State, id: str, status: Status) -> Error:
    """Why an intent ended with the one it waited for."""
    return Error(state.at_ms, 0, "dependency", f"it waited for {id!r}, which ended as {status.name}")


def _go_on_or_end(state: State, parent: Intent, child: Intent) -> None:
    if parent.status is ACKED or child.terms.after_on is AfterOn.END:
        go_on_if_free(state, child)
    else:
        finish(state, child, DEAD_LETTERED, blocked_error(state, parent.id, parent.status))


def go_on_if_free(state: State, child: Intent) -> None:
    """Schedule a blocked intent once it has nothing left to wait for."""
    if rare_of(child).waiting:
        return
    move(state, child, SCHEDULED)
    any_end = child.terms.after_on is AfterOn.END
    note(
        child,
        state.at_ms,
        SCHEDULED,
        f"everything it waited for {'has ended' if any_end else 'is acknowledged'}",
    )
    if child.terms.expires_ms and not child.deadline_ms:
        child.deadline_ms = max(child.execute_at_ms, state.at_ms) + child.terms.expires_ms
    if child.execute_at_ms > state.at_ms:
        state.timers.arm(child, child.execute_at_ms)
    elif not expired(state, child):
        make_due(state, child, state.at_ms)
