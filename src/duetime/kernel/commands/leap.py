"""Time that does not count: the clock was set, the engine stood still, or a new writer begins.

Three things are judged by a clock that does not jump. *Leases*: only time in which the engine could receive
heartbeats counts against a worker. *Rates*: the flow clock counts only time that passed (see
`queues.limiters`). *Forgetting* (finished intents, keys, decided ticks): a jump ahead is in doubt until the
clock has stayed there for `LEAP_BELIEVED_MS`; if the clock comes back before, nothing has happened.

Everything else follows the wall clock, because a time given by a user means the time on everybody's watch.
"""

from __future__ import annotations

from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.limits import LEAP_BELIEVED_MS, LEAP_RENEWS_MS, STALL_RENEWS_MS
from duetime.protocol.command import Leap, Start


def apply(state: State, command: Leap | Start, before_ms: int) -> None:
    """Account for the jump before time advances. `before_ms` is the timestamp of the previous record."""
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
    """A new writer: what the clock did in between is unknown, and no heartbeat could arrive."""
    gap_ms = state.at_ms - before_ms
    if gap_ms < 0:
        state.doubt_ms = max(0, state.doubt_ms + gap_ms)
    else:
        if gap_ms >= LEAP_BELIEVED_MS:
            state.doubt_ms = 0  # the clock has stayed there since, and ran on
        _doubt(state, gap_ms, again=False)
    _move_leases(state, 0, 0, anew=True)


def believe(state: State) -> None:
    """Trust a clock jump once the clock has stayed there for long enough."""
    if state.flow.now_ms >= state.doubt_until_ms:
        state.doubt_ms = 0


def _doubt(state: State, ms: int, *, again: bool) -> None:
    if again or not state.doubt_ms:
        state.doubt_until_ms = state.flow.now_ms + LEAP_BELIEVED_MS
    state.doubt_ms += ms


def _move_leases(state: State, by_ms: int, still_ms: int, *, anew: bool) -> None:
    """Remove time that did not count from every lease, or renew it. Walks all deliveries: jumps are rare."""
    at_ms = state.at_ms
    for consumer in state.consumers.values():
        held = state.out[consumer.name].values()
        heard_ms = consumer.seen_at_ms
        if still_ms:  # the start of a delivery stays as it is: instead, its worker counts as alive since then
            heard_ms = max(heard_ms, max((intent.dispatched_at_ms for intent in held), default=0))
        consumer.seen_at_ms = at_ms if anew else min(heard_ms + by_ms + still_ms, at_ms)
        for intent in held:
            touch(state, intent)
            intent.dispatched_at_ms = min(intent.dispatched_at_ms + by_ms, at_ms)
            begun_ms = max(intent.dispatched_at_ms, consumer.seen_at_ms)
            state.timers.arm(intent, begun_ms + intent.terms.lease_ms)
    if by_ms:  # the engine's own runs have no lease; their duration follows from their start
        for intent in state.out[""].values():
            touch(state, intent)
            intent.dispatched_at_ms = min(intent.dispatched_at_ms + by_ms, at_ms)
