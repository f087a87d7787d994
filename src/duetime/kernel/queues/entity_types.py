"""Entities of one type, for workers that take any of them. Owns `state.kinds`.

Whoever asks for the entities of a type asks for the lane `entities:TYPE`: credits and turns are there, as in
any lane that is pulled; intents never are. What is ready stands in a heap for each type: the serial lanes
that could hand out a message now, by the place of that message among all of them. So nothing walks the
entities of a type, and the order is the same after a restart: it is read off the intents.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from duetime.kernel.queues.lanes import Place, Track, rank_of
from duetime.protocol.intent import Intent
from duetime.protocol.terms import type_lane

if TYPE_CHECKING:
    from duetime.kernel.state import State

# Stale entries are left in a heap until they are as many as the others, and so many more.
_STALE = 64


class Kind:
    """The entities of one type that could hand out a message."""

    __slots__ = ("heap", "ready")

    def __init__(self) -> None:
        self.heap: list[Place] = []
        """An entry counts while its track is listed under it; any other is stale."""
        self.ready = 0
        """How many count."""

    @property
    def tracks(self) -> list[Track]:
        """Those of the entities, in no order. For looking at, not for the way of an intent."""
        return [entry[2] for entry in self.heap if entry[2].listed is entry]


def offer(state: State, track: Track) -> None:
    """Something changed in a serial lane that is pulled: it can hand out a message, or no longer."""
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
    """An entity that is listed can hand out nothing any more."""
    kind = state.kinds[type_of(track.lane.name)]
    track.listed = None
    kind.ready -= 1
    _tidy(kind)


def first(state: State, name: str) -> tuple[Track, Intent] | None:
    """Take out the first of a type's ready messages: it is to be handed out, or to end, now."""
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
        # Somebody who asked for this one entity has it: its lane is stirred when that ends.
    return None


def type_of(lane: str) -> str:
    """The lane of an entity's type: `entity:TYPE/ID` is of `entities:TYPE`."""
    return type_lane(lane.partition(":")[2].partition("/")[0])


def _tidy(kind: Kind) -> None:
    if len(kind.heap) > 2 * kind.ready + _STALE:
        kind.heap = [entry for entry in kind.heap if entry[2].listed is entry]
        heapify(kind.heap)
