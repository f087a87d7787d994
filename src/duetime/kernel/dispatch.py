"""Hand out what is ready: pushed deliveries as tier permits allow, pulled ones as consumers ask.

Runs after each record and touches only the tracks that the record stirred and the tiers that have
something listed. Own permits are used first, in the order of the tiers; only then is borrowed.
"""

from __future__ import annotations

from heapq import heappop, heappush

from duetime.kernel import flow, kinds, lateness
from duetime.kernel.lanes import Lane, Track, rank_of
from duetime.kernel.readying import unfit
from duetime.kernel.state import State
from duetime.kernel.tiers import Permits
from duetime.kernel.transitions import move
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import DISPATCHING, Intent


def hand_out(state: State) -> None:
    """Everything that may go now, goes now."""
    if state.draining:
        state.stirred.clear()
        state.eager.clear()
        return
    # An expiry on the way may stir another track, so go on until nothing is stirred.
    while True:
        stirred = state.stirred
        state.stirred = {}
        pulled: dict[str, Lane] = {}
        for track in stirred:
            if track.lane.pushed:
                _list(state, track)
            else:
                pulled[track.lane.name] = track.lane
                if track.lane.serial:
                    kinds.offer(state, track)
        for name in sorted(pulled):  # the order of stirring is not the same after a restart
            _pull(state, pulled[name])
        if state.eager:
            _pull_kinds(state)
        _push(state)
        if not state.stirred:
            return


def _list(state: State, track: Track) -> None:
    """Tell the tier of the track's first intent that it is ready."""
    head = track.head()
    if head is None:
        track.listed = None
        return
    rank, seq, intent = head
    if track.lane.serial:
        rank = rank_of(intent, serial=False)  # its place in its lane means nothing among other lanes
    place = (rank, seq)
    if track.listed != place:
        track.listed = place
        heappush(state.tiers.all[intent.terms.tier].tracks, (rank, seq, track))


def _push(state: State) -> None:
    tiers = state.tiers
    hungry = [(tier, permits) for tier, permits in enumerate(tiers.all) if permits.tracks]
    for tier, permits in hungry:
        aside: list[tuple[int, int, Track]] = []
        while permits.tracks and (permits.used < permits.max or permits.packable()):
            _push_first(state, permits, tier, aside)
        for entry in aside:
            heappush(permits.tracks, entry)
    for tier, permits in hungry:
        aside = []
        while permits.tracks and (lender := tiers.lender(tier)) >= 0:
            _push_first(state, permits, lender, aside)
        for entry in aside:
            heappush(permits.tracks, entry)


def _push_first(state: State, permits: Permits, permit: int, aside: list[tuple[int, int, Track]]) -> None:
    """Hand out from the first track, or put it aside: those behind it may go where it may not."""
    track, lent = permits.tracks[0][2], state.tiers.all[permit]
    # Packed deliveries share their own tier's permits and borrow none.
    if lent.held_back(track) or (track.lane.packed and lent is not permits):
        aside.append(heappop(permits.tracks))
    else:
        _push_track(state, permits, permit)


