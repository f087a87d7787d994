"""Laws of every reachable state between two records. Reads only; a broken law is an AssertionError.

`check_quick` examines what is in memory anyway (lanes, permits, current deliveries); `check` also
walks every intent in the store. Tests and every step of the simulator call them.
"""

from __future__ import annotations

from duetime.kernel import groups
from duetime.kernel.history import unneeded
from duetime.kernel.queues import dispatch
from duetime.kernel.queues.entity_types import type_of
from duetime.kernel.queues.fairness import TURN
from duetime.kernel.queues.lanes import Lane, Track, rank_of
from duetime.kernel.state import LIVE, State
from duetime.limits import TIER_SLOT_MS
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    DISPATCHING,
    DUE,
    FINAL,
    SCHEDULED,
    Intent,
    Rare,
    Status,
)
from duetime.protocol.terms import AfterOn
from duetime.store.store import SEQ_MAX, claim_of

_ALL = 1 << 30


def check(state: State) -> None:
    """Check everything. Costs a walk over all intents."""
    check_quick(state)
    intents = state.store.page(None, None, SEQ_MAX, _ALL)
    _check_counts(state, intents)
    _check_pending(state, intents)
    _check_shares(state, intents)
    for intent in intents:
        _check_intent(state, intent)
    _check_keys(state, intents)
    _check_claims(state, intents)


def check_quick(state: State) -> None:
    """Check what can be seen without walking the store."""
    assert not state.untold, "the webhooks about an end are created in the same record"
    assert not state.ended_parents, "those who waited for an intent that ended are told in the same record"
    assert state.at_ms <= state.latest_ms, "the latest stamp is the latest"
    assert state.behind == (state.at_ms < state.latest_ms), "behind means before the latest stamp"
    counts = state.counts
    assert min(counts) >= 0, f"no count is negative: {counts}"
    assert state.alive == sum(counts[status] for status in LIVE), f"{state.alive} live, {counts} in all"
    serial = [lane for lane in state.lanes.values() if lane.serial]
    assert state.entities == len(serial), f"{state.entities} entities counted, {len(serial)} serial lanes"
    assert state.behind_others == sum(lane.pending - 1 for lane in serial if lane.pending), "in their order"
    resting = sum(name not in state.lanes for name in state.waiting)
    assert state.resting == resting, f"{state.resting} entities rest, {resting} have no lane and messages"
    _check_out(state)
    _check_flow(state)
    _check_consumers(state)
    if not dispatch.spent(state):
        _check_kinds(state)
    _check_schedules(state)
    for name, lane in state.lanes.items():
        assert lane.name == name
        _check_lane(state, lane)


