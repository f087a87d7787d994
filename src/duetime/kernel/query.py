"""State -> views. Reads only."""

from __future__ import annotations

from duetime.kernel.queues.lanes import Lane
from duetime.kernel.reasons import why
from duetime.kernel.state import State
from duetime.protocol.intent import Intent, Rare, Status, member_id
from duetime.protocol.terms import Tier
from duetime.protocol.view import LaneView, Overview, Parent, TierView, result_gone

__all__ = ["lane_view", "overview", "parents", "why"]

_NO_RARE = Rare()


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
