"""Entities of one type, for workers that take messages of any of them. Owns `state.kinds`.

A worker that asks for the entities of a type asks for the lane `entities:TYPE`: it has credits and turns like
any pulled lane, but never holds intents. A heap for each type holds the serial lanes that could hand out a
message now, ordered by the rank of that message. So nothing walks all entities of a type, and the order is
the same after a restart, because it is derived from the intents.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from duetime.kernel.queues.lanes import Listing, Track, rank_of
from duetime.protocol.intent import Intent
from duetime.protocol.terms import type_lane

if TYPE_CHECKING:
    from duetime.kernel.state import State

# A heap is compacted when it has more stale entries than valid ones, plus this many.
_STALE = 64


class Kind:
    """The entities of one type that could hand out a message."""

    __slots__ = ("heap", "ready")

    def __init__(self) -> None:
        self.heap: list[Listing] = []
        """An entry is valid while its track is listed under it; any other is stale."""
        self.ready = 0
        """The number of valid entries."""

    @property
    def tracks(self) -> list[Track]:
        """The listed tracks, in no order. For inspection, not for the hot path."""
        return [entry[2] for entry in self.heap if entry[2].listed is entry]


def offer(state: State, track: Track) -> None:
    """A pulled serial lane changed: list it if it can hand out a message, otherwise remove it."""
    head, listed = track.head(), track.listed
    if head is None:
        if listed is not None:
            withdraw(state, track)
        return
    name = type_of(track.lane.name)
    kind = state.kinds.get(name)
    if kind is None:
        kind = state.kinds[name] = Kind()
    intent = head[2]
    place = (rank_of(intent, serial=False), intent.seq)
    if listed is None or listed[:2] != place:
        kind.ready += listed is None
        track.listed = entry = (*place, track)
        heappush(kind.heap, entry)
        _tidy(kind)
    state.eager[name] = None


def withdraw(state: State, track: Track) -> None:
    """A listed entity can no longer hand out anything."""
    kind = state.kinds[type_of(track.lane.name)]
    track.listed = None
    kind.ready -= 1
    _tidy(kind)


def first(state: State, name: str) -> tuple[Track, Intent] | None:
    """Remove and return the first ready message of a type: the caller hands it out, or ends it, now."""
    kind = state.kinds[name]
    while kind.heap:
        entry = heappop(kind.heap)
        _, seq, track = entry
        if track.listed is not entry:
            continue
        track.listed = None
        kind.ready -= 1
        head = track.head()
        if head is not None and head[1] == seq:
            return track, head[2]
        # A consumer that asked for this one entity has it: its lane is stirred when that delivery ends.
    return None


def type_of(lane: str) -> str:
    """The lane of an entity's type: `entity:TYPE/ID` is of `entities:TYPE`."""
    return type_lane(lane.partition(":")[2].partition("/")[0])


def _tidy(kind: Kind) -> None:
    if len(kind.heap) > 2 * kind.ready + _STALE:
        kind.heap = [entry for entry in kind.heap if entry[2].listed is entry]
        heapify(kind.heap)
