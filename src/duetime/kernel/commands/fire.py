"""Make a scheduled intent due at once."""

from __future__ import annotations

from duetime.kernel.history import note
from duetime.kernel.lifecycle import expired, make_due
from duetime.kernel.lookup import find, forbids, remember
from duetime.kernel.state import State
from duetime.kernel.transitions import edit
from duetime.protocol.command import FireNow
from duetime.protocol.intent import SCHEDULED, Intent
from duetime.protocol.reply import Existing, Reason, Refusal


def apply(state: State, command: FireNow) -> Intent | Existing | Refusal:
    intent = find(state, command.id, command.revision, command.request)
    if not isinstance(intent, Intent):
        return intent
    if intent.status is not SCHEDULED:
        return forbids(intent, Reason.STATE_FORBIDS, "fired")
    if not expired(state, intent):
        edit(state, intent)
        note(intent, state.at_ms, SCHEDULED, "fired now")
        intent.execute_at_ms = min(intent.execute_at_ms, state.at_ms)
        make_due(state, intent, state.at_ms)
    remember(intent, command.request)
    return intent
