"""Hand out ready intents: pushed deliveries as tier permits allow, pulled ones as consumers demand.

Runs after each record and touches only the tracks that the record stirred and the tiers that have
tracks listed. A tier uses its own permits first, in the order of the tiers; only then does it borrow.

The records of one frame examine at most `HANDS_MAX` ready intents: there may be a million that are past their
deadline, too early because the clock was set back, or held up by their limit. The rest stays stirred or
listed, and the next record continues (see `Kernel.next_ms`). Lanes, types and tiers take turns of
`HANDS_TURN`, so that a crowded one delays no other.
"""

from __future__ import annotations

from heapq import heappop, heappush

from duetime.kernel import handover, lateness
from duetime.kernel.lifecycle import unfit
from duetime.kernel.queues import entity_types, limiters
from duetime.kernel.queues.lanes import Lane, Track, rank_of
from duetime.kernel.queues.tiers import Permits
from duetime.kernel.state import State
from duetime.kernel.timers import ALL
from duetime.kernel.transitions import move
from duetime.limits import HANDS_MAX, HANDS_TURN
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import DISPATCHING, Intent


def hand_out(state: State) -> None:
    """Hand out everything that may go now."""
    if state.draining:
        state.stirred.clear()
        state.eager.clear()
        return
    most, turn = (HANDS_MAX, HANDS_TURN) if state.rules >= 2 else (ALL, ALL)
    # An expiry on the way may stir another track, so repeat until nothing is stirred.
    while state.handed < most:
        stirred = state.stirred
        state.stirred = {}
        pulled: dict[str, None] = {}
        for track in stirred:
            if track.lane.pushed:
                _list(state, track)
            else:
                pulled[track.lane.name] = None
                if track.lane.serial:
                    entity_types.offer(state, track)
        for name in sorted(pulled):  # the order of stirring is not the same after a restart
            lane = state.lanes.get(name)  # the lane that was stirred may have been dropped and opened again
            if lane is not None and lane.turns:
                _pull(state, lane, min(turn, most - state.handed))
        if state.eager:
            _pull_kinds(state, most, turn)
        more = _push(state, most, turn)
        if not (state.stirred or state.eager or more):
            break
    if most == ALL:
        state.handed = 0  # it was not counted before


def spent(state: State) -> bool:
    """Whether the records with this timestamp used up `HANDS_MAX`: the next one has to continue."""
    return state.handed >= HANDS_MAX and state.rules >= 2 and not state.draining


def _list(state: State, track: Track) -> None:
    """List the track with the tier of its first intent."""
    head = track.head()
    if head is None:
        track.listed = None
        return
    rank, seq, intent = head
    if track.lane.serial:
        rank = rank_of(intent, serial=False)  # its rank in its own lane has no meaning among other lanes
    place = (rank, seq)
    if track.listed != place:
        track.listed = place
        heappush(state.tiers.all[intent.terms.tier].tracks, (rank, seq, track))


def _push(state: State, most: int, turn: int) -> bool:
    """Hand out what permits allow. True: a tier used up its turn and may have more."""
    tiers = state.tiers
    hungry = [(tier, permits) for tier, permits in enumerate(tiers.all) if permits.tracks]
    more = False
    for tier, permits in hungry:
        aside: list[tuple[int, int, Track]] = []
        end = min(state.handed + turn, most)
        while permits.tracks and (permits.used < permits.max or permits.packable()):
            if state.handed >= end:
                more = True
                break
            _push_first(state, permits, tier, aside, end)
        for entry in aside:
            heappush(permits.tracks, entry)
    for tier, permits in hungry:
        if not permits.tracks:
            continue
        aside = []
        end = min(state.handed + turn, most)
        while permits.tracks and (lender := tiers.lender(tier)) >= 0:
            if state.handed >= end:
                more = True
                break
            _push_first(state, permits, lender, aside, end)
        for entry in aside:
            heappush(permits.tracks, entry)
    return more


def _push_first(
    state: State, permits: Permits, permit: int, aside: list[tuple[int, int, Track]], end: int
) -> None:
    """Hand out from the first track, or set it aside, so that the tracks after it may go."""
    track, lent = permits.tracks[0][2], state.tiers.all[permit]
    # Packed deliveries share their own tier's permits and borrow none.
    if lent.held_back(track) or (track.lane.packed and lent is not permits):
        aside.append(heappop(permits.tracks))
    else:
        _push_track(state, permits, permit, end)


