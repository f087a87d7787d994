"""An intent becomes due (enters its lane) or passes its deadline. Also everything that undoes this.

Owns the bookkeeping between an intent and its lane: counts, the holder of a serial lane, which tracks are
stirred.
"""

from __future__ import annotations

from duetime.kernel import lateness
from duetime.kernel.history import close_attempt, rare_of
from duetime.kernel.queues import limiters
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.kernel.transitions import move, touch
from duetime.limits import ERROR_CHARS_MAX
from duetime.protocol.intent import (
    ACKED,
    DEAD_LETTERED,
    DISPATCHING,
    DUE,
    EXPIRED,
    SCHEDULED,
    Error,
    Intent,
    Status,
)
from duetime.protocol.terms import Callback, ExpiredAction


def make_due(state: State, intent: Intent, due_at_ms: int) -> None:
    """The intent is due: it waits in its lane from now on."""
    move(state, intent, DUE)
    intent.due_at_ms = due_at_ms
    intent.waits = ""
    lane = state.lane_for(intent.terms)
    if lane.serial and not intent.holds:
        lane.pending += 1
        state.behind_others += lane.pending > 1
        state.wait_in(lane.name, -1)
    track = lane.track(intent.terms.tier)
    if intent.terms.fairness_key is not None and not lane.serial:
        track.share().come(intent)
    track.push(intent)
    state.stirred[track] = None
    if intent.wake_at_ms or intent.deadline_ms:
        state.timers.arm(intent, intent.deadline_ms)


def undo_due(state: State, intent: Intent) -> None:
    """It no longer waits in its lane (its entry there is stale from now on)."""
    lane = state.lanes[intent.terms.lane]
    _leave_share(state, lane, intent)
    if not lane.serial and (lane.limit is not None or intent.terms.limits):
        limiters.pass_on(state, lane, intent)
        if intent.waits:  # unless that was its own turn
            touch(state, intent)
            lateness.unparked(state, intent)
    if lane.serial:
        state.stirred[lane.track(0)] = None  # the next in line may belong to another tier, which has permits
        if not intent.holds:
            state.behind_others -= lane.pending > 1
            lane.pending -= 1
            state.wait_in(lane.name, 1)
            state.drop_if_idle(lane)


def _leave_share(state: State, lane: Lane, intent: Intent) -> None:
    """It no longer waits, and did not start. The next intent by turns may be further ahead now."""
    track = lane.track(intent.terms.tier)
    if track.listed is not None and track.listed[1] == intent.seq:
        state.stirred[track] = None
    if intent.terms.fairness_key is not None and not lane.serial:
        lane.track(intent.terms.tier).share().leave(intent)


def unfit(state: State, intent: Intent) -> bool:
    """Whether a ready intent must not be handed out after all: too early again, or too late."""
    if state.behind and _early(state, intent):
        return True
    return intent.deadline_ms > 0 and expired(state, intent)


def _early(state: State, intent: Intent) -> bool:
    """The clock was set back, and a ready intent is not due any more: it waits again."""
    if intent.due_at_ms <= state.at_ms:
        return False
    due_at_ms = intent.due_at_ms
    lane = state.lanes[intent.terms.lane]
    if (
        lane.serial
        and lane.holder is None
        and intent.execute_at_ms <= intent.created_at_ms
        and state.rules >= 2
    ):
        # It was ready when it was accepted: nothing accepted after it may overtake it. A delayed message has
        # no such place, and its entity does not wait for it.
        touch(state, intent)
        lane.holder, intent.holds = intent, True
    undo_due(state, intent)
    move(state, intent, SCHEDULED)
    intent.due_at_ms = 0
    state.timers.arm(intent, due_at_ms)
    return True


def expired(state: State, intent: Intent) -> bool:
    """Whether its deadline has passed; if so it ends here, and is never handed out."""
    if not intent.deadline_ms or state.at_ms < intent.deadline_ms:
        return False
    expire(state, intent, "the deadline passed before it could be handed out")
    return True


