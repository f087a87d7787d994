"""Limits of rate and concurrency, by lane and by any key. Owns the limiters and who waits for them.

A *limiter* is what all intents with one key share: how many of them are out, and when the next may go. A
ready intent that may not go is *parked* with its limiter, so that it is in nobody's way and costs nothing;
it comes back into its track when one of its kind ends, or exactly when the next may go. Rates are true
token buckets, kept as one moment (the time at which the bucket would be full again), in whole nanoseconds.

A limiter that holds nobody and whose bucket is full means the same as none, so it may be dropped at any time.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from duetime.kernel import lateness
from duetime.kernel.queues.fairness import Ready
from duetime.kernel.queues.lanes import Lane, Track
from duetime.kernel.queues.parking import Parking
from duetime.kernel.transitions import touch
from duetime.protocol.intent import Intent
from duetime.protocol.terms import Limit, Terms

if TYPE_CHECKING:
    from duetime.kernel.state import State

_MS_NS = 1_000_000
# Parked intents that come back at one wake-up, at most: the rest follows with the next record.
_TOGETHER = 1_000
_ALL = 1 << 62
# Terms whose limiters are known at once.
_HOLDS_KEPT = 4_096


class Limiter:
    """One key's bucket, its intents that are out, and those that wait."""

    __slots__ = ("full_ns", "name", "parked", "running", "wake_ms")

    def __init__(self, name: str) -> None:
        self.name = name
        self.full_ns = 0
        """When the bucket will be full again."""
        self.running = 0
        self.parked: dict[Track, Parking] = {}
        """By the track they came from."""
        self.wake_ms = 0
        """The moment, by the flow's own clock, at which somebody who waits may go; 0: not by time alone."""

    def idle(self, now_ms: int) -> bool:
        return not self.running and not self.parked and self.full_ns <= now_ms * _MS_NS


class Hold:
    """One limit of an intent at its limiter, ready to be looked at: this is done for every start."""

    __slots__ = ("concurrency", "interval_ns", "limit", "limiter", "slack_ns")

    def __init__(self, limiter: Limiter, limit: Limit) -> None:
        self.limiter = limiter
        self.limit = limit
        self.concurrency = limit.concurrency
        self.interval_ns = limit.interval_ns if limit.rate else 0
        self.slack_ns = (limit.burst - 1) * self.interval_ns
        """How long before the bucket is full there is a token."""


class Flow:
    """All limiters."""

    def __init__(self) -> None:
        self.now_ms = 0
        """A clock that only goes forward: when the engine's is set back, buckets go on filling from there."""
        self.limiters: dict[str, Limiter] = {}
        self.parked = 0
        """How many wait for a limiter. Nothing is decided by it."""
        self.wakes: list[tuple[int, str]] = []
        """A heap of (moment, limiter); an entry counts while it is the limiter's own `wake_ms`."""
        self.sweep_at = 1_000
        self._holds: dict[int, tuple[Terms, list[Hold]]] = {}
        """Of terms, by the object: many intents share it."""
        self._lane_holds: dict[str, Hold] = {}

    def pass_ms(self, ms: int) -> None:
        """So much time has passed."""
        if ms > 0:
            self.now_ms += ms

    def wait_ms(self) -> int | None:
        """How long it is until somebody who waits may go."""
        wakes = self.wakes
        while wakes and not self._counts(*wakes[0]):
            heappop(wakes)
        return max(0, wakes[0][0] - self.now_ms) if wakes else None

    def due(self) -> list[Limiter]:
        """The limiters whose moment has come."""
        found: list[Limiter] = []
        while self.wait_ms() == 0:
            limiter = self.limiters[heappop(self.wakes)[1]]
            limiter.wake_ms = 0
            found.append(limiter)
        return found

    def _counts(self, wake_ms: int, name: str) -> bool:
        limiter = self.limiters.get(name)
        return limiter is not None and limiter.wake_ms == wake_ms

    def limiter(self, name: str) -> Limiter:
        found = self.limiters.get(name)
        if found is None:
            found = self.limiters[name] = Limiter(name)
        return found

    def arm(self, limiter: Limiter, wake_ms: int) -> None:
        """Look at the limiter at this moment, unless it is looked at before."""
        if not limiter.wake_ms or wake_ms < limiter.wake_ms:
            limiter.wake_ms = wake_ms
            heappush(self.wakes, (wake_ms, limiter.name))

    def holds(self, terms: Terms) -> list[Hold]:
        """What intents on these terms are limited by, but for their lane."""
        kept = self._holds.get(id(terms))
        if kept is not None and kept[0] is terms:
            return kept[1]
        holds = [Hold(self.limiter(f"key:{limit.key}"), limit) for limit in terms.limits or ()]
        if len(self._holds) >= _HOLDS_KEPT:
            self._holds.clear()
        self._holds[id(terms)] = (terms, holds)
        return holds

    def lane_hold(self, name: str, limit: Limit) -> Hold:
        """What all intents of a lane are limited by."""
        hold = self._lane_holds.get(name)
        if hold is None or hold.limit is not limit:
            hold = self._lane_holds[name] = Hold(self.limiter(f"lane:{name}"), limit)
        return hold

    def sweep(self) -> None:
        """Drop limiters that mean nothing any more: there are many more than at the last look."""
        kept = [limiter for limiter in self.limiters.values() if not limiter.idle(self.now_ms)]
        self.limiters = {limiter.name: limiter for limiter in kept}
        self.sweep_at = max(1_000, 2 * len(self.limiters))
        self._holds.clear()  # they may name limiters that are dropped
        self._lane_holds.clear()


