"""Intents that wait for other intents. Owns `Rare.after`, `waiting` and `dependents`."""

from __future__ import annotations

from duetime.duration_text import span
from duetime.kernel import groups, handover
from duetime.kernel.history import UNNEEDED, note, rare_of, unneeded
from duetime.kernel.lifecycle import expired, finish, make_due
from duetime.kernel.state import State
from duetime.kernel.transitions import edit, move, touch
from duetime.limits import DEPENDENTS_MAX
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DEAD_LETTERED,
    FINAL,
    SCHEDULED,
    Error,
    Intent,
    Item,
)
from duetime.protocol.reply import Reason, Refusal
from duetime.protocol.terms import AfterOn, Callback


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


def attach(state: State, intent: Intent) -> Intent | None:
    """Wait for the unfinished parents; returns a parent whose end already decides, if there is one."""
    rare = rare_of(intent)
    for id in dict.fromkeys(rare.after):
        parent = state.store.get(id)
        assert parent is not None, "checked before anything was changed"
        if parent.status in FINAL:
            if _decides(parent, intent):
                return parent
            continue
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
                _parent_ended(state, parent, callback)
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
                _parent_ended(state, parent, child)


def decide(state: State, parent: Intent, child: Intent) -> None:
    """The end of this parent decides about a blocked intent, whatever the others do."""
    if child.terms.after_on is AfterOn.FAILURE:
        _go_on(state, child, f"{parent.id!r} ended as {parent.status.name}", parent)
    elif unneeded(parent):
        _cancel(state, child, f"{parent.id!r} was not needed")
    else:
        text = f"it waited for {parent.id!r}, which ended as {parent.status.name}"
        finish(state, child, DEAD_LETTERED, Error(state.at_ms, 0, "dependency", text))


def go_on_if_free(state: State, child: Intent) -> None:
    """Release a blocked intent once it has nothing left to wait for, unless it waited for a failure."""
    if rare_of(child).waiting:
        return
    if child.terms.after_on is AfterOn.FAILURE:
        _cancel(state, child, "everything it waited for succeeded")
    else:
        any_end = child.terms.after_on is AfterOn.END
        _go_on(state, child, f"everything it waited for {'has ended' if any_end else 'is acknowledged'}")


def _decides(parent: Intent, child: Intent) -> bool:
    """Whether the end of one parent is enough to decide about the child."""
    on = child.terms.after_on
    if on is AfterOn.END or parent.status is ACKED:
        return False
    return on is AfterOn.SUCCESS or not unneeded(parent)


def _parent_ended(state: State, parent: Intent, child: Intent) -> None:
    if _decides(parent, child):
        decide(state, parent, child)
    else:
        go_on_if_free(state, child)


def _cancel(state: State, child: Intent, text: str) -> None:
    note(child, state.at_ms, CANCELED, f"{UNNEEDED}{text}")
    finish(state, child, CANCELED)


def _go_on(state: State, child: Intent, text: str, failed: Intent | None = None) -> None:
    """Schedule a blocked intent. `failed`: the parent whose failure it waited for."""
    ties = rare_of(child).ties
    if ties is not None or type(child.terms.target) is Callback:
        error = handover.collect(state, child, failed)
        if error is not None:
            finish(state, child, DEAD_LETTERED, error)
            return
    move(state, child, SCHEDULED)
    if ties is not None and ties.delay_ms:
        text = f"{text}; it runs {span(ties.delay_ms)} later"
        execute_at_ms = max(child.execute_at_ms, state.at_ms + ties.delay_ms)
        # After its deadline it cannot run: it expires there.
        child.execute_at_ms = min(execute_at_ms, child.deadline_ms or execute_at_ms)
    note(child, state.at_ms, SCHEDULED, text)
    if child.terms.expires_ms and not child.deadline_ms:
        child.deadline_ms = max(child.execute_at_ms, state.at_ms) + child.terms.expires_ms
    if child.execute_at_ms > state.at_ms:
        state.timers.arm(child, child.execute_at_ms)
    elif not expired(state, child):
        make_due(state, child, state.at_ms)
