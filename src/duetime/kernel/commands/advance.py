"""Time has passed: wake what is due, expire what is too late, take back deliveries with an ended lease."""

from __future__ import annotations

from operator import attrgetter

from duetime.kernel.commands.consumers import void_credits
from duetime.kernel.commands.settle import settle
from duetime.kernel.lifecycle import expired, make_due
from duetime.kernel.state import State
from duetime.kernel.timers import ALL
from duetime.kernel.transitions import touch
from duetime.limits import WAKES_MAX
from duetime.protocol.effect import Voided
from duetime.protocol.intent import DISPATCHING, SCHEDULED, Intent
from duetime.protocol.outcome import Lost

_by_seq = attrgetter("seq")
_by_wake = attrgetter("wake_at_ms")


def apply(state: State) -> None:
    sliced = state.rules >= 2
    woken = state.timers.expire(state.at_ms, WAKES_MAX - state.woken if sliced else ALL)
    if not woken:
        return
    if sliced:
        state.woken += len(woken)
    # After a restart the cohorts are filled in another order, but what ends here must end in a fixed order.
    # This is the order in which most of them will go, so their lanes have less to sort.
    woken.sort(key=_by_seq)
    woken.sort(key=_by_wake)
    for intent in woken:
        status = intent.status
        if status is SCHEDULED:
            wake_at_ms = intent.wake_at_ms
            if not (intent.deadline_ms and expired(state, intent)):
                make_due(state, intent, wake_at_ms)
        elif status is DISPATCHING:
            _check_lease(state, intent)
        else:
            over = expired(state, intent)
            assert over, "a due or blocked intent wakes only at its deadline"


def _check_lease(state: State, intent: Intent) -> None:
    """A lease restarts with every sign of life of its holder; it runs out only if the holder is silent."""
    consumer = state.consumers[intent.consumer]  # the consumer of a delivery is never forgotten
    ends_at_ms = max(intent.dispatched_at_ms, consumer.seen_at_ms) + intent.terms.lease_ms
    if ends_at_ms > state.at_ms:
        touch(state, intent)
        state.timers.arm(intent, ends_at_ms)
    else:
        settle(state, intent, Lost(f"{intent.consumer!r} was silent for {intent.terms.lease_ms} ms"))
        if consumer.credits:  # a silent consumer gets no more deliveries
            state.voided.append(Voided(consumer.name, dict(consumer.credits)))
            void_credits(state, consumer)