def limits_of(lane: Lane, intent: Intent) -> list[tuple[str, Limit]]:
    """What an intent is limited by, with the names of the limiters."""
    found = [(f"key:{limit.key}", limit) for limit in intent.terms.limits or ()]
    if lane.limit is not None:
        found.append((f"lane:{lane.name}", lane.limit))
    return found


def holds_of(state: State, lane: Lane, intent: Intent) -> list[Hold]:
    """What an intent is limited by, with the limiters themselves."""
    flow = state.flow
    holds = flow.holds(intent.terms)
    if lane.limit is not None:
        return [*holds, flow.lane_hold(lane.name, lane.limit)]
    return holds


def blocked(state: State, lane: Lane, holds: list[Hold]) -> Hold | None:
    """The first of these that does not let an intent go now."""
    now_ns = state.flow.now_ms * _MS_NS
    for hold in holds:
        limiter = hold.limiter
        if hold.concurrency and _running(limiter, hold.limit, lane) >= hold.concurrency:
            return hold
        if limiter.full_ns - hold.slack_ns > now_ns and hold.interval_ns:
            return hold
    return None


def take(state: State, lane: Lane, holds: list[Hold]) -> None:
    """An intent goes out: it counts, and takes its token."""
    flow = state.flow
    now_ns = flow.now_ms * _MS_NS
    for hold in holds:
        limiter = hold.limiter
        if hold.limit is not lane.limit:
            limiter.running += 1
        if hold.interval_ns:
            full_ns = limiter.full_ns
            limiter.full_ns = (full_ns if full_ns > now_ns else now_ns) + hold.interval_ns
        if limiter.parked:  # there may be more where that came from
            _unpark(state, limiter, 1)
    if len(flow.limiters) >= flow.sweep_at:
        flow.sweep()


def give_back(state: State, lane: Lane, intent: Intent) -> None:
    """An intent is no longer out: one of its kind may go instead."""
    waited = lane.limit is not None
    for hold in state.flow.holds(intent.terms):
        limiter = hold.limiter
        limiter.running -= 1
        if limiter.parked:
            waited = True
    if waited:
        pass_on(state, lane, intent)


def pass_on(state: State, lane: Lane, intent: Intent) -> None:
    """An intent does not need its place any more: the next who waits for the same limiters looks again."""
    for name in (f"lane:{lane.name}", *(f"key:{limit.key}" for limit in intent.terms.limits or ())):
        limiter = state.flow.limiters.get(name)
        if limiter is not None and limiter.parked:
            _unpark(state, limiter, 1)


