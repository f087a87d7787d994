"""Every allowed change of an intent's status, and the only code that makes one.

Rule 1: `TRANSITIONS` alone says which changes are allowed. The docs' diagram, the
console's legend and the tests read the same table.
Rule 2: an intent is changed only after `touch` or `move`, so that a store writing a checkpoint can
save the former version.
Rule 3: final states are final, except that a dead letter can be revived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.protocol.effect import Change
from duetime.protocol.intent import DISPATCHING, FINAL, Intent, Status

if TYPE_CHECKING:
    from duetime.kernel.state import State

TRANSITIONS: dict[Status, dict[Status, str]] = {
    Status.SCHEDULED: {
        Status.DUE: "its time has come, or it is fired now",
        Status.CANCELED: "cancelled",
        Status.EXPIRED: "the deadline passed while it waited for a retry",
        Status.DEAD_LETTERED: "the deadline passed and the action is DEAD_LETTER",
    },
    Status.DUE: {
        Status.DISPATCHING: "handed out, with a new delivery number",
        Status.SCHEDULED: "patched, or the clock was set back",
        Status.CANCELED: "cancelled",
        Status.EXPIRED: "the deadline passed before it could be handed out",
        Status.DEAD_LETTERED: "the deadline passed and the action is DEAD_LETTER",
    },
    Status.DISPATCHING: {
        Status.ACKED: "done",
        Status.SCHEDULED: "failed, lost or snoozed: it waits for the next attempt",
        Status.DEAD_LETTERED: "rejected, out of attempts, or interrupted at most once",
        Status.CANCELED: "cancelled while it ran",
        Status.EXPIRED: "too late: said by who got it, or the deadline passed on the way there",
    },
    Status.BLOCKED: {
        Status.SCHEDULED: "everything it waited for is acknowledged, or has ended",
        Status.CANCELED: "cancelled",
        Status.EXPIRED: "the deadline passed while it waited",
        Status.DEAD_LETTERED: "something it waited for ended otherwise, or the deadline passed",
    },
    Status.DEAD_LETTERED: {Status.SCHEDULED: "revived"},
    Status.ACKED: {},
    Status.EXPIRED: {},
    Status.CANCELED: {},
}

assert set(TRANSITIONS) == set(Status), "every status has its row"
assert all(not ways for status, ways in TRANSITIONS.items() if status in FINAL - {Status.DEAD_LETTERED}), (
    "a final status has no way out, except revival"
)

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
