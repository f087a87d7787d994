"""New intents: refused, already known, or created. Checks everything first, then changes."""

from __future__ import annotations

from duetime.kernel import claims, dependents, groups
from duetime.kernel.history import rare_of
from duetime.kernel.lifecycle import make_due
from duetime.kernel.lookup import done_by, out_of_reach, remember
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.protocol.command import Submit
from duetime.protocol.effect import Change
from duetime.protocol.intent import BLOCKED, FINAL, SCHEDULED, Intent, Item, Rare
from duetime.protocol.reply import Existing, Reason, Refusal, Reply
from duetime.protocol.terms import OnDuplicate, Terms


def apply(state: State, command: Submit) -> list[Reply]:
    """One reply for each item, in order."""
    all_terms, lanes = command.terms, state.lanes
    replies: list[Reply] = []
    reply = replies.append
    for item in command.items:
        terms = all_terms[item.terms]
        known: Reply = _repeated(state, item) if item.request is not None else None
        if known is None and item.key is not None:
            known = _by_key(state, item, state.believed_ms())
        if known is None and item.ties is not None:
            known = groups.known(state, item, item.ties) or _tied(state, terms, item)
        if known is None:
            lane = lanes.get(terms.lane)
            known = admit(state, terms, lane, item) or make(state, terms, lane, item)
        reply(known)
    return replies


def known(state: State, terms: Terms, item: Item, now_ms: int) -> Reply:
    """The answer to an intent that already exists or cannot be accepted, or None. Reads only. Claims are
    left to `apply`: a claim may pass to the new intent."""
    if item.ties is not None:
        return None
    found: Reply = _repeated(state, item) if item.request is not None else None
    if found is None and item.key is not None:
        found = _by_key(state, item, max(state.believed_ms(), now_ms))
    return found or admit(state, terms, state.lanes.get(terms.lane), item)


def admit(state: State, terms: Terms, lane: Lane | None, item: Item) -> Refusal | None:
    """Why this intent cannot be accepted, or None. Reads only, so that it can be called in advance."""
    settings = state.settings
    if state.live() >= settings.pending_max:
        return Refusal(Reason.BUSY, f"{settings.pending_max} intents are pending, the most there may be.")
    if (
        terms.serial
        if lane is None
        # only lanes that can be full at all: this check runs for every new intent
        else (lane.serial or lane.pending >= settings.lane_pending_max or terms.lane in state.lane_settings)
    ):
        full = full_lane(state, terms, lane)
        if full is not None:
            return full
    if item.execute_at_ms < state.at_ms - settings.past_tolerance_ms and not item.relative:
        late_ms = state.at_ms - item.execute_at_ms
        return Refusal(Reason.IN_THE_PAST, f"The time of execution is {late_ms} ms in the past.")
    if item.deadline_ms and item.deadline_ms < item.execute_at_ms:
        return Refusal(Reason.DEADLINE_TOO_EARLY, "The deadline is before the time of execution.")
    if not item.fresh and state.store.get(item.id) is not None:
        return Refusal(Reason.ID_EXISTS, f"There is already an intent with the id {item.id!r}.")
    refusal = groups.check(state, item, item.ties) if item.ties is not None else None
    return dependents.check(state, item) if item.after and refusal is None else refusal


def full_lane(state: State, terms: Terms, lane: Lane | None) -> Refusal | None:
    """Why the lane of a new intent is full, or None. Delayed intents count like those that are due."""
    settings = state.settings
    if lane is not None and not lane.serial:
        pending, limit = lane.pending, settings.lane_pending_max
    elif lane is None and not terms.serial:
        return None
    else:
        pending, limit = state.crowd(terms.lane), settings.entity_pending_max
        live = state.entities + state.resting
        if state.rules < 2:  # only intents that are due, in flight or holding the lane were counted
            pending, live = lane.pending if lane is not None else 0, state.entities
        if not pending and lane is None and live >= settings.entities_max:
            return Refusal(
                Reason.ENTITY_FULL, f"{settings.entities_max} entities are live, the most there may be."
            )
    if terms.lane in state.lane_settings:
        limit = state.lane_settings[terms.lane].pending_max or limit
    if pending < limit:
        return None
    reason = Reason.LANE_FULL if lane is not None and not lane.serial else Reason.ENTITY_FULL
    return Refusal(reason, f"Lane {terms.lane!r} holds {limit} intents, the most it may.")