def park(state: State, track: Track, intent: Intent, limiter: Limiter, limit: Limit) -> None:
    """A ready intent waits for its limiter."""
    touch(state, intent)
    if not intent.waits:  # otherwise a stale entry of it came by, while it waits already
        lateness.parked(state, intent)
    intent.waits = limiter.name
    place(track, intent, limiter)
    if limit.rate:
        _arm(state, limiter, limit)
    pass_on(state, track.lane, intent)  # perhaps it was its turn with another one


def place(track: Track, intent: Intent, limiter: Limiter) -> None:
    """Put a parked intent where it waits."""
    parking = limiter.parked.get(track)
    if parking is None:
        parking = limiter.parked[track] = Parking(track, limiter.name)
    parking.push(intent)


def wake(state: State) -> None:
    """Whoever waited for this moment is ready again."""
    for limiter in state.flow.due():
        _unpark(state, limiter, _TOGETHER)


def resume(state: State, lane: Lane) -> None:
    """The limits of a lane are others now: whoever waits for it looks again."""
    limiter = state.flow.limiters.get(f"lane:{lane.name}")
    if limiter is not None:
        _unpark(state, limiter, _ALL)


def rearm(state: State) -> None:
    """After a restart: when does who waits look again?"""
    for limiter in state.flow.limiters.values():
        _rearm(state, limiter)


def _rearm(state: State, limiter: Limiter) -> None:
    """Those who still wait look again when the first of each track may go."""
    for track, parking in limiter.parked.items():
        first = parking.first()
        for name, limit in limits_of(track.lane, first[2]) if first is not None else ():
            if name == limiter.name and limit.rate:
                _arm(state, limiter, limit)


def _running(limiter: Limiter, limit: Limit, lane: Lane) -> int:
    """How many are out. A lane counts its own, also those that went before it had a limit."""
    return lane.running if limit is lane.limit else limiter.running


def _free_ns(limiter: Limiter, limit: Limit) -> int:
    """When the next token is there."""
    return limiter.full_ns - (limit.burst - 1) * limit.interval_ns


def _arm(state: State, limiter: Limiter, limit: Limit) -> None:
    """When there is a token already, whoever came back for it goes first, and looks for the next then."""
    free_ms = -(-_free_ns(limiter, limit) // _MS_NS)
    if free_ms > state.flow.now_ms:
        state.flow.arm(limiter, free_ms)


def _unpark(state: State, limiter: Limiter, most: int) -> None:
    """Let the first of each track look again, as many as there is room for. Tracks in the order of their
    first, which does not depend on who was parked when."""
    firsts: list[tuple[Ready, Parking]] = []
    for track, parking in list(limiter.parked.items()):
        first = parking.first()
        if first is None:
            del limiter.parked[track]
        else:
            firsts.append((first, parking))
    for first, parking in sorted(firsts, key=_by_place):
        track = parking.track
        left = min(most, _room(state, limiter, track, first[2]))
        if track.shares is not None and left < _ALL:
            left = min(left, 1)  # whose turn is next is known when this one has gone
        waiting: Ready | None = first
        while left and waiting is not None:
            parking.pop(waiting)
            intent = waiting[2]
            touch(state, intent)
            intent.waits = ""
            lateness.unparked(state, intent)
            track.push(intent)
            state.stirred[track] = None
            left -= 1
            waiting = parking.first()
        if waiting is None:
            del limiter.parked[track]
    _rearm(state, limiter)


def _by_place(entry: tuple[Ready, Parking]) -> tuple[int, int]:
    return entry[0][:2]


def _room(state: State, limiter: Limiter, track: Track, first: Intent) -> int:
    """How many could go now, by the limits of the first who waits. Whoever has none any more may go."""
    for name, limit in limits_of(track.lane, first):
        if name == limiter.name:
            room = _TOGETHER
            if limit.concurrency:
                room = min(room, limit.concurrency - _running(limiter, limit, track.lane))
            if limit.rate:
                free_ns = state.flow.now_ms * _MS_NS - _free_ns(limiter, limit)
                room = min(room, limit.burst, free_ns // limit.interval_ns + 1)
            return max(0, room)
    return _ALL
