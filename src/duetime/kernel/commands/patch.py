"""Change an intent that is neither final nor in flight."""

from __future__ import annotations

from msgspec.structs import replace

from duetime.kernel.history import note
from duetime.kernel.lifecycle import expired, make_due, undo_due
from duetime.kernel.lookup import find, forbids, remember
from duetime.kernel.state import State
from duetime.kernel.transitions import edit, move
from duetime.protocol.command import Patch
from duetime.protocol.intent import BLOCKED, DUE, SCHEDULED, Intent
from duetime.protocol.reply import Existing, Reason, Refusal

_PATCHABLE = (SCHEDULED, DUE, BLOCKED)


def apply(state: State, command: Patch) -> Intent | Existing | Refusal:
    intent = find(state, command.id, command.revision, command.request)
    if not isinstance(intent, Intent):
        return intent
    refusal = _check(state, command, intent)
    if refusal is not None:
        return refusal
    edit(state, intent)
    note(intent, state.at_ms, intent.status, "patched")
    changes = {
        name: value
        for name in ("redelivery", "priority", "tags", "expired_action")
        if (value := getattr(command, name)) is not None
    }
    if changes:
        intent.terms = replace(intent.terms, **changes)
    if command.payload is not None:
        intent.payload = command.payload
        state.store.touch(intent)  # again: the store counts large payloads
    intent.deadline_ms = _deadline_ms(intent, command)
    _rearm(state, intent, command)
    remember(intent, command.request)
    return intent


def _check(state: State, command: Patch, intent: Intent) -> Refusal | None:
    if intent.status not in _PATCHABLE:
        return forbids(intent, Reason.NOT_PATCHABLE, "changed")
    execute_at_ms = intent.execute_at_ms if command.execute_at_ms is None else command.execute_at_ms
    if command.execute_at_ms is not None and execute_at_ms < state.at_ms - state.settings.past_tolerance_ms:
        return Refusal(Reason.IN_THE_PAST, f"The new time is {state.at_ms - execute_at_ms} ms in the past.")
    deadline_ms = _deadline_ms(intent, command)
    if deadline_ms and deadline_ms < execute_at_ms:
        return Refusal(Reason.DEADLINE_TOO_EARLY, "The deadline is before the time of execution.")
    return None


def _deadline_ms(intent: Intent, command: Patch) -> int:
    """The new deadline. A relative one moves with the time of execution."""
    if command.deadline_ms is not None:
        return command.deadline_ms
    expires_ms = intent.terms.expires_ms
    if command.execute_at_ms is None or not expires_ms or intent.status is BLOCKED:
        return intent.deadline_ms
    return command.execute_at_ms + expires_ms


def _rearm(state: State, intent: Intent, command: Patch) -> None:
    """Put the intent where its new time, deadline or priority requires."""
    if command.execute_at_ms is not None:
        intent.execute_at_ms = command.execute_at_ms
        intent.limited_ms = intent.late_from_ms = 0  # its lateness counts from its new time
    if intent.status is BLOCKED:
        state.timers.arm(intent, intent.deadline_ms)
        return
    if command.execute_at_ms is None and intent.status is SCHEDULED:
        wake_at_ms = intent.wake_at_ms
    elif command.execute_at_ms is None:
        wake_at_ms = intent.due_at_ms
    else:
        wake_at_ms = command.execute_at_ms
    if intent.status is DUE:
        # Its rank in the lane may have changed: remove it and insert it again.
        undo_due(state, intent)
        move(state, intent, SCHEDULED)
        intent.due_at_ms = 0
    if intent.deadline_ms and intent.deadline_ms < wake_at_ms:
        wake_at_ms = intent.deadline_ms
    if wake_at_ms > state.at_ms:
        state.timers.arm(intent, wake_at_ms)
    elif not expired(state, intent):
        make_due(state, intent, wake_at_ms)