def _repeated(state: State, item: Item) -> Reply:
    """The intent that this very request created before, or None. Refused if the body differs."""
    assert item.request is not None
    intent = state.store.get(item.id)
    if intent is None or not done_by(intent, item.request):
        return None
    assert intent.rare is not None
    if item.fingerprint and intent.rare.fingerprint not in (0, item.fingerprint):
        text = f"The request id was used before, for {intent.id!r}, with a different body."
        return Refusal(Reason.KEY_REUSED, text, {"intentId": intent.id})
    return Existing(intent)


def _by_key(state: State, item: Item, at_ms: int) -> Reply:
    """The answer of the idempotency key at this time: its intent, a refusal, or None for a new key."""
    assert item.key is not None
    twin = state.store.by_key(item.key)
    if twin is None or twin.created_at_ms + state.settings.key_window_ms <= at_ms:
        return None
    assert twin.rare is not None
    details: dict[str, object] = {"intentId": twin.id}
    if twin.rare.fingerprint != item.fingerprint:
        return Refusal(
            Reason.KEY_REUSED, f"The key {item.key!r} was used before with a different body.", details
        )
    if item.on_duplicate is OnDuplicate.REJECT:
        return Refusal(
            Reason.KEY_FINISHED, f"The key {item.key!r} belongs to the intent {twin.id!r}.", details
        )
    if twin.status in FINAL and item.on_duplicate is not OnDuplicate.RETURN:
        text = f"The key {item.key!r} belongs to {twin.id!r}, which is {twin.status.name}."
        return Refusal(Reason.KEY_FINISHED, text, details)
    return Existing(twin)


def _tied(state: State, terms: Terms, item: Item) -> Reply:
    """The answer of the claim to a new intent: the holder, or the new intent in place of one that waited."""
    known = claims.held(state, item)
    old = claims.waiting(state, item) if known is None else None
    if old is None:
        return known
    assert item.ties is not None, "the one that waits was found by its claim"
    refusal = out_of_reach(old, item.ties.within)
    item = claims.placed(item, old)
    refusal = refusal or admit(state, terms, state.lanes.get(terms.lane), item)
    if refusal is not None:
        return refusal
    claims.end(state, old, item)
    new = make(state, terms, state.lanes.get(terms.lane), item)
    claims.begun(state, new, old)
    return new


def make(state: State, terms: Terms, lane: Lane | None, item: Item) -> Intent:
    """Create an intent that was admitted."""
    at_ms = state.at_ms
    state.seq = seq = state.seq + 1
    execute_at_ms, deadline_ms = item.execute_at_ms, item.deadline_ms
    ties = item.ties
    blocked = item.after or (ties is not None and ties.members)
    if terms.expires_ms and not deadline_ms and not blocked:
        deadline_ms = execute_at_ms + terms.expires_ms
    intent = Intent(seq, item.id, terms, item.payload, SCHEDULED, execute_at_ms, 0, at_ms, at_ms, deadline_ms)
    if ties is not None or (
        item.key is not None
        or item.after
        or item.traceparent is not None
        or item.request is not None
        or item.headers is not None
    ):
        kept = groups.kept(ties)
        intent.rare = Rare(
            item.key,
            item.fingerprint,
            item.after,
            traceparent=item.traceparent,
            ties=kept,
            headers=item.headers,
        )
        remember(intent, item.request)
    intent.expected_ms = item.expected_ms
    state.store.add(intent)
    if lane is None or lane.serial:
        state.count_in(terms)
    else:
        lane.pending += 1
    if ties is not None and ties.group is not None:
        groups.join(state, intent, ties.group)
    if blocked:
        return _make_blocked(state, intent)
    state.alive += 1
    state.tally[terms.tier * 64] += 1
    if state.changes is not None:
        state.changes.append(Change(item.id, None, SCHEDULED, at_ms, 0))
    if execute_at_ms <= at_ms:
        make_due(state, intent, execute_at_ms)
    else:
        state.timers.arm(intent, execute_at_ms)
    return intent


def _make_blocked(state: State, intent: Intent) -> Intent:
    intent.status = BLOCKED
    state.alive += 1
    state.tally[intent.terms.tier * 64 + BLOCKED * 9] += 1
    if state.changes is not None:
        state.changes.append(Change(intent.id, None, BLOCKED, state.at_ms, 0))
    rare = rare_of(intent)
    if rare.ties is not None:
        rare.waiting = rare.ties.members
    decisive = dependents.attach(state, intent)
    if decisive is not None:
        dependents.decide(state, decisive, intent)
    else:
        state.timers.arm(intent, intent.deadline_ms)
        dependents.go_on_if_free(state, intent)
    return intent
