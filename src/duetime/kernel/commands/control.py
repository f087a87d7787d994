"""Commands of an operator or a starting engine: pause, resume, resize, configure, start."""

from __future__ import annotations

from duetime.kernel import lateness
from duetime.kernel.commands.consumers import drop_connections
from duetime.kernel.commands.settle import settle
from duetime.kernel.queues import limiters
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.limits import PERMITS_MAX
from duetime.protocol.command import Configure, LaneSettings, Order, Pause, Resize, Resume, SetLane, Start
from duetime.protocol.intent import Intent
from duetime.protocol.outcome import Lost, Outcome, Returned
from duetime.protocol.reply import Reason, Refusal


def pause(state: State, command: Pause) -> None:
    lane = state.lanes.get(command.lane) or state.open_lane(command.lane)
    lateness.paused(state, lane)
    lane.paused = True


def resume(state: State, command: Resume) -> None:
    lane = state.lanes.get(command.lane)
    if lane is None:
        return
    lane.paused = False
    lateness.resumed(state, lane)
    _stir(state, lane)
    if command.lane in state.kinds:
        state.eager[command.lane] = None
    state.drop_if_idle(lane)


def resize(state: State, command: Resize) -> Refusal | None:
    tiers = state.tiers.all
    if not (0 <= command.tier < len(tiers) and 1 <= command.permits <= PERMITS_MAX):
        return Refusal(Reason.INVALID_FIELD, f"A tier has from 1 to {PERMITS_MAX} permits.")
    tiers[command.tier].max = command.permits
    return None


def set_lane(state: State, command: SetLane) -> Refusal | None:
    """New settings for a lane, effective at once; default settings are not stored."""
    settings, kind = command.settings, command.lane.partition(":")[0]
    if kind in ("entity", "entities") and (settings.rate or settings.concurrency):
        return Refusal(
            Reason.INVALID_FIELD, "An entity runs one at a time, in order; it has no other limits."
        )
    if kind == "entity" and settings.order is not Order.FIFO:
        return Refusal(Reason.INVALID_FIELD, "An entity's messages run in the order they were accepted.")
    if settings == LaneSettings():
        state.lane_settings.pop(command.lane, None)
    else:
        state.lane_settings[command.lane] = settings
    lane = state.lanes.get(command.lane)
    if lane is not None:
        lane.limit = state.limit_of(command.lane)
        limiters.resume(state, lane)
    return None


def configure(state: State, command: Configure) -> None:
    state.settings = command.settings
    for permits in state.tiers.all:
        permits.repack(command.settings.pack)
    state.kinds.clear()  # lanes that are still pulled are offered again
    state.eager.clear()
    for lane in state.lanes.values():
        pushed = lane.name.partition(":")[0] in command.settings.pushed
        if lane.serial:
            lane.pushed = pushed
        elif pushed != lane.pushed:
            _regroup(state, lane, pushed=pushed)
        for track in lane.tracks:
            track.listed = None
            state.stirred[track] = None


def drain(state: State) -> None:
    state.draining = True


def start(state: State, command: Start) -> None:
    """A new writer. Deliveries that its predecessor ran in its own process were handed back if it was told to
    stop, and are lost otherwise; leases of other processes run on."""
    assert command.epoch > state.epoch, "epochs are integers that grow"
    state.epoch, state.rules = command.epoch, command.rules
    outcome: Outcome = Lost("the engine stopped while it ran")
    if state.draining and state.rules >= 2:
        outcome = Returned("the engine was stopped while it ran")
    if state.draining:
        state.draining = False
        for lane in state.lanes.values():
            _stir(state, lane)
    drop_connections(state)
    for intent in sorted(state.out[""].values(), key=lambda intent: intent.seq):
        settle(state, intent, outcome)


def _stir(state: State, lane: Lane) -> None:
    for track in lane.tracks:
        state.stirred[track] = None


def _regroup(state: State, lane: Lane, *, pushed: bool) -> None:
    """Change a lane between pushed and pulled: remove all intents and insert them again. Where keys take
    turns, all keys start equal again."""
    due = _due(state, lane)
    for track in lane.tracks:
        track.clear()
        track.listed = None  # its listing in the tiers is stale
    lane.tracks, lane.pushed = (), pushed
    for _, intent in sorted(due.items()):
        track = lane.track(intent.terms.tier)
        if intent.terms.fairness_key is not None:
            track.share().come(intent)
        if intent.waits:  # another may be first at a limiter now: all are checked again
            touch(state, intent)
            intent.waits = ""
            lateness.unparked(state, intent)
        track.push(intent)
    for intent in state.out[""].values():
        if intent.terms.lane == lane.name:
            lane.track(intent.terms.tier).out += 1


def _due(state: State, lane: Lane) -> dict[int, Intent]:
    """All due intents of a lane, by seq; none is parked any more."""
    found: dict[int, Intent] = {}
    for track in lane.tracks:
        found |= {entry[1]: entry[2] for entry in track.ready if track.counts(entry)}
        for limiter in state.flow.limiters.values():
            parking = limiter.parked.pop(track, None)
            if parking is not None:
                found |= {entry[1]: entry[2] for entry in parking.entries if parking.counts(entry)}
    return found
