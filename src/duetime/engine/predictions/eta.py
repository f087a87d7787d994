"""When an intent that waits behind others will go: how many are ahead, and how long they take.

An estimate: it uses the mean duration of the lane and the number of deliveries now in flight. The
kernel says why an intent waits; the shell adds this estimate, because it knows the durations.
"""

from __future__ import annotations

from msgspec.structs import replace

from duetime.duration_text import span
from duetime.engine.predictions.durations import Durations
from duetime.kernel.queues.lanes import Lane, rank_of
from duetime.kernel.state import State
from duetime.limits import ETA_COUNTED_MAX, PREDICT_ENOUGH
from duetime.protocol.intent import DUE, Intent
from duetime.protocol.view import Why

# Reasons for waiting that end when other deliveries end.
_QUEUED = frozenset({"workers-busy", "waiting-for-turn", "no-permit", "host-busy"})


def with_eta(why: Why, state: State, intent: Intent, durations: Durations) -> Why:
    """The reason, with the approximate time until its turn, if that is known."""
    lane = state.lanes.get(intent.terms.lane)
    if why.code not in _QUEUED or lane is None or not lane.running:
        return why
    sketch = durations.lane(lane.name)
    if sketch is None or sketch.count < PREDICT_ENOUGH:
        return why
    ahead = ahead_of(lane, intent)
    wait_ms = round((ahead + 1) * sketch.mean_ms / lane.running)
    many = "Nobody is" if not ahead else "1 other is" if ahead == 1 else f"{ahead:,} others are"
    text = f"{why.sentence} {many} ahead of it in its lane; its turn comes in about {span(wait_ms)}."
    return replace(why, sentence=text, data=why.data | {"ahead": ahead, "eta_ms": wait_ms})


def ahead_of(lane: Lane, intent: Intent) -> int:
    """The number of intents of its lane that go before it."""
    tracks = lane.tracks
    total = sum(map(len, tracks))
    if total > ETA_COUNTED_MAX:
        heads = [head[1] for track in tracks if (head := track.head()) is not None]
        return min(total, max(0, intent.seq - min(heads, default=intent.seq)))
    place = (rank_of(intent, lane.serial), intent.seq)
    return sum(
        entry[2].status is DUE and entry[2] is not intent and (entry[0], entry[1]) < place
        for track in tracks
        for entry in track.ready
    )
