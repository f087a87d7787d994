"""Rebuild the state from a checkpoint: everything else is derived from the intents."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.kernel.queues import limiters
from duetime.kernel.queues.fairness import Share
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import LIVE, State
from duetime.protocol.checkpoint import Checkpoint, Consumer, Turns
from duetime.protocol.intent import BLOCKED, DISPATCHING, DUE, SCHEDULED, Intent
from duetime.protocol.terms import is_type_lane
from duetime.store.store import SEQ_MAX

# Intents read per page where all of them must be read.
_PAGE = 10_000

# Intents placed between two steps: some milliseconds of work.
_SLICE = 500


def thaw(state: State, checkpoint: Checkpoint) -> Iterator[None]:
    """Restore `state` to the checkpoint's position, step by step, because millions may be due."""
    state.records, state.at_ms, state.epoch = checkpoint.records, checkpoint.at_ms, checkpoint.epoch
    state.latest_ms, state.behind = checkpoint.latest_ms, checkpoint.at_ms < checkpoint.latest_ms
    state.seq, state.ended = checkpoint.seq, checkpoint.ended
    state.woken, state.handed = checkpoint.woken, checkpoint.handed
    state.doubt_ms, state.doubt_until_ms = checkpoint.doubt_ms, checkpoint.doubt_until_ms
    state.settings, state.marks = checkpoint.settings, checkpoint.marks
    state.tally = list(checkpoint.tally)
    state.alive = sum(checkpoint.counts[status] for status in LIVE)
    state.draining, state.rules = checkpoint.draining, checkpoint.rules
    state.lane_settings = dict(checkpoint.lanes)
    for permits, permits_max in zip(state.tiers.all, checkpoint.permits, strict=True):
        permits.max = permits_max
        permits.repack(checkpoint.settings.pack)
    for name, count in (_waiting(state) if checkpoint.waiting is None else checkpoint.waiting).items():
        state.wait_in(name, count)
    for name, pending in checkpoint.pending.items():
        state.open_lane(name).pending = pending
    for name in checkpoint.paused:
        _lane(state, name).paused = True
    for name, pauses in checkpoint.pauses:
        if is_type_lane(name):
            state.type_pauses[name] = list(pauses)
        else:
            _lane(state, name).pauses = list(pauses)
    for saved in checkpoint.consumers:
        state.consumers[saved.name] = Consumer(saved.name, saved.seen_at_ms, dict(saved.credits))
        state.out[saved.name] = {}
    for name, turns in checkpoint.turns.items():
        _lane(state, name).turns = list(turns)
    state.flow.now_ms = checkpoint.flow_ms
    for name, full_ns in checkpoint.buckets.items():
        state.flow.limiter(name).full_ns = full_ns
    for saved_shares in checkpoint.shares:
        _share(state, saved_shares)
    for table in checkpoint.schedules:
        state.timetables.keep(table)
    for count, intent in enumerate(state.store.held(), 1):
        _place(state, intent)
        if count % _SLICE == 0:
            yield
    limiters.rearm(state)


def _waiting(state: State) -> dict[str, int]:
    """The checkpoint's version did not count waiting messages: count them, once."""
    found: dict[str, int] = {}
    before_seq = SEQ_MAX
    while page := state.store.page((SCHEDULED, BLOCKED), None, before_seq, _PAGE):
        before_seq = page[-1].seq
        for intent in page:
            if intent.terms.serial and not intent.holds:
                found[intent.terms.lane] = found.get(intent.terms.lane, 0) + 1
    return found


def _lane(state: State, name: str) -> Lane:
    return state.lanes.get(name) or state.open_lane(name)


def _share(state: State, saved: Turns) -> None:
    """Rebuild the shares of a track. Only the differences to the level matter."""
    shares = _lane(state, saved.lane).track(saved.tier).share()
    shares.entry = saved.entry
    shares.keys = {key: Share(had) for key, had in saved.had.items()}


def _place(state: State, intent: Intent) -> None:
    """Put an intent that is due, in flight, or holds its lane, where it was."""
    lane = _lane(state, intent.terms.lane)
    if lane.serial:
        lane.pending += 1
        state.behind_others += lane.pending > 1
        if intent.holds:
            lane.holder = intent
    if intent.status is DUE:
        track = lane.track(intent.terms.tier)
        if intent.terms.fairness_key is not None and not lane.serial:
            track.share().keys[intent.terms.fairness_key].due += 1
        if intent.waits:
            state.flow.parked += 1
            limiters.place(track, intent, state.flow.limiter(intent.waits))
        else:
            track.push(intent)
            state.stirred[track] = None
    elif intent.status is DISPATCHING:
        lane.running += 1
        for limit in () if lane.serial else intent.terms.limits or ():
            state.flow.limiter(f"key:{limit.key}").running += 1
        state.out.setdefault(intent.consumer, {})[intent.id] = intent
        if intent.permit >= 0:
            lane.track(intent.terms.tier).out += 1
            if lane.packed:
                state.tiers.all[intent.permit].take_packed()
            else:
                state.tiers.take(intent.terms.tier, intent.permit)
