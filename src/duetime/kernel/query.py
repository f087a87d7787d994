"""State -> views. Reads only; `why` says in one sentence why an intent has not run yet."""

from __future__ import annotations

from duetime.kernel.lanes import Lane
from duetime.kernel.state import State
from duetime.limits import TIER_NAMES
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DISPATCHING,
    DUE,
    EXPIRED,
    SCHEDULED,
    Intent,
    Rare,
    Status,
)
from duetime.protocol.terms import Tier
from duetime.protocol.view import LaneView, Overview, TierView, View, Why

_NO_RARE = Rare()


def view(intent: Intent) -> View:
    """A copy for a reader."""
    rare = intent.rare if intent.rare is not None else _NO_RARE
    return View(
        seq=intent.seq,
        id=intent.id,
        status=intent.status,
        terms=intent.terms,
        payload=intent.payload,
        execute_at_ms=intent.execute_at_ms,
        deadline_ms=intent.deadline_ms,
        created_at_ms=intent.created_at_ms,
        updated_at_ms=intent.updated_at_ms,
        attempts=intent.attempt,
        delivery=intent.delivery,
        revision=intent.revision,
        due_at_ms=intent.due_at_ms,
        first_dispatch_at_ms=intent.first_dispatch_at_ms,
        finished_at_ms=intent.finished_at_ms,
        next_attempt_at_ms=intent.wake_at_ms if intent.status is SCHEDULED else 0,
        late_ms=intent.late_ms if intent.late_ms >= 0 else None,
        last_error=rare.last_error,
        result=rare.result,
        key=rare.key,
        after=rare.after,
        traceparent=rare.traceparent,
    )


def why(state: State, intent: Intent, now_ms: int) -> Why:
    """Why it has not run yet, or how it ended."""
    status = intent.status
    if status is SCHEDULED:
        return _why_scheduled(intent, now_ms)
    if status is DUE:
        return _why_due(state, intent)
    if status is DISPATCHING:
        who = f"by {intent.consumer!r}" if intent.consumer else "by this engine"
        data: dict[str, object] = {"delivery": intent.delivery, "since_ms": intent.dispatched_at_ms}
        if intent.consumer:
            data["lease_until_ms"] = intent.wake_at_ms
        return Why("running", f"It is being run {who}, delivery {intent.delivery}.", data)
    rare = intent.rare if intent.rare is not None else _NO_RARE
    if status is BLOCKED:
        waits = [id for id in rare.after if not _acked(state, id)]
        return Why("blocked", f"It waits for {len(waits)} other intent(s).", {"after": waits})
    if status in (ACKED, CANCELED, EXPIRED):
        return Why(status.name.lower(), f"It has ended: {status.name}.", {"at_ms": intent.finished_at_ms})
    error = rare.last_error
    assert error is not None, "a dead letter always has its reason"
    sentence = f"It is a dead letter after {intent.attempt} attempt(s): {error.message}"
    return Why("dead-lettered", sentence, {"kind": error.kind, "at_ms": error.at_ms})


def _acked(state: State, id: str) -> bool:
    parent = state.store.get(id)
    return parent is not None and parent.status is ACKED


def _why_scheduled(intent: Intent, now_ms: int) -> Why:
    wait_ms = max(0, intent.wake_at_ms - now_ms)
    data: dict[str, object] = {"wake_at_ms": intent.wake_at_ms, "wait_ms": wait_ms}
    if intent.rare is not None and intent.rare.last_error is not None and intent.attempt:
        data["attempts"] = intent.attempt
        text = f"It waits {wait_ms} ms for attempt {intent.attempt + 1}: {intent.rare.last_error.message}"
        return Why("waiting-for-retry", text, data)
    return Why("waiting-for-time", f"Its time has not come: {wait_ms} ms to go.", data)


def _why_due(state: State, intent: Intent) -> Why:
    lane = state.lanes[intent.terms.lane]
    data: dict[str, object] = {"lane": lane.name, "due_at_ms": intent.due_at_ms}
    if lane.paused:
        return Why("paused", f"Its lane {lane.name!r} is paused.", data)
    if lane.holder is not None and lane.holder is not intent:
        data["held_by"] = lane.holder.id
        return Why("entity-busy", f"{lane.holder.id!r} goes first: one at a time, in order.", data)
    if intent.waits:
        kind, _, name = intent.waits.partition(":")
        limiter = state.flow.limiters[intent.waits]
        data["limit"], data["running"] = name, limiter.running
        if limiter.wake_ms:
            data["next_at_ms"] = state.at_ms + max(0, limiter.wake_ms - state.flow.now_ms)
        what = f"the limit {name!r}" if kind == "key" else f"the limit of its lane {name!r}"
        return Why("limited", f"It waits for {what}.", data)
    if not lane.pushed:
        if not lane.turns:
            return Why("no-worker", f"No worker asks for the lane {lane.name!r}.", data)
        return Why("waiting-for-turn", "Others in its lane go first.", data)
    tier = state.tiers.all[intent.terms.tier]
    track = lane.track(intent.terms.tier)
    if lane.polite and tier.used < tier.max and tier.held_back(track):
        data["out"] = track.out
        text = f"{track.out} callbacks to its host are under way, and the rest of the permits is for others."
        return Why("host-busy", text, data)
    data["permits_max"], data["used"] = tier.max, tier.used
    name = TIER_NAMES[intent.terms.tier]
    return Why("no-permit", f"All {tier.max} permits of {name} are in use, or others go first.", data)


def lane_view(lane: Lane) -> LaneView:
    """One lane in numbers."""
    return LaneView(
        name=lane.name,
        serial=lane.serial,
        pushed=lane.pushed,
        paused=lane.paused,
        pending=lane.pending,
        ready=sum(len(track) for track in lane.tracks.values()),
        running=lane.running,
        consumers=len(lane.turns),
    )


def overview(state: State, next_ms: int | None) -> Overview:
    """The whole state in numbers."""
    counts = state.counts
    return Overview(
        at_ms=state.at_ms,
        records=state.records,
        epoch=state.epoch,
        counts={status.name: counts[status] for status in Status},
        tiers=tuple(
            TierView(Tier(number).name, tier.max, tier.used, tier.lent, tier.borrows)
            for number, tier in enumerate(state.tiers.all)
        ),
        lanes=len(state.lanes),
        entities=state.entities,
        cohorts=state.timers.cohorts,
        stale_outcomes=state.stale,
        next_ms=next_ms,
    )
