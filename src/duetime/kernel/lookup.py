"""Find an intent by id, and check the caller's revision and whether its request was handled before."""

from __future__ import annotations

from duetime.kernel.history import rare_of
from duetime.kernel.state import State
from duetime.limits import REQUEST_IDS_KEPT
from duetime.protocol.intent import Intent
from duetime.protocol.reply import Existing, Reason, Refusal


def find(state: State, id: str, revision: int, request: str | None = None) -> Intent | Existing | Refusal:
    """The intent, or why it cannot be used. Revision 0 means any; a known request was handled already."""
    intent = state.store.get(id)
    if intent is None:
        return Refusal(Reason.NO_SUCH_INTENT, f"There is no intent with the id {id!r}.")
    if request is not None and done_by(intent, request):
        return Existing(intent)
    if revision and revision != intent.revision:
        text = f"{id!r} is at revision {intent.revision}, not {revision}."
        return Refusal(Reason.REVISION_MOVED, text, {"revision": intent.revision})
    return intent


def done_by(intent: Intent, request: str) -> bool:
    """Whether this request created or changed the intent before."""
    return intent.rare is not None and request in intent.rare.requests


def remember(intent: Intent, request: str | None) -> None:
    """Remember the request's id with the intent it changed."""
    if request is not None:
        rare = rare_of(intent)
        rare.requests = (*rare.requests[1 - REQUEST_IDS_KEPT :], request)


def out_of_reach(intent: Intent, within: tuple[str, ...] | None) -> Refusal | None:
    """Why a caller limited to these lanes must not change the intent, or None."""
    lane = intent.terms.scope_lane
    if within is None or lane in within:
        return None
    text = f"{intent.id!r} would change with it, and is in {lane!r}, which this token may not use."
    return Refusal(Reason.FORBIDDEN, text, {"intentId": intent.id})


def forbids(intent: Intent, reason: Reason, verb: str) -> Refusal:
    """The intent's status does not allow this verb."""
    status = intent.status.name
    return Refusal(reason, f"{intent.id!r} is {status} and cannot be {verb}.", {"currentState": status})
