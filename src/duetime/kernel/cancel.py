"""Stop an intent: before it runs, or while it runs (then its delivery is aborted)."""

from __future__ import annotations

from duetime.kernel.readying import finish, take_back
from duetime.kernel.revision import find, forbids, remember
from duetime.kernel.state import State
from duetime.protocol.command import Cancel
from duetime.protocol.effect import Abort
from duetime.protocol.intent import CANCELED, DISPATCHING, FINAL, Intent
from duetime.protocol.reply import Existing, Refusal


def apply(state: State, command: Cancel) -> Intent | Existing | Refusal:
    intent = find(state, command.id, command.revision, command.request)
    if not isinstance(intent, Intent):
        return intent
    if intent.status in FINAL:
        return forbids(intent, "StateForbids", "cancelled")
    if intent.status is DISPATCHING:
        state.effects.append(Abort(intent.id, intent.delivery, intent.consumer))
        take_back(state, intent)
    finish(state, intent, CANCELED)
    remember(intent, command.request)
    return intent
