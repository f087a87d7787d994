"""Commands of an operator or a starting engine: pause, resume, resize, configure, start."""

from __future__ import annotations

from duetime.kernel import lateness
from duetime.kernel.commands.consumers import drop_connections
from duetime.kernel.commands.settle import settle
from duetime.kernel.queues import limiters
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.queues.regroup import regroup
from duetime.kernel.state import State
from duetime.limits import PERMITS_MAX
from duetime.protocol.command import Configure, LaneSettings, Order, Pause, Resize, Resume, SetLane, Start
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
            regroup(state, lane, pushed=pushed)
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
