"""A lane changes between pushed and pulled: its intents move to other tracks."""

from __future__ import annotations

from duetime.kernel import lateness
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.protocol.intent import Intent


def regroup(state: State, lane: Lane, *, pushed: bool) -> None:
    """Remove all intents and insert them again. Where keys take turns, all keys start equal again."""
    due = _due(state, lane)
    for track in lane.tracks:
        track.clear()
        track.listed = None  # its listing in the tiers is stale
    lane.tracks, lane.pushed = (), pushed
    for _, intent in sorted(due.items()):
        track = lane.track(intent.terms.tier)
        if intent.terms.fairness_key is not None:
            track.share().come(intent)
        if intent.waits:  # another may be first at a limiter now: all are checked again
            touch(state, intent)
            intent.waits = ""
            lateness.unparked(state, intent)
        track.push(intent)
    for intent in state.out[""].values():
        if intent.terms.lane == lane.name:
            lane.track(intent.terms.tier).out += 1


def _due(state: State, lane: Lane) -> dict[int, Intent]:
    """All due intents of a lane, by seq; none is parked any more."""
    found: dict[int, Intent] = {}
    for track in lane.tracks:
        found |= {entry[1]: entry[2] for entry in track.ready if track.counts(entry)}
        for limiter in state.flow.limiters.values():
            parking = limiter.parked.pop(track, None)
            if parking is not None:
                found |= {entry[1]: entry[2] for entry in parking.entries if parking.counts(entry)}
    return found
