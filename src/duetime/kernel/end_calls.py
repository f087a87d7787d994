"""Webhooks about an intent that ended without success: each is an intent of its own."""

from __future__ import annotations

import msgspec

from duetime.kernel.commands import submit
from duetime.kernel.history import entries_of
from duetime.kernel.state import State
from duetime.limits import END_CALL_ID_CHARS, ID_CHARS_MAX
from duetime.protocol.intent import Intent, Item
from duetime.protocol.terms import Callback, Terms, lane_of

_encode = msgspec.json.Encoder().encode


def release(state: State) -> None:
    """Create the webhooks about the intents that ended. No limit refuses them: one for each end."""
    ended, state.untold = state.untold, []
    for intent in ended:
        target = intent.terms.target
        assert isinstance(target, Callback), "only callbacks name a url for their end"
        call = Callback(target.on_end)
        terms = Terms(
            call, lane_of(call), tier=intent.terms.tier, ack=intent.terms.ack, tags=intent.terms.tags
        )
        body = {
            "intentId": intent.id,
            "status": intent.status.name,
            "reason": entries_of(intent)[-1].note,
        }
        item = Item(_free_id(state, intent), 0, state.at_ms, _encode(body), fresh=True, relative=True)
        submit.make(state, terms, state.lanes.get(terms.lane), item)


def _free_id(state: State, intent: Intent) -> str:
    """An intent may end several times: it can be revived."""
    number = intent.revision
    while state.store.get(id := f"{intent.id[: ID_CHARS_MAX - END_CALL_ID_CHARS]}.end{number}") is not None:
        number += 1
    return id
