"""How late an intent is: until its call is really made, less the time it waited for a limit of its users.

A hand-over is not yet a call: the channel says with the outcome how long the delivery waited there, or that
the call was never made (a breaker held it back, a worker handed it back unbegun). Then its lateness goes on
from where it began. A rate, a concurrency limit, a paused lane and an entity that is busy with an earlier
message are what somebody asked for: that time is counted apart, in `limited_ms`, and is no lateness.

Nothing here walks anything: each step is a number more or less on the intent that the step is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.kernel.lanes import Lane
from duetime.kernel.transitions import touch
from duetime.limits import PAUSES_KEPT
from duetime.protocol.intent import Intent

if TYPE_CHECKING:
    from duetime.kernel.state import State


def parked(state: State, intent: Intent) -> None:
    """It waits for a limiter from now on. Until it comes back, `limited_ms` is less by this moment."""
    state.flow.parked += 1
    if state.rules >= 2 and not intent.first_dispatch_at_ms:
        intent.limited_ms -= state.flow.now_ms


def unparked(state: State, intent: Intent) -> None:
    """It does not wait for its limiter any more. Touched before."""
    state.flow.parked -= 1
    if intent.limited_ms < 0:
        intent.limited_ms += state.flow.now_ms


def paused(state: State, lane: Lane) -> None:
    """Nothing of this lane goes from now on."""
    if state.rules >= 2 and not lane.paused:
        lane.pauses = [*(lane.pauses or ())[-PAUSES_KEPT + 1 :], (state.at_ms, 0)]


def resumed(state: State, lane: Lane) -> None:
    if lane.pauses and not lane.pauses[-1][1]:
        lane.pauses[-1] = (lane.pauses[-1][0], state.at_ms)


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
    """How late a first hand-over is, of an intent that was limited, or not called before."""
    at_ms, due_at_ms, limited_ms = state.at_ms, intent.due_at_ms, intent.limited_ms
    for from_ms, until_ms in reversed(lane.pauses or ()):
        until_ms = until_ms or at_ms
        if until_ms <= due_at_ms:
            break  # and so are those before it
        limited_ms += until_ms - (from_ms if from_ms > due_at_ms else due_at_ms)
    whole_ms = max(0, at_ms - (intent.late_from_ms or due_at_ms))
    intent.limited_ms = limited_ms = min(limited_ms, whole_ms)
    return whole_ms - limited_ms


def called(state: State, intent: Intent, waited_ms: int) -> None:
    """The delivery that is out waited so long for its call; -1: it had none. Only the first one counts."""
    if intent.first_dispatch_at_ms != intent.dispatched_at_ms:
        return
    touch(state, intent)
    if waited_ms < 0:
        intent.late_from_ms = intent.late_from_ms or intent.due_at_ms
        intent.first_dispatch_at_ms = 0
        intent.late_ms = -1
        return
    # By another clock than ours, and said by others: never more than the time that has passed.
    waited_ms = min(waited_ms, max(0, state.at_ms - intent.dispatched_at_ms))
    intent.first_dispatch_at_ms += waited_ms
    intent.late_ms += waited_ms
