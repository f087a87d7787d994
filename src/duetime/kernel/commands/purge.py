"""Forget dead letters before their retention ends."""

from __future__ import annotations

from duetime.kernel.lookup import find, forbids
from duetime.kernel.state import State
from duetime.kernel.transitions import edit
from duetime.protocol.command import Purge
from duetime.protocol.intent import DEAD_LETTERED, PURGED_MS, Intent
from duetime.protocol.reply import Reason, Reply


def apply(state: State, command: Purge) -> list[Reply]:
    """One reply for each id."""
    answers = [_purge(state, id) for id in command.ids]
    state.store.forget(state.marks)
    return answers


def _purge(state: State, id: str) -> Reply:
    intent = find(state, id, 0)
    if not isinstance(intent, Intent):
        return intent
    if intent.status is not DEAD_LETTERED:
        return forbids(intent, Reason.NOT_DEAD_LETTERED, "purged: only dead letters can")
    edit(state, intent)
    intent.finished_at_ms = PURGED_MS
    return intent
