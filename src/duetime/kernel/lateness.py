"""How late an intent is: the time until its call is really made, less the time it waited for a limit of its
users.

A hand-over is not yet a call: with the outcome, the channel reports how long the delivery waited there, or
that the call was never made (a breaker held it back, a worker returned it unstarted). In that case its
lateness continues from where it began. A rate, a concurrency limit, a paused lane and an entity busy with an
earlier message are what users asked for: that time is counted separately, in `limited_ms`, and is not
lateness.

No step walks anything: each adds to or subtracts from a number on the one intent it concerns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.kernel.queues.lanes import Lane
from duetime.kernel.transitions import touch
from duetime.limits import PAUSES_KEPT
from duetime.protocol.intent import Intent
from duetime.protocol.terms import is_type_lane

if TYPE_CHECKING:
    from duetime.kernel.state import State

Pauses = list[tuple[int, int]]
"""Pauses as (from, until), the newest last; until 0: still paused."""


def parked(state: State, intent: Intent) -> None:
    """It waits for a limiter from now on. While parked, this moment is subtracted from `limited_ms`."""
    state.flow.parked += 1
    if state.rules >= 2 and not intent.first_dispatch_at_ms:
        intent.limited_ms -= state.flow.now_ms


def unparked(state: State, intent: Intent) -> None:
    """It no longer waits for its limiter. The caller has touched it."""
    state.flow.parked -= 1
    if intent.limited_ms < 0:
        intent.limited_ms += state.flow.now_ms


def paused(state: State, lane: Lane) -> None:
    """Nothing of this lane, or of this entity type, is handed out from now on."""
    if state.rules < 2 or lane.paused:
        return
    of_type = is_type_lane(lane.name)
    before = state.type_pauses.get(lane.name) if of_type else lane.pauses
    pauses = [*(before or ())[-PAUSES_KEPT + 1 :], (state.at_ms, 0)]
    if of_type:
        state.type_pauses[lane.name] = pauses
    else:
        lane.pauses = pauses


def resumed(state: State, lane: Lane) -> None:
    pauses = lane.pauses or state.type_pauses.get(lane.name)
    if pauses and not pauses[-1][1]:
        pauses[-1] = (pauses[-1][0], state.at_ms)


def type_resumed(state: State, pauses: Pauses, intent: Intent) -> None:
    """A message is about to be handed out whose entity type was paused at times."""
    if not intent.first_dispatch_at_ms:
        touch(state, intent)
        intent.limited_ms += _paused_ms(pauses, _free_ms(intent), state.at_ms)


def freed(state: State, lane: Lane) -> None:
    """An entity's message has ended: until now the next one waited for it, and for nothing else."""
    head = lane.track(0).head()
    if head is None or state.rules < 2:
        return
    intent = head[2]
    waited_ms = state.at_ms - intent.due_at_ms
    if waited_ms > max(0, intent.limited_ms) and not intent.first_dispatch_at_ms:
        touch(state, intent)
        intent.limited_ms = waited_ms


def late_ms(state: State, lane: Lane, intent: Intent) -> int:
    """The lateness of a first hand-over of an intent that was limited, or not called before."""
    at_ms = state.at_ms
    whole_ms = at_ms - (intent.late_from_ms or intent.due_at_ms)
    if whole_ms <= 0:
        intent.limited_ms = 0
        return 0
    limited_ms = intent.limited_ms
    if lane.pauses is not None:
        free_ms = _free_ms(intent) if lane.serial else intent.due_at_ms
        from_ms, until_ms = lane.pauses[-1]
        if from_ms > free_ms:
            limited_ms += _paused_ms(lane.pauses, free_ms, at_ms)
        elif not until_ms or until_ms > free_ms:  # it became due during the last pause
            limited_ms += (until_ms or at_ms) - free_ms
    if limited_ms > whole_ms:
        limited_ms = whole_ms
    intent.limited_ms = limited_ms
    return whole_ms - limited_ms


def _since_ms(intent: Intent) -> int:
    """When its lateness began: when it became due, or first became due if it was not called since."""
    return intent.late_from_ms or intent.due_at_ms


def _free_ms(intent: Intent) -> int:
    """From when only a pause could stop a message: it waits for its entity first (see `freed`)."""
    return max(intent.due_at_ms, _since_ms(intent) + intent.limited_ms)


def _paused_ms(pauses: Pauses, since_ms: int, at_ms: int) -> int:
    """How long the lane was paused between these moments."""
    found_ms = 0
    for from_ms, until_ms in reversed(pauses):
        until_ms = until_ms or at_ms
        if until_ms <= since_ms:
            break  # and so did all earlier ones
        found_ms += until_ms - (from_ms if from_ms > since_ms else since_ms)
    return found_ms


def called(state: State, intent: Intent, waited_ms: int) -> None:
    """How long the current delivery waited for its call; -1: no call. Only the first call counts."""
    handed_ms = intent.dispatched_at_ms
    if intent.first_dispatch_at_ms != handed_ms:
        return
    if intent.cycle != state.store.cycle:
        state.store.touch(intent)
    if waited_ms < 0:
        intent.late_from_ms = intent.late_from_ms or intent.due_at_ms
        intent.first_dispatch_at_ms = 0
        intent.late_ms = -1
        return
    # Measured by another clock and reported by a client: never more than the time that has passed.
    if handed_ms + waited_ms > state.at_ms:
        waited_ms = max(0, state.at_ms - handed_ms)
    intent.first_dispatch_at_ms = handed_ms + waited_ms
    intent.late_ms += waited_ms
