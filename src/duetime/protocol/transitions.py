"""Every allowed change of an intent's status, with its reason.

The kernel obeys this table; the docs' diagram, the console's legend and the tests read it. Final states are
final, except that a dead letter can be revived.
"""

from __future__ import annotations

from duetime.protocol.intent import FINAL, Status

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
