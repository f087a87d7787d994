"""Limits of rate and concurrency, by lane and by any key. Owns the limiters and the intents parked at them.

A *limiter* is shared by all intents with one key: how many of them are in flight, and when the next may go. A
ready intent that may not go is *parked* at its limiter, where it blocks nothing and costs nothing;
it returns to its track when another intent of the limiter ends, or exactly when the next may go. Rates are
true token buckets, stored as one moment (the time at which the bucket would be full again), in whole
nanoseconds.

A limiter with no intents and a full bucket is equal to a missing one, so it may be dropped at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.bounded_cache import BoundedCache
from duetime.kernel import lateness
from duetime.kernel.queues.fairness import Ready
from duetime.kernel.queues.lanes import Lane, Track
from duetime.kernel.queues.parking import Parking
from duetime.kernel.transitions import touch
from duetime.kernel.wake_times import WakeTimes
from duetime.limits import MS_NS, PARKED_WAKES_MAX, TERMS_KEPT
from duetime.protocol.intent import Intent
from duetime.protocol.terms import Limit, Terms

if TYPE_CHECKING:
    from duetime.kernel.state import State

_ALL = 1 << 62


class Limiter:
    """One key's bucket, its intents in flight, and those that wait."""

    __slots__ = ("full_ns", "name", "parked", "running", "wake_ms")

    def __init__(self, name: str) -> None:
        self.name = name
        self.full_ns = 0
        """When the bucket will be full again."""
        self.running = 0
        self.parked: dict[Track, Parking] = {}
        """Parked intents by the track they came from."""
        self.wake_ms = 0
        """The moment, by the flow clock, at which a waiting intent may go; 0: not by time alone."""

    def idle(self, now_ms: int) -> bool:
        return not self.running and not self.parked and self.full_ns <= now_ms * MS_NS


class Hold:
    """One limit of an intent and its limiter, precomputed, because it is checked for every start."""

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
        """The flow clock. Only goes forward: when the engine's clock is set back, buckets keep filling."""
        self.limiters: dict[str, Limiter] = {}
        self.parked = 0
        """The number of parked intents. No decision depends on it."""
        self._wakes = WakeTimes(self._counts)
        self.sweep_at = 1_000
        self._holds = BoundedCache[int, tuple[Terms, list[Hold]]](TERMS_KEPT)
        """Limits of terms, by the identity of the terms object: many intents share one."""
        self._lane_holds: dict[str, Hold] = {}

    def pass_ms(self, ms: int) -> None:
        """Advance the flow clock by this much."""
        if ms > 0:
            self.now_ms += ms

    def wait_ms(self) -> int | None:
        """The time until a waiting intent may go."""
        first_ms = self._wakes.first_ms() if self._wakes else None
        return None if first_ms is None else max(0, first_ms - self.now_ms)

    def due(self) -> list[Limiter]:
        """The limiters whose moment has come."""
        found: list[Limiter] = []
        while self.wait_ms() == 0:
            limiter = self.limiters[self._wakes.take()]
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
            self._wakes.add(wake_ms, limiter.name)

    def holds(self, terms: Terms) -> list[Hold]:
        """The limits of intents on these terms, except those of their lane."""
        kept = self._holds.get(id(terms))
        if kept is not None:
            return kept[1]
        holds = [Hold(self.limiter(f"key:{limit.key}"), limit) for limit in terms.limits or ()]
        self._holds.keep(id(terms), (terms, holds))
        return holds

    def lane_hold(self, name: str, limit: Limit) -> Hold:
        """The limit of all intents of a lane."""
        hold = self._lane_holds.get(name)
        if hold is None or hold.limit is not limit:
            hold = self._lane_holds[name] = Hold(self.limiter(f"lane:{name}"), limit)
        return hold

    def sweep(self) -> None:
        """Drop limiters that no longer matter: there are many more than at the last sweep."""
        kept = [limiter for limiter in self.limiters.values() if not limiter.idle(self.now_ms)]
        self.limiters = {limiter.name: limiter for limiter in kept}
        self.sweep_at = max(1_000, 2 * len(self.limiters))
        self._holds.clear()  # they may name limiters that are dropped
        self._lane_holds.clear()


def limits_of(lane: Lane, intent: Intent) -> list[tuple[str, Limit]]:
    """The limits of an intent, with the names of the limiters."""
    found = [(f"key:{limit.key}", limit) for limit in intent.terms.limits or ()]
    if lane.limit is not None:
        found.append((f"lane:{lane.name}", lane.limit))
    return found


def holds_of(state: State, lane: Lane, intent: Intent) -> list[Hold]:
    """The limits of an intent, with the limiters themselves."""
    flow = state.flow
    holds = flow.holds(intent.terms)
    if lane.limit is not None:
        return [*holds, flow.lane_hold(lane.name, lane.limit)]
    return holds


