"""State -> views. Reads only."""

from __future__ import annotations

from typing import Any

from duetime.kernel.queues.lanes import Lane
from duetime.kernel.reasons import why
from duetime.kernel.state import State
from duetime.protocol.intent import ACKED, SCHEDULED, Intent, Rare, Status, member_id
from duetime.protocol.terms import Tier
from duetime.protocol.view import LaneView, Overview, Parent, TierView, View

__all__ = ["lane_view", "overview", "parents", "view", "why"]

_NO_RARE = Rare()


def result_gone(intent: Intent, now_ms: int) -> bool:
    """Whether the time for which its result is shown is over."""
    ttl_ms = intent.terms.result_ttl_ms
    return 0 < ttl_ms <= now_ms - intent.finished_at_ms and intent.status is ACKED


def view(intent: Intent, now_ms: int = 0) -> View:
    """A copy for a reader, as of this moment."""
    rare = intent.rare if intent.rare is not None else _NO_RARE
    gone = result_gone(intent, now_ms)
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
        result=None if gone else rare.result,
        key=rare.key,
        after=rare.after,
        traceparent=rare.traceparent,
        result_gone=gone,
        limited_ms=limited_ms(intent, now_ms),
        claim=rare.ties.claim if rare.ties is not None else None,
        **_group(rare),
    )


def limited_ms(intent: Intent, now_ms: int) -> int:
    """How long it waited for a limit; up to now if it still waits."""
    known_ms = intent.limited_ms
    return known_ms if known_ms >= 0 else max(0, known_ms + now_ms)


def _group(rare: Rare) -> dict[str, Any]:
    if rare.ties is None:
        return {}
    members = rare.ties.members
    left = rare.waiting if members else 0
    return {"group": rare.ties.group, "members": members, "joined": rare.joined, "left": left}


def parents(
    state: State, intent: Intent, first: int, limit: int, bytes_max: int, now_ms: int
) -> list[Parent]:
    """Its parents, or the members of its group, in order; fewer than `limit` where they are large."""
    rare = intent.rare if intent.rare is not None else _NO_RARE
    ids: list[str] = list(rare.after[first : first + limit])
    if rare.ties is not None and rare.ties.members:
        ids = [member_id(intent.id, number) for number in range(first, min(first + limit, rare.joined))]
    found: list[Parent] = []
    for id in ids:
        parent = state.store.get(id)
        result = parent.rare.result if parent is not None and parent.rare is not None else None
        if parent is not None and result_gone(parent, now_ms):
            result = None
        found.append(Parent(id, None if parent is None else parent.status, result))
        bytes_max -= len(result or b"")
        if bytes_max < 0:
            break
    return found


def lane_view(lane: Lane, waiting: int = 0) -> LaneView:
    """One lane in numbers. `waiting`: messages of an entity that are not due yet (see `State.waiting`)."""
    return LaneView(
        name=lane.name,
        serial=lane.serial,
        pushed=lane.pushed,
        paused=lane.paused,
        pending=lane.pending + waiting,
        ready=sum(len(track) for track in lane.tracks),
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
        entities=state.entities + state.resting,
        cohorts=state.timers.cohorts,
        stale_outcomes=state.stale,
        next_ms=next_ms,
    )
