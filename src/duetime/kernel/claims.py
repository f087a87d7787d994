"""Unique and collapse keys: one intent at a time holds the claim to a key (`terms.Claim`).

The holder of a claim is derived from the intents: the store finds the newest one with it. A *unique* claim
keeps other intents out: their callers get the holder instead. A *collapse* claim passes to the next intent,
which replaces the one that waits. No state is kept here, so nothing can differ after a restart.
"""

from __future__ import annotations

from msgspec.structs import replace

from duetime.duration_text import span
from duetime.kernel.history import note
from duetime.kernel.lifecycle import finish
from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.protocol.intent import BLOCKED, CANCELED, SCHEDULED, Intent, Item
from duetime.protocol.reply import Existing, Reason, Refusal
from duetime.protocol.terms import Claim, OnDuplicate, Until

# How the note of a replaced intent begins.
REPLACED = "replaced by "


def held(state: State, item: Item) -> Existing | Refusal | None:
    """The answer of a unique claim to a new intent: the holder, a refusal, or None if the key is free."""
    claim = _claim(item)
    if claim is None or claim.collapses:
        return None
    window_ms = state.settings.key_window_ms
    if claim.for_ms > window_ms:
        return Refusal(
            Reason.INVALID_FIELD,
            f"unique is for {span(claim.for_ms)}; keys are remembered for {span(window_ms)}.",
        )
    holder = _holder(state, claim.key)
    if holder is None:
        return None
    if item.on_duplicate is OnDuplicate.REJECT:
        return _taken(holder, claim)
    return Existing(holder)


def waiting(state: State, item: Item) -> Intent | None:
    """The waiting intent that a new one replaces."""
    claim = _claim(item)
    return state.store.by_claim(claim.name) if claim is not None and claim.collapses else None


def placed(item: Item, old: Intent) -> Item:
    """A new intent that replaces a waiting one: with THROTTLE it takes the due time of the first."""
    claim = _claim(item)
    if claim is None or claim.until is not Until.THROTTLE:
        return item
    # However late the first one is, its due time was accepted.
    return replace(item, execute_at_ms=old.execute_at_ms, relative=True)


def end(state: State, old: Intent, item: Item) -> None:
    """Cancel the replaced intent, with a note that names its replacement."""
    touch(state, old)
    note(old, state.at_ms, CANCELED, f"{REPLACED}{item.id}")
    finish(state, old, CANCELED)


def begun(state: State, new: Intent, old: Intent) -> None:
    """Note on the new intent which one it replaces."""
    assert new.rare is not None
    first = BLOCKED if new.rare.after else SCHEDULED
    note(new, state.at_ms, first, f"in the place of {old.id}")


def retaken(state: State, dead: Intent) -> Refusal | None:
    """Why a dead letter cannot take its claim again: another intent holds it. None if it can."""
    claim = _claim_of(dead)
    if claim is None or claim.until is Until.TIME or (dead.delivery and claim.until is not Until.END):
        return None  # it has no claim, or will not take it again
    holder = state.store.by_claim(claim.name) if claim.collapses else _holder(state, claim.key)
    if holder is not None:
        return _taken(holder, claim)
    state.store.touch(dead)
    return None


def _claim(item: Item) -> Claim | None:
    return item.ties.claim if item.ties is not None else None


def _claim_of(intent: Intent) -> Claim | None:
    ties = intent.rare.ties if intent.rare is not None else None
    return ties.claim if ties is not None else None


def _holder(state: State, key: str) -> Intent | None:
    """The intent that holds a unique key now: until its start or end, or for a time that is not over."""
    holder = state.store.by_claim(Claim(key, Until.END).name)
    if holder is not None:
        return holder
    holder = state.store.by_claim(Claim(key, Until.TIME).name)
    if holder is None:
        return None
    claim = _claim_of(holder)
    assert claim is not None, "it was found by it"
    return holder if holder.created_at_ms + claim.for_ms > state.believed_ms() else None


def _taken(holder: Intent, claim: Claim) -> Refusal:
    what = "collapse key" if claim.collapses else "unique key"
    text = f"The {what} {claim.key!r} belongs to {holder.id!r}, which is {holder.status.name}."
    return Refusal(Reason.KEY_HELD, text, {"intentId": holder.id})