def blocked(state: State, lane: Lane, holds: list[Hold]) -> Hold | None:
    """The first of these limits that does not let an intent go now."""
    now_ns = state.flow.now_ms * MS_NS
    for hold in holds:
        limiter = hold.limiter
        if hold.concurrency and _running(limiter, hold.limit, lane) >= hold.concurrency:
            return hold
        if limiter.full_ns - hold.slack_ns > now_ns and hold.interval_ns:
            return hold
    return None


def take(state: State, lane: Lane, holds: list[Hold]) -> None:
    """An intent starts: count it, and take its token."""
    flow = state.flow
    now_ns = flow.now_ms * MS_NS
    for hold in holds:
        limiter = hold.limiter
        if hold.limit is not lane.limit:
            limiter.running += 1
        if hold.interval_ns:
            full_ns = limiter.full_ns
            limiter.full_ns = (full_ns if full_ns > now_ns else now_ns) + hold.interval_ns
        if limiter.parked:  # there may be more tokens
            _unpark(state, limiter, 1)
    if len(flow.limiters) >= flow.sweep_at:
        flow.sweep()


def give_back(state: State, lane: Lane, intent: Intent) -> None:
    """An intent is no longer in flight: another of the same limiters may go."""
    waited = lane.limit is not None
    for hold in state.flow.holds(intent.terms):
        limiter = hold.limiter
        limiter.running -= 1
        if limiter.parked:
            waited = True
    if waited:
        pass_on(state, lane, intent)


def pass_on(state: State, lane: Lane, intent: Intent) -> None:
    """An intent no longer needs its place: the next one parked at the same limiters is checked again."""
    for name in (f"lane:{lane.name}", *(f"key:{limit.key}" for limit in intent.terms.limits or ())):
        limiter = state.flow.limiters.get(name)
        if limiter is not None and limiter.parked:
            _unpark(state, limiter, 1)


def park(state: State, track: Track, intent: Intent, limiter: Limiter, limit: Limit) -> None:
    """Park a ready intent at its limiter."""
    touch(state, intent)
    if not intent.waits:  # otherwise a stale entry of an intent that is parked already
        lateness.parked(state, intent)
    intent.waits = limiter.name
    place(track, intent, limiter)
    if limit.rate:
        _arm(state, limiter, limit)
    pass_on(state, track.lane, intent)  # it may have had its turn at another limiter


def place(track: Track, intent: Intent, limiter: Limiter) -> None:
    """Insert a parked intent into its limiter's queue."""
    parking = limiter.parked.get(track)
    if parking is None:
        parking = limiter.parked[track] = Parking(track, limiter.name)
    parking.push(intent)


def wake(state: State) -> None:
    """Make intents ready that waited for this moment."""
    for limiter in state.flow.due():
        _unpark(state, limiter, PARKED_WAKES_MAX)


def resume(state: State, lane: Lane) -> None:
    """The limits of a lane have changed: check the intents that wait for it again."""
    limiter = state.flow.limiters.get(f"lane:{lane.name}")
    if limiter is not None:
        _unpark(state, limiter, _ALL)


def rearm(state: State) -> None:
    """After a restart: set when each limiter checks its parked intents again."""
    for limiter in state.flow.limiters.values():
        _rearm(state, limiter)


def _rearm(state: State, limiter: Limiter) -> None:
    """Check the remaining intents again when the first of each track may go."""
    for track, parking in limiter.parked.items():
        first = parking.first()
        for name, limit in limits_of(track.lane, first[2]) if first is not None else ():
            if name == limiter.name and limit.rate:
                _arm(state, limiter, limit)


def _running(limiter: Limiter, limit: Limit, lane: Lane) -> int:
    """The number in flight. A lane counts its own, including those started before it had a limit."""
    return lane.running if limit is lane.limit else limiter.running


def _free_ns(limiter: Limiter, limit: Limit) -> int:
    """When the next token is available."""
    return limiter.full_ns - (limit.burst - 1) * limit.interval_ns


def _arm(state: State, limiter: Limiter, limit: Limit) -> None:
    """Arm for the next token. If there is one already, the intent that came back for it goes first."""
    free_ms = -(-_free_ns(limiter, limit) // MS_NS)
    if free_ms > state.flow.now_ms:
        state.flow.arm(limiter, free_ms)


def _unpark(state: State, limiter: Limiter, most: int) -> None:
    """Let the first of each track be checked again, as many as there is room for. Tracks are ordered by their
    first intent, so the order does not depend on the order of parking."""
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
            left = min(left, 1)  # the next by turns is known only when this one has gone
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
    """How many could go now, by the limits of the first intent that waits. No limit any more: it may go."""
    for name, limit in limits_of(track.lane, first):
        if name == limiter.name:
            room = PARKED_WAKES_MAX
            if limit.concurrency:
                room = min(room, limit.concurrency - _running(limiter, limit, track.lane))
            if limit.rate:
                free_ns = state.flow.now_ms * MS_NS - _free_ns(limiter, limit)
                room = min(room, limit.burst, free_ns // limit.interval_ns + 1)
            return max(0, room)
    return _ALL
