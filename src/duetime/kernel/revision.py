"""Find an intent by id, and see that its caller saw its newest revision."""

from __future__ import annotations

from duetime.kernel.state import State
from duetime.protocol.intent import Intent
from duetime.protocol.reply import Refusal


def find(state: State, id: str, revision: int) -> Intent | Refusal:
    """The intent, or why it cannot be had. Revision 0 means any."""
    intent = state.store.get(id)
    if intent is None:
        return Refusal("NoSuchIntent", f"There is no intent with the id {id!r}.")
    if revision and revision != intent.revision:
        text = f"{id!r} is at revision {intent.revision}, not {revision}."
        return Refusal("RevisionMoved", text, {"revision": intent.revision})
    return intent


def forbids(intent: Intent, error: str, verb: str) -> Refusal:
    """The intent's status does not allow this verb."""
    status = intent.status.name
    return Refusal(error, f"{intent.id!r} is {status} and cannot be {verb}.", {"currentState": status})
