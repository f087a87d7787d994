"""Stop an intent: before it runs, or while it runs (then its delivery is aborted)."""

from __future__ import annotations

from duetime.kernel.readying import finish, take_back
from duetime.kernel.revision import find, forbids
from duetime.kernel.state import State
from duetime.protocol.command import Cancel
from duetime.protocol.effect import Abort
from duetime.protocol.intent import CANCELED, DISPATCHING, FINAL, Intent
from duetime.protocol.reply import Refusal


def apply(state: State, command: Cancel) -> Intent | Refusal:
    intent = find(state, command.id, command.revision)
    if isinstance(intent, Refusal):
        return intent
    if intent.status in FINAL:
        return forbids(intent, "StateForbids", "cancelled")
    if intent.status is DISPATCHING:
        state.effects.append(Abort(intent.id, intent.delivery, intent.consumer))
        take_back(state, intent)
    finish(state, intent, CANCELED)
    return intent