def expire(state: State, intent: Intent, message: str) -> None:
    """It is too late: discarded, or dead-lettered, as its terms say."""
    discard = intent.terms.expired_action is ExpiredAction.DISCARD
    error = Error(state.at_ms, intent.delivery, "expired", message[:ERROR_CHARS_MAX])
    finish(state, intent, EXPIRED if discard else DEAD_LETTERED, error)


def take_back(state: State, intent: Intent) -> None:
    """Its delivery is over: release permit, lane and consumer. Nothing else is decided here."""
    touch(state, intent)
    lane = state.lanes[intent.terms.lane]
    if intent.permit >= 0:
        if lane.packed:
            state.tiers.all[intent.permit].give_back_packed()
        else:
            state.tiers.give_back(intent.terms.tier, intent.permit)
        lane.track(intent.terms.tier).out -= 1
        intent.permit = -1
    held = state.out[intent.consumer]
    del held[intent.id]
    if intent.consumer:
        if not held and intent.consumer not in state.consumers:
            del state.out[intent.consumer]
        intent.consumer = ""
    lane.running -= 1
    if not lane.serial and (lane.limit is not None or intent.terms.limits):
        limiters.give_back(state, lane, intent)
    if lane.serial:
        state.stirred[lane.track(0)] = None


def wait_again(state: State, intent: Intent, next_at_ms: int, note: str) -> None:
    """A delivery ended without ending the intent: schedule its next attempt, or its deadline."""
    move(state, intent, SCHEDULED)
    close_attempt(intent, state.at_ms, note)
    if next_at_ms < intent.execute_at_ms:
        next_at_ms = intent.execute_at_ms  # the clock was set back while it ran
    deadline_ms = intent.deadline_ms
    if deadline_ms and deadline_ms < next_at_ms:
        next_at_ms = deadline_ms
    state.timers.arm(intent, max(next_at_ms, state.at_ms))


def finish(state: State, intent: Intent, status: Status, error: Error | None = None) -> None:
    """End an intent, whatever its status was. An open delivery was taken back before."""
    was = intent.status
    move(state, intent, status)
    if error is not None:
        rare_of(intent).last_error = error
    state.alive -= 1
    state.ended += 1
    intent.ended = state.ended
    intent.finished_at_ms = state.at_ms
    if state.behind:  # the clock was set back: an intent that ends now must not already be below the marks
        marks = state.marks
        intent.finished_at_ms = max(state.at_ms, marks.finished_before_ms, marks.dead_before_ms)
    if intent.wake_at_ms:
        state.timers.arm(intent, 0)
    lane = state.lanes.get(intent.terms.lane)
    if lane is None:  # an entity whose messages all wait
        state.wait_in(intent.terms.lane, -1)
    else:
        if lane.serial:
            _leave_serial(state, lane, intent, was)
        else:
            lane.pending -= 1
            if was is DUE:
                _leave_share(state, lane, intent)
                if intent.waits:
                    lateness.unparked(state, intent)
                if lane.limit is not None or intent.terms.limits:
                    limiters.pass_on(state, lane, intent)
        if not lane.pending:
            for track in lane.tracks:
                track.unshare()
            state.drop_if_idle(lane)
    rare = intent.rare
    if rare is not None and (
        rare.dependents is not None or (rare.ties is not None and rare.ties.group is not None)
    ):
        state.ended_parents.append(intent)
    if status is not ACKED and type(target := intent.terms.target) is Callback and target.on_end:
        state.untold.append(intent)
    if intent.id in state.timetables.runs:
        state.timetables.over.append(intent.id)


def _leave_serial(state: State, lane: Lane, intent: Intent, was: Status) -> None:
    """A serial lane counts only intents that are due, in flight or holding it, and waits for its holder."""
    if intent.holds or was is DUE or was is DISPATCHING:
        state.behind_others -= lane.pending > 1
        lane.pending -= 1
        # The next in line may belong to another tier, which has permits to spare.
        state.stirred[lane.track(0)] = None
    else:
        state.wait_in(lane.name, -1)
    if lane.holder is intent:
        lane.holder = None
        intent.holds = False
        lateness.freed(state, lane)