def _check_out(state: State) -> None:
    """What DISPATCHING intents hold agrees with permits, lanes and counts."""
    used, lent, packed = ([0] * len(state.tiers.all) for _ in range(3))
    out: dict[Track, int] = {}
    running: dict[str, int] = {}
    total = 0
    for consumer, held in state.out.items():
        for id, intent in held.items():
            assert intent.id == id and intent.consumer == consumer, f"{id!r} is listed under {consumer!r}"
            assert intent.status is DISPATCHING, f"{id!r} is out but {intent.status.name}"
            total += 1
            running[intent.terms.lane] = running.get(intent.terms.lane, 0) + 1
            if consumer:
                assert intent.permit == -1 and intent.wake_at_ms, f"{id!r} was pulled: a lease, no permit"
            else:
                assert intent.permit >= 0 and not intent.wake_at_ms, f"{id!r} was pushed: a permit, no lease"
                track = state.lanes[intent.terms.lane].track(intent.terms.tier)
                out[track] = out.get(track, 0) + 1
                if track.lane.packed:
                    packed[intent.permit] += 1
                else:
                    used[intent.permit] += 1
                lent[intent.permit] += intent.permit != intent.terms.tier
    assert state.counts[DISPATCHING] == total, f"{state.counts[DISPATCHING]} counted out, {total} are"
    for number, permits in enumerate(state.tiers.all):
        assert permits.packed == packed[number], (
            f"tier {number}: {permits.packed} packed, {packed[number]} are"
        )
        found = (used[number] + -(-permits.packed // permits.pack), lent[number])
        assert (permits.used, permits.lent) == found, (
            f"tier {number} says {permits.used} permits used and {permits.lent} lent, its intents {found}"
        )
    for lane in state.lanes.values():
        for track in lane.tracks:
            count = out.get(track, 0)
            assert track.out == count, f"a track of {lane.name!r} says {track.out} are out, {count} are"
        count = running.pop(lane.name, 0)
        assert lane.running == count, f"lane {lane.name!r} says {lane.running} run, {count} do"
    assert not running, f"intents run in lanes that are not there: {running}"


def _check_consumers(state: State) -> None:
    assert state.out.keys() == {"", *state.consumers}, "a consumer that holds something is known"
    wanting: dict[str, list[str]] = {}
    for name, consumer in state.consumers.items():
        assert consumer.name == name
        for lane, credits in consumer.credits.items():
            assert credits > 0, f"{name!r} has {credits} credits for {lane!r}"
            wanting.setdefault(lane, []).append(name)
    for lane, names in wanting.items():
        assert lane in state.lanes, f"somebody asks for the lane {lane!r}, which is not there"
        assert sorted(state.lanes[lane].turns) == sorted(names), f"turns of {lane!r} are not its credits"
    for name, each in state.lanes.items():
        assert name in wanting or not each.turns, f"lane {name!r} has turns without credits"


def _check_kinds(state: State) -> None:
    """A consumer that asks for an entity type has been given everything of it that could go."""
    for lane in state.lanes.values():
        if not lane.serial or lane.pushed or state.draining or state.eager or lane.track(0) in state.stirred:
            continue
        head = lane.track(0).head()
        if head is None:
            continue
        name = type_of(lane.name)
        assert lane.track(0) in state.kinds[name].tracks, f"{head[2].id!r} could go and is not offered"
        asked = state.lanes.get(name)
        assert asked is None or asked.paused or not asked.turns, (
            f"{head[2].id!r} waits while {asked.turns[0]!r} asks for {name!r}"
        )


def _check_schedules(state: State) -> None:
    tables = state.timetables
    assert not tables.over, "schedules are told of an end in the same record"
    runs = {id: table.id for table in tables.all.values() for id in table.live}
    assert tables.runs == runs, f"followed {tables.runs}, live by the schedules {runs}"
    wakes = [table.wake_ms for table in tables.all.values() if table.wake_ms and not table.paused]
    assert tables.next_ms() == min(wakes, default=None), "the next tick is the first of all"
    for table in tables.all.values():
        assert table.live or not table.queued_ms, f"a tick of {table.id!r} waits for nothing"
        assert bool(table.wake_ms) == bool(table.next_ms), f"{table.id!r} wakes for its next tick"
        for id in table.live:
            intent = state.store.get(id)
            assert intent is not None and intent.status not in FINAL, f"{id!r} is followed and has ended"


def _check_lane(state: State, lane: Lane) -> None:
    name = lane.name
    kind = name.partition(":")[0]
    assert lane.serial == (kind == "entity") and lane.pushed == (kind in state.settings.pushed), name
    assert not lane.idle(), f"lane {name!r} holds nothing and should be forgotten"
    holder = lane.holder
    if lane.serial:
        assert lane.running <= 1, f"{lane.running} run in the serial lane {name!r}"
        if lane.running:
            assert holder is not None and holder.status is DISPATCHING, f"who runs in {name!r} holds it"
        if holder is not None:
            assert holder.holds and holder.status not in FINAL and holder.terms.lane == name, name
    else:
        assert holder is None, f"lane {name!r} is not serial and has a holder"
    if not lane.paused and not (lane.serial and lane.running):
        _check_not_idle(state, lane)


def _check_flow(state: State) -> None:
    """Limiters count the current deliveries, and every parked intent will be looked at again."""
    running: dict[str, int] = {}
    for held in state.out.values():
        for intent in held.values():
            for limit in () if intent.terms.serial else intent.terms.limits or ():
                name = f"key:{limit.key}"
                running[name] = running.get(name, 0) + 1
    for name, limiter in state.flow.limiters.items():
        count = running.pop(name, 0)
        assert limiter.running == count, f"limiter {name!r} says {limiter.running} are out, {count} are"
        for track, parking in limiter.parked.items():
            assert track is parking.track
            live = [entry[2] for entry in parking.entries if parking.counts(entry)]
            ready = any(
                entry[2].status is DUE and not entry[2].waits for entry in track.ready
            )  # another of the same track went before and has not been looked at
            out = limiter.running or track.lane.running
            assert not live or limiter.wake_ms or out or ready or track in state.stirred, (
                f"{live[0].id!r} waits for {name!r}, which nobody will look at again"
            )
    assert not running, f"limiters are missing: {running}"
    waiting = {
        entry[1]
        for limiter in state.flow.limiters.values()
        for parking in limiter.parked.values()
        for entry in parking.entries
        if parking.counts(entry)
    }
    count = len(waiting)
    assert state.flow.parked == count, f"{state.flow.parked} are said to be parked, {count} are"


def _check_not_idle(state: State, lane: Lane) -> None:
    """Nothing that could be handed out is left behind."""
    if state.draining or dispatch.spent(state) or not (lane.pushed or lane.turns):
        return
    for track in lane.tracks:
        if track in state.stirred:  # just restored: it is looked at with the next record
            continue
        ready = [entry for entry in track.ready if track.counts(entry)]
        if not ready:
            continue
        head = min(ready, key=lambda entry: entry[:2])[2]
        if lane.holder is not None and head is not lane.holder:
            continue
        if lane.pushed:
            tier = head.terms.tier
            lender = state.tiers.lender(tier)
            if lane.packed and lender != tier:
                continue  # it does not borrow; whether it could be packed depends on the first in line
            if lender >= 0 and state.tiers.all[lender].held_back(track):
                continue  # it leaves the remaining permits to others
            assert lender < 0, f"{head.id!r} could have a permit of tier {tier} and waits"
        else:
            assert not lane.turns, f"{head.id!r} waits in {lane.name!r} while consumers ask for it"


def _check_counts(state: State, intents: list[Intent]) -> None:
    found = [0] * len(Status)
    for intent in intents:
        found[intent.status] += 1
    for status in Status:
        counted = state.counts[status]
        # Forgotten intents still count among those that ended.
        right = counted == found[status] if status in LIVE else counted >= found[status]
        assert right, f"{counted} counted as {status.name}, the store has {found[status]}"
    assert len({intent.seq for intent in intents}) == len(intents), "every intent has a number of its own"


def _check_pending(state: State, intents: list[Intent]) -> None:
    pending: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for intent in intents:
        if intent.status in FINAL:
            continue
        placed = intent.holds or intent.status is DUE or intent.status is DISPATCHING
        found = pending if placed or not intent.terms.serial else waiting
        found[intent.terms.lane] = found.get(intent.terms.lane, 0) + 1
    assert state.waiting == waiting, f"entities say that {state.waiting} wait, their messages {waiting}"
    for name, lane in state.lanes.items():
        count = pending.pop(name, 0)
        assert lane.pending == count, f"lane {name!r} says {lane.pending} pending, {count} are"
    assert not pending, f"intents are pending in lanes that are not there: {pending}"


def _check_shares(state: State, intents: list[Intent]) -> None:
    """Shares count the due intents, and no key's share is more than one start ahead of all."""
    due: dict[tuple[Track, str], int] = {}
    for intent in intents:
        key = intent.terms.fairness_key
        if intent.status is DUE and key is not None and not intent.terms.serial:
            track = state.lanes[intent.terms.lane].track(intent.terms.tier)
            assert track.shares is not None, f"{intent.id!r} is due and has no share"
            due[track, key] = due.get((track, key), 0) + 1
    for lane in state.queues.values():
        for track in lane.tracks:
            shares = track.shares
            if shares is None:
                continue
            assert lane.pending, f"lane {lane.name!r} is empty and remembers shares"
            assert shares.level <= shares.entry <= shares.level + TURN, f"the entry of {lane.name!r}"
            for key, share in shares.keys.items():
                count = due.pop((track, key), 0)
                assert share.due == count, f"{share.due} of {key!r} in {lane.name!r} counted, {count} are due"
                assert share.had <= shares.level + TURN, f"{key!r} in {lane.name!r} is too far ahead"
    assert not due, "every key with something due has a share"


def _check_intent(state: State, intent: Intent) -> None:
    id, status = intent.id, intent.status
    assert 0 < intent.seq <= state.seq, f"{id!r} has the number {intent.seq} of {state.seq}"
    assert intent.delivery >= intent.attempt >= 0, f"{id!r}: {intent.delivery} deliveries"
    assert status is DISPATCHING or (intent.permit == -1 and not intent.consumer), f"{id!r} is not out"
    if intent.holds:
        lane = state.lanes.get(intent.terms.lane)
        assert lane is not None and lane.holder is intent, f"{id!r} holds its lane, which does not know"
    if intent.rare is not None and intent.rare.ties is not None and intent.rare.ties.members:
        _check_group(state, intent, intent.rare)
    if status in FINAL:
        _check_final(state, intent)
        return
    assert not intent.ended and not intent.finished_at_ms, f"{id!r} lives and has an end"
    assert not intent.deadline_ms or intent.deadline_ms >= intent.execute_at_ms, f"{id!r}: deadline"
    _check_wake(state, intent)
    if status is DUE:
        _check_due(state, intent)
    elif status is DISPATCHING:
        assert state.out[intent.consumer].get(id) is intent, f"{id!r} is out and not listed"
        assert intent.attempt >= 1 and intent.dispatched_at_ms, f"{id!r} is out without an attempt"
    elif status is BLOCKED:
        _check_blocked(state, intent)


def _check_final(state: State, intent: Intent) -> None:
    id = intent.id
    assert intent.finished_at_ms and 0 < intent.ended <= state.ended, f"{id!r} ended without an end"
    assert not intent.wake_at_ms and not intent.armed and not intent.holds, f"{id!r} ended and waits"
    if intent.status is Status.DEAD_LETTERED:
        assert intent.rare is not None and intent.rare.last_error is not None, f"{id!r} died for no reason"


def _check_wake(state: State, intent: Intent) -> None:
    """Every intent that must be looked at again is armed, or wakes after the edge of what is in memory."""
    id, wake_at_ms = intent.id, intent.wake_at_ms
    if intent.status is SCHEDULED:
        assert wake_at_ms > 0, f"{id!r} is scheduled for never"
        assert wake_at_ms >= intent.execute_at_ms, f"{id!r} would wake before its time"
    elif intent.status is not DISPATCHING:
        assert wake_at_ms == intent.deadline_ms, f"{id!r} wakes at {wake_at_ms}, not at its deadline"
    if not wake_at_ms:
        assert not intent.armed, f"{id!r} is armed for never"
    elif (wake_at_ms, intent.seq) > state.store.edge:
        assert not intent.armed, f"{id!r} is armed behind the edge"
    else:
        size = TIER_SLOT_MS[intent.terms.tier]
        slot, tier = intent.armed >> 3, intent.armed & 7
        assert tier == intent.terms.tier, f"{id!r} is armed for tier {tier}"
        assert 0 <= slot - wake_at_ms < size, f"{id!r} wakes at {wake_at_ms}, armed {slot}"
        cohort = state.timers.armed(intent.armed)
        assert any(each is intent for each in cohort), f"{id!r} is not in the cohort it is armed in"


def _check_due(state: State, intent: Intent) -> None:
    lane = state.lanes.get(intent.terms.lane)
    assert lane is not None and intent.due_at_ms, f"{intent.id!r} is due without a lane or a time"
    place = (rank_of(intent, lane.serial), intent.seq)
    track = lane.track(intent.terms.tier)
    ready = track.ready if not intent.waits else state.flow.limiters[intent.waits].parked[track].entries
    assert any(entry[2] is intent and entry[:2] == place for entry in ready), (
        f"{intent.id!r} is due and not in its lane at {place}"
    )


def _check_blocked(state: State, intent: Intent) -> None:
    assert intent.rare is not None and intent.rare.waiting > 0, f"{intent.id!r} is blocked by nothing"
    waits = 0
    for id in dict.fromkeys(intent.rare.after):
        parent = state.store.get(id)
        if parent is None or parent.status is ACKED or parent.seq > intent.seq:
            continue  # acknowledged; or the child is forgotten, and this is a newer intent with its id
        any_end = intent.terms.after_on is AfterOn.END
        if intent.terms.after_on is AfterOn.FAILURE and unneeded(parent):
            continue  # it is no failure
        dependents = parent.rare.dependents if parent.rare is not None else None
        known = dependents is not None and dependents.get(intent.id) == intent.seq
        if any_end and (not known or parent.status in FINAL):
            continue  # it has ended, and perhaps was revived
        assert parent.status not in FINAL, f"{intent.id!r} waits for {id!r}, which is {parent.status.name}"
        assert known, f"{id!r} does not know that {intent.id!r} waits"
        waits += 1
    if intent.rare.ties is not None:
        waits += intent.rare.waiting if intent.rare.ties.members else 0  # checked with its members
    assert intent.rare.waiting == waits, f"{intent.id!r} counts {intent.rare.waiting}, waits for {waits}"


def _check_group(state: State, callback: Intent, rare: Rare) -> None:
    """A group's callback counts its members that have not ended, created or not."""
    assert rare.ties is not None
    left = rare.ties.members - rare.joined
    assert left >= 0, f"{callback.id!r} has {rare.joined} members, {-left} too many"
    left += sum(member.status not in FINAL for member in groups.members_of(state, callback))
    assert rare.waiting == left, f"{callback.id!r} counts {rare.waiting}, waits for {left} members"


def _check_claims(state: State, intents: list[Intent]) -> None:
    """A claim finds the newest intent that holds it; only a claim for a time may have had earlier holders."""
    newest: dict[str, Intent] = {}
    for intent in intents:  # by falling seq
        name = claim_of(intent)
        if name is not None:
            first = newest.setdefault(name, intent)
            timed = name.startswith("time:")
            assert first is intent or timed, f"{first.id!r} and {intent.id!r} both have {name!r}"
    for name, intent in newest.items():
        found = state.store.by_claim(name)
        assert found is not None and found.seq == intent.seq, f"{name!r} does not find {intent.id!r}"


def _check_keys(state: State, intents: list[Intent]) -> None:
    """A key finds the newest intent that has it."""
    newest: dict[str, Intent] = {}
    for intent in intents:  # by falling seq
        if intent.rare is not None and intent.rare.key is not None:
            newest.setdefault(intent.rare.key, intent)
    for key, intent in newest.items():
        found = state.store.by_key(key)
        assert found is not None and found.seq == intent.seq, f"the key {key!r} does not find {intent.id!r}"
