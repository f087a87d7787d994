"""The kernel's answers to commands. A refusal changes nothing; inside the kernel nothing is raised."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from duetime.protocol.intent import Intent
from duetime.protocol.schedule import Timetable


class Reason(Enum):
    """Why the kernel refuses a command. `duetime.refusals` has the error that callers see for each reason.

    Reasons are never stored. The values are names for scenarios and reports of the simulator.
    """

    BUSY = "Busy"
    DEADLINE_TOO_EARLY = "DeadlineTooEarly"
    ENTITY_FULL = "EntityFull"
    FORBIDDEN = "Forbidden"
    ID_EXISTS = "IdExists"
    INVALID_FIELD = "InvalidField"
    IN_THE_PAST = "InThePast"
    KEY_FINISHED = "KeyFinished"
    KEY_HELD = "KeyHeld"
    KEY_REUSED = "KeyReused"
    LANE_FULL = "LaneFull"
    NOT_DEAD_LETTERED = "NotDeadLettered"
    NOT_PATCHABLE = "NotPatchable"
    NO_SUCH_INTENT = "NoSuchIntent"
    NO_SUCH_SCHEDULE = "NoSuchSchedule"
    REVISION_MOVED = "RevisionMoved"
    STATE_FORBIDS = "StateForbids"


class Refusal(Struct, frozen=True):
    """The command was refused. A schedule keeps the message of a refused tick: it is part of the state."""

    reason: Reason
    message: str
    details: dict[str, object] = {}


class Existing(Struct, frozen=True, gc=False):
    """The idempotency key already belongs to this intent: nothing new was created."""

    intent: Intent


Reply = Intent | Existing | Refusal | None
"""The answer to a command about one intent."""

Answer = Reply | Timetable | list[Reply] | list[bool]
"""The answer to any command."""
