"""A lane is pushed from now on, or pulled: its intents stand in other tracks."""

from __future__ import annotations

from duetime.kernel import lateness
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.protocol.intent import Intent


def regroup(state: State, lane: Lane, *, pushed: bool) -> None:
    """Take everyone out and put them in again. Where keys take turns, everyone begins equal again."""
    due = _due(state, lane)
    for track in lane.tracks:
        track.clear()
        track.listed = None  # what the tiers know of it is stale
    lane.tracks, lane.pushed = (), pushed
    for _, intent in sorted(due.items()):
        track = lane.track(intent.terms.tier)
        if intent.terms.fairness_key is not None:
            track.share().come(intent)
        if intent.waits:  # whoever is first with a limiter may be another one now: all look again
            touch(state, intent)
            intent.waits = ""
            lateness.unparked(state, intent)
        track.push(intent)
    for intent in state.out[""].values():
        if intent.terms.lane == lane.name:
            lane.track(intent.terms.tier).out += 1


def _due(state: State, lane: Lane) -> dict[int, Intent]:
    """All who are due in a lane, by their number; nobody is parked any more."""
    found: dict[int, Intent] = {}
    for track in lane.tracks:
        found |= {entry[1]: entry[2] for entry in track.ready if track.counts(entry)}
        for limiter in state.flow.limiters.values():
            parking = limiter.parked.pop(track, None)
            if parking is not None:
                found |= {entry[1]: entry[2] for entry in parking.entries if parking.counts(entry)}
    return found
