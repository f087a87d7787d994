"""Celery's names of states, for the states of an intent."""

from __future__ import annotations

from duetime.wire.intent import Intent, Status

PENDING = "PENDING"
RECEIVED = "RECEIVED"
STARTED = "STARTED"
SUCCESS = "SUCCESS"
FAILURE = "FAILURE"
REVOKED = "REVOKED"
REJECTED = "REJECTED"
RETRY = "RETRY"
IGNORED = "IGNORED"

READY_STATES = frozenset({SUCCESS, FAILURE, REVOKED})
UNREADY_STATES = frozenset({PENDING, RECEIVED, STARTED, REJECTED, RETRY})
EXCEPTION_STATES = frozenset({RETRY, FAILURE, REVOKED})
PROPAGATE_STATES = frozenset({FAILURE, REVOKED})
ALL_STATES = READY_STATES | UNREADY_STATES

_STATES = {
    Status.DISPATCHING: STARTED,
    Status.ACKED: SUCCESS,
    Status.DEAD_LETTERED: FAILURE,
    Status.EXPIRED: REVOKED,
    Status.CANCELED: REVOKED,
}


def state_of(intent: Intent | None) -> str:
    """The state. As in Celery, an unknown id is PENDING."""
    if intent is None:
        return PENDING
    return _STATES.get(intent.status) or (RETRY if intent.attempts else PENDING)