def _push_track(state: State, permits: Permits, permit: int) -> None:
    """Hand out from the tier's first track while it is first and permits of this kind last."""
    tracks, lent = permits.tracks, state.tiers.all[permit]
    rank, seq, track = tracks[0]
    if track.listed != (rank, seq):
        heappop(tracks)
        return
    lane = track.lane
    head = track.head()
    borrowed = lent is not permits
    packed, polite = lane.packed, lane.polite
    limit = lent.max if not borrowed else min(lent.max, lent.used + lent.max // 2 - lent.lent)
    while head is not None and head[1] == seq and (lane.serial or head[0] == rank):
        if lent.used >= limit and not (packed and lent.packed % lent.pack):
            break
        if polite and lent.held_back(track):
            break
        intent = head[2]
        track.pop()
        if not unfit(state, intent) and not held_up(state, track, intent):
            track.out += 1
            if packed:
                lent.take_packed()
            else:
                lent.used += 1
            if borrowed:
                lent.lent += 1
                permits.borrows += 1
            start(state, lane, intent, permit, "")
        head = track.head()
        if head is None or lane.serial:
            break
        rank, seq, _ = head
        if len(tracks) > 1 and (rank, seq) > min(tracks[1:3])[:2]:
            break
    heappop(tracks)
    track.listed = None
    _list(state, track)


def _pull(state: State, lane: Lane) -> None:
    """Give a pulled lane's intents to the consumers with credits, in turn."""
    turns, track = lane.turns, lane.track(0)
    while turns:
        head = track.head()
        if head is None:
            return
        track.pop()
        intent = head[2]
        if unfit(state, intent) or held_up(state, track, intent):
            continue
        _give(state, lane, lane, intent)


def _pull_kinds(state: State) -> None:
    """Give messages of entities to the consumers that ask for any of their type."""
    eager, state.eager = state.eager, {}
    for name in sorted(eager):
        asked = state.lanes.get(name)
        if asked is None or asked.paused:
            continue
        pauses = state.type_pauses.get(name)
        while asked.turns and (found := kinds.first(state, name)) is not None:
            track, intent = found
            track.pop()
            if not unfit(state, intent):
                if pauses is not None:
                    lateness.type_resumed(state, pauses, track.lane, intent)
                _give(state, asked, track.lane, intent)
        if pauses is not None and not state.kinds[name].listed:
            del state.type_pauses[name]  # nobody waits who was due before it was resumed
        state.drop_if_idle(asked)


def _give(state: State, asked: Lane, lane: Lane, intent: Intent) -> None:
    """Hand an intent to the consumer whose turn it is, for a credit of the lane that it asked for."""
    name = asked.turns.pop(0)  # they are few
    consumer = state.consumers[name]
    start(state, lane, intent, -1, name)
    state.timers.arm(intent, state.at_ms + intent.terms.lease_ms)
    consumer.credits[asked.name] -= 1
    if consumer.credits[asked.name]:
        asked.turns.append(name)
    else:
        del consumer.credits[asked.name]


def held_up(state: State, track: Track, intent: Intent) -> bool:
    """Whether a limit does not let the intent go now; then it is parked. Serial lanes have no limits: whoever
    is parked is passed by others. Who is not held up goes at once, so here its share has its turn."""
    lane = track.lane
    holds: list[flow.Hold] | None = None
    if (lane.limit is not None or intent.terms.limits) and not lane.serial:
        holds = flow.holds_of(state, lane, intent)
        blocked = flow.blocked(state, lane, holds)
        if blocked is not None:
            flow.park(state, track, intent, blocked.limiter, blocked.limit)
            return True
    if track.shares is not None:
        track.shares.start(intent)
    if holds is not None:
        if intent.waits:  # a stale entry of it came by when there was room again
            lateness.unparked(state, intent)
        flow.take(state, lane, holds)
    return False


def start(state: State, lane: Lane, intent: Intent, permit: int, consumer: str) -> None:
    """A new hand-over, with a new number."""
    at_ms = state.at_ms
    move(state, intent, DISPATCHING)
    intent.attempt += 1
    intent.permit = permit
    intent.consumer = consumer
    intent.dispatched_at_ms = at_ms
    if not intent.first_dispatch_at_ms:
        intent.first_dispatch_at_ms = at_ms
        if intent.limited_ms or intent.late_from_ms or lane.pauses is not None:
            intent.late_ms = lateness.late_ms(state, lane, intent)
        else:
            intent.late_ms = at_ms - intent.due_at_ms
    if intent.wake_at_ms:
        state.timers.arm(intent, 0)
    lane.running += 1
    if lane.serial and lane.holder is None:
        lane.holder = intent
        intent.holds = True
    state.out[consumer][intent.id] = intent
    rare = intent.rare
    state.effects.append(
        Deliver(
            intent.id,
            intent.delivery,
            intent.attempt,
            intent.terms,
            intent.payload,
            intent.execute_at_ms,
            intent.late_ms,
            intent.deadline_ms,
            rare.traceparent if rare is not None else None,
            consumer,
        )
    )
