"""The errors that callers see if the kernel refuses a command, and the result of a submit for each intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from duetime import errors
from duetime.errors import DuetimeError
from duetime.protocol.intent import Intent
from duetime.protocol.reply import Existing, Reason, Refusal

# The result for each new intent: the intent, the existing one with its key or request id, or the error.
Submitted = Intent | Existing | DuetimeError

ERRORS: Final[Mapping[Reason, type[DuetimeError]]] = {
    Reason.BUSY: errors.Busy,
    Reason.DEADLINE_TOO_EARLY: errors.DeadlineTooEarly,
    Reason.ENTITY_FULL: errors.EntityFull,
    Reason.FORBIDDEN: errors.Forbidden,
    Reason.ID_EXISTS: errors.IdExists,
    Reason.INVALID_FIELD: errors.InvalidField,
    Reason.IN_THE_PAST: errors.InThePast,
    Reason.KEY_FINISHED: errors.KeyFinished,
    Reason.KEY_HELD: errors.KeyHeld,
    Reason.KEY_REUSED: errors.KeyReused,
    Reason.LANE_FULL: errors.LaneFull,
    Reason.NOT_DEAD_LETTERED: errors.NotDeadLettered,
    Reason.NOT_PATCHABLE: errors.NotPatchable,
    Reason.NO_SUCH_INTENT: errors.NoSuchIntent,
    Reason.NO_SUCH_SCHEDULE: errors.NoSuchSchedule,
    Reason.REVISION_MOVED: errors.RevisionMoved,
    Reason.STATE_FORBIDS: errors.StateForbids,
}


def error_of(refusal: Refusal, **details: object) -> DuetimeError:
    """The error for a refusal, with these additional details."""
    error = ERRORS[refusal.reason](refusal.message)
    error.details = {**refusal.details, **details}
    return error
