"""Time that does not count: the clock was set, the engine stood still, or a new writer begins.

Three things are judged by a clock that does not leap. *Leases*: only time in which the engine could hear a
worker counts against it. *Rates*: the flow's own clock counts only time that passed (see `flow`). What is
*forgotten* (finished intents, keys, decided ticks): a leap ahead is in doubt until the clock has stood there
for `LEAP_BELIEVED_MS`; when it comes back before, nothing has happened.

Everything else follows the wall clock, because a moment named by a user is the moment on everybody's watch.
"""

from __future__ import annotations

from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.limits import LEAP_BELIEVED_MS, LEAP_RENEWS_MS, STALL_RENEWS_MS
from duetime.protocol.command import Leap, Start


def apply(state: State, command: Leap | Start, before_ms: int) -> None:
    """Say so before time is told to pass. `before_ms` is the stamp of the record before."""
    if isinstance(command, Leap):
        _leapt(state, command, before_ms)
    elif command.rules >= 2 and before_ms:
        _started(state, before_ms)


def _leapt(state: State, command: Leap, before_ms: int) -> None:
    """The clock was set, or the engine stood still."""
    by_ms, passed_ms = command.by_ms, state.at_ms - before_ms
    state.flow.now_ms += max(0, passed_ms - by_ms) - max(0, passed_ms)
    if by_ms > 0:
        _doubt(state, by_ms, again=by_ms >= LEAP_RENEWS_MS)
    else:
        state.doubt_ms = max(0, state.doubt_ms + by_ms)
    _move_leases(state, by_ms, command.still_ms, anew=command.still_ms >= STALL_RENEWS_MS)


def _started(state: State, before_ms: int) -> None:
    """A new writer: nobody knows what the clock did in between, and nobody could be heard."""
    gap_ms = state.at_ms - before_ms
    if gap_ms < 0:
        state.doubt_ms = max(0, state.doubt_ms + gap_ms)
    else:
        if gap_ms >= LEAP_BELIEVED_MS:
            state.doubt_ms = 0  # the clock has stood there since, and went on
        _doubt(state, gap_ms, again=False)
    _move_leases(state, 0, 0, anew=True)


def believe(state: State) -> None:
    """The clock has stood where it leapt to for long enough."""
    if state.flow.now_ms >= state.doubt_until_ms:
        state.doubt_ms = 0


def _doubt(state: State, ms: int, *, again: bool) -> None:
    if again or not state.doubt_ms:
        state.doubt_until_ms = state.flow.now_ms + LEAP_BELIEVED_MS
    state.doubt_ms += ms


def _move_leases(state: State, by_ms: int, still_ms: int, *, anew: bool) -> None:
    """Take out of every lease what did not count, or renew it. Walks what is out: leaps are rare."""
    at_ms = state.at_ms
    for consumer in state.consumers.values():
        held = state.out[consumer.name].values()
        heard_ms = consumer.seen_at_ms
        if still_ms:  # when a delivery began stays as it is: instead, its worker counts as heard since then
            heard_ms = max(heard_ms, max((intent.dispatched_at_ms for intent in held), default=0))
        consumer.seen_at_ms = at_ms if anew else min(heard_ms + by_ms + still_ms, at_ms)
        for intent in held:
            touch(state, intent)
            intent.dispatched_at_ms = min(intent.dispatched_at_ms + by_ms, at_ms)
            begun_ms = max(intent.dispatched_at_ms, consumer.seen_at_ms)
            state.timers.arm(intent, begun_ms + intent.terms.lease_ms)
    if by_ms:  # what the engine runs itself has no lease; how long it took is told by when it began
        for intent in state.out[""].values():
            touch(state, intent)
            intent.dispatched_at_ms = min(intent.dispatched_at_ms + by_ms, at_ms)
