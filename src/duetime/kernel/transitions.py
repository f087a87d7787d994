"""The only code that changes the status of an intent.

Rule 1: `protocol.transitions` alone says which changes are allowed.
Rule 2: an intent is changed only after `touch` or `move`, so that a store writing a checkpoint can
save the former version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.protocol.effect import Change
from duetime.protocol.intent import DISPATCHING, Intent, Status
from duetime.protocol.transitions import TRANSITIONS

if TYPE_CHECKING:
    from duetime.kernel.state import State

# The same table as bits: one shift and one mask for each change.
_ALLOWED = [sum(1 << new for new in TRANSITIONS[old]) for old in Status]


def move(state: State, intent: Intent, new: Status) -> None:
    """Change an intent's status. A change that is not in the table is a bug and stops the engine."""
    old = intent.status
    assert _ALLOWED[old] >> new & 1, f"{old.name} -> {new.name} is not in the table"
    store = state.store
    if intent.cycle != store.cycle:
        store.touch(intent)
    state.tally[intent.terms.tier * 64 + old * 8 + new] += 1
    intent.status = new
    if new is DISPATCHING:
        intent.delivery += 1  # the fence: every delivery has a number of its own
    intent.revision += 1
    intent.updated_at_ms = at_ms = state.at_ms
    if state.changes is not None:
        state.changes.append(Change(intent.id, old, new, at_ms, intent.delivery))


def touch(state: State, intent: Intent) -> None:
    """Announce that the intent is about to change."""
    store = state.store
    if intent.cycle != store.cycle:
        store.touch(intent)


def edit(state: State, intent: Intent) -> None:
    """Announce a change that keeps the status."""
    touch(state, intent)
    intent.revision += 1
    intent.updated_at_ms = state.at_ms
