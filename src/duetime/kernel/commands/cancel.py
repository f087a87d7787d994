"""Cancel an intent: before it runs, or while it runs (then its delivery is aborted). Or a whole tree."""

from __future__ import annotations

from duetime.kernel import groups
from duetime.kernel.lifecycle import finish, take_back
from duetime.kernel.lookup import find, forbids, out_of_reach, remember
from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.limits import TREE_MAX
from duetime.protocol.command import Cancel
from duetime.protocol.effect import Abort
from duetime.protocol.intent import BLOCKED, CANCELED, DISPATCHING, FINAL, Intent
from duetime.protocol.reply import Existing, Reason, Refusal


def apply(state: State, command: Cancel) -> Intent | Existing | Refusal:
    intent = find(state, command.id, command.revision, command.request)
    if not isinstance(intent, Intent):
        return intent
    found = _tree(state, intent) if command.tree else [intent]
    if len(found) > TREE_MAX:
        return Refusal(
            Reason.INVALID_FIELD,
            f"More than {TREE_MAX} intents hang on {intent.id!r}: too many to cancel at once.",
        )
    live = [each for each in found if each.status not in FINAL]
    if not live:
        return forbids(intent, Reason.STATE_FORBIDS, "cancelled")
    for each in live if command.within is not None else ():
        refusal = out_of_reach(each, command.within)
        if refusal is not None:
            return refusal
    for each in live:
        _cancel(state, each)
    touch(state, intent)  # it may have ended before its dependents
    remember(intent, command.request)
    return intent


def _cancel(state: State, intent: Intent) -> None:
    if intent.status is DISPATCHING:
        state.effects.append(Abort(intent.id, intent.delivery, intent.consumer))
        take_back(state, intent)
    finish(state, intent, CANCELED)


def _tree(state: State, root: Intent) -> list[Intent]:
    """The intent, its dependents (also former ones), its members if it is a group's callback; recursively."""
    found = {root.id: root}
    todo = [root]
    for intent in todo:  # the list grows during the loop
        if len(found) > TREE_MAX:
            break
        for below in (*_dependents(state, intent), *groups.members_of(state, intent)):
            if below.id not in found:
                found[below.id] = below
                todo.append(below)
    return list(found.values())


def _dependents(state: State, intent: Intent) -> list[Intent]:
    """The intents that wait for it, and those that waited until it ended."""
    waiting = intent.rare.dependents if intent.rare is not None else None
    found = [(state.store.get(id), seq) for id, seq in (waiting or {}).items()]
    return [
        child
        for child, seq in found
        if child is not None and child.seq == seq and (state.rules >= 2 or child.status is BLOCKED)
    ]