def _push_track(state: State, permits: Permits, permit: int, end: int) -> None:
    """Hand out from the tier's first track while it stays first and permits of this kind last."""
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
    left = end - state.handed
    while left and head is not None and head[1] == seq and (lane.serial or head[0] == rank):
        if lent.used >= limit and not (packed and lent.packed % lent.pack):
            break
        if polite and lent.held_back(track):
            break
        intent = head[2]
        track.pop()
        left -= 1
        parked = intent.waits
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
        elif parked and intent.waits:
            left += 1  # as in `_pull`
        head = track.head()
        if head is None or lane.serial:
            break
        rank, seq, _ = head
        if len(tracks) > 1 and (rank, seq) > min(tracks[1:3])[:2]:
            break
    state.handed = end - left
    heappop(tracks)
    track.listed = None
    _list(state, track)


def _pull(state: State, lane: Lane, most: int) -> None:
    """Hand a pulled lane's intents to the consumers with credits, in turn."""
    turns, track, left = lane.turns, lane.track(0), most
    while turns:
        head = track.head()
        if head is None:
            break
        if not left:
            state.stirred[track] = None  # the rest follows after the turns of others
            break
        left -= 1
        track.pop()
        intent = head[2]
        parked = intent.waits
        if not unfit(state, intent) and not held_up(state, track, intent):
            _give(state, lane, lane, intent)
        elif parked and intent.waits:
            left += 1  # a stale entry: it would not exist after a restart, so it does not count
    state.handed += most - left


def _pull_kinds(state: State, most: int, turn: int) -> None:
    """Hand messages of entities to the consumers that ask for any entity of their type."""
    eager, state.eager = state.eager, {}
    for name in sorted(eager):
        asked = state.lanes.get(name)
        if asked is None or asked.paused:
            continue
        pauses = state.type_pauses.get(name)
        begun = left = min(turn, most - state.handed)
        while asked.turns and left and (found := entity_types.first(state, name)) is not None:
            left -= 1
            track, intent = found
            track.pop()
            if not unfit(state, intent):
                if pauses is not None:
                    lateness.type_resumed(state, pauses, intent)
                _give(state, asked, track.lane, intent)
        state.handed += begun - left
        if not left:
            state.eager[name] = None  # the rest follows after the turns of others
        if pauses is not None and not state.kinds[name].ready:
            del state.type_pauses[name]  # no message is left that was due before the type was resumed
        state.drop_if_idle(asked)


def _give(state: State, asked: Lane, lane: Lane, intent: Intent) -> None:
    """Hand an intent to the consumer whose turn it is, for a credit of the lane that it asked for."""
    name = asked.turns.pop(0)  # there are few
    consumer = state.consumers[name]
    start(state, lane, intent, -1, name)
    state.timers.arm(intent, state.at_ms + intent.terms.lease_ms)
    consumer.credits[asked.name] -= 1
    if consumer.credits[asked.name]:
        asked.turns.append(name)
    else:
        del consumer.credits[asked.name]


def held_up(state: State, track: Track, intent: Intent) -> bool:
    """Whether a limit holds the intent up now; if so it is parked. Serial lanes have no limits, because
    others pass a parked intent. An intent that is not held up starts at once, so its fairness key is charged
    here."""
    lane = track.lane
    holds: list[limiters.Hold] | None = None
    if (lane.limit is not None or intent.terms.limits) and not lane.serial:
        holds = limiters.holds_of(state, lane, intent)
        blocked = limiters.blocked(state, lane, holds)
        if blocked is not None:
            limiters.park(state, track, intent, blocked.limiter, blocked.limit)
            return True
    if track.shares is not None:
        track.shares.start(intent)
    if holds is not None:
        if intent.waits:  # a stale entry of it was reached when there was room again
            lateness.unparked(state, intent)
        limiters.take(state, lane, holds)
    return False


def start(state: State, lane: Lane, intent: Intent, permit: int, consumer: str) -> None:
    """Start a new delivery, with a new number."""
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
    payload, parents = intent.payload, None
    if rare is not None and rare.handed is not None:
        payload, parents = handover.carried(intent, rare.handed)
    state.effects.append(
        Deliver(
            intent.id,
            intent.delivery,
            intent.attempt,
            intent.terms,
            payload,
            intent.execute_at_ms,
            intent.late_ms,
            intent.deadline_ms,
            rare.traceparent if rare is not None else None,
            consumer,
            rare.headers if rare is not None else None,
            parents,
        )
    )
