"""Schedule a dead letter again. Its attempts restart at zero; its delivery number continues to grow."""

from __future__ import annotations

from msgspec.structs import replace

from duetime.kernel import claims, groups, handover
from duetime.kernel.history import close_life, rare_of
from duetime.kernel.lifecycle import expired, make_due
from duetime.kernel.lookup import find, forbids, remember
from duetime.kernel.state import State
from duetime.kernel.transitions import move, touch
from duetime.protocol.command import Revive
from duetime.protocol.intent import DEAD_LETTERED, SCHEDULED, Intent
from duetime.protocol.reply import Existing, Reason, Refusal
from duetime.protocol.terms import Terms, lane_of


def apply(state: State, command: Revive) -> Intent | Existing | Refusal:
    intent = find(state, command.id, command.revision, command.request)
    if not isinstance(intent, Intent):
        return intent
    if intent.status is not DEAD_LETTERED:
        return forbids(intent, Reason.NOT_DEAD_LETTERED, "revived: only dead letters can")
    execute_at_ms = command.execute_at_ms or state.at_ms
    if execute_at_ms < state.at_ms - state.settings.past_tolerance_ms:
        return Refusal(Reason.IN_THE_PAST, f"The new time is {state.at_ms - execute_at_ms} ms in the past.")
    deadline_ms = _deadline_ms(state, intent, command, execute_at_ms)
    if deadline_ms and deadline_ms < execute_at_ms:
        return Refusal(Reason.DEADLINE_TOO_EARLY, "The deadline is before the time of execution.")
    taken = claims.retaken(state, intent)
    if taken is not None:
        return taken
    touch(state, intent)
    missing = handover.missing(state, intent)
    if missing is not None:
        return Refusal(Reason.STATE_FORBIDS, f"{intent.id!r} cannot be revived: {missing}.")
    close_life(intent, state.at_ms)
    move(state, intent, SCHEDULED)
    intent.terms = _new_terms(intent.terms, command)
    if command.target is not None and intent.rare is not None and intent.rare.handed is not None:
        intent.rare.handed = None  # a webhook gets it in another form than a function
        handover.collect(state, intent, None)
    if command.payload is not None:
        intent.payload = command.payload
        state.store.touch(intent)  # again: the store counts large payloads
    intent.execute_at_ms = execute_at_ms
    intent.deadline_ms = deadline_ms
    intent.attempt = 0
    intent.ended = intent.finished_at_ms = 0
    rare_of(intent).dependents = None  # its former dependents went on or ended with it
    groups.rejoin(state, intent)
    state.alive += 1
    state.count_in(intent.terms)
    if execute_at_ms > state.at_ms:
        state.timers.arm(intent, execute_at_ms)
    elif not expired(state, intent):
        make_due(state, intent, execute_at_ms)
    remember(intent, command.request)
    return intent


def _deadline_ms(state: State, intent: Intent, command: Revive, execute_at_ms: int) -> int:
    """The new deadline. A relative one starts again. An old one that has passed is dropped, because it would
    expire the intent at once."""
    if command.deadline_ms is not None:
        return command.deadline_ms
    if intent.terms.expires_ms:
        return execute_at_ms + intent.terms.expires_ms
    return intent.deadline_ms if intent.deadline_ms > state.at_ms else 0


def _new_terms(terms: Terms, command: Revive) -> Terms:
    if command.target is not None:
        terms = replace(terms, target=command.target, lane=lane_of(command.target))
    if command.redelivery is not None:
        terms = replace(terms, redelivery=command.redelivery)
    return terms
