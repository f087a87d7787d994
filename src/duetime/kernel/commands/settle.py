"""Apply the outcomes of deliveries. An outcome counts only if it names the current delivery (the fence) and
comes from the consumer that holds it."""

from __future__ import annotations

from duetime.duration_text import span
from duetime.kernel import lateness, retry
from duetime.kernel.history import rare_of
from duetime.kernel.lifecycle import expire, finish, take_back, wait_again
from duetime.kernel.state import State
from duetime.limits import ERROR_CHARS_MAX
from duetime.protocol.command import Settle
from duetime.protocol.intent import ACKED, DEAD_LETTERED, DISPATCHING, Error, Intent
from duetime.protocol.outcome import Done, Expired, Failed, Lost, Outcome, Rejected, Returned, Snoozed
from duetime.protocol.terms import Guarantee, OnInterrupt


def apply(state: State, command: Settle) -> list[bool]:
    """For each outcome, whether it counted."""
    get = state.store.get
    held = state.rules >= 2  # before, any caller that knew the number could settle a delivery
    counted: list[bool] = []
    for settlement in command.settlements:
        intent = get(settlement.id)
        if (
            intent is None
            or intent.status is not DISPATCHING
            or intent.delivery != settlement.delivery
            or (held and intent.consumer != settlement.consumer)
        ):  # late, repeated, or from another consumer: it changes nothing, and is counted
            state.stale += 1
            counted.append(False)
            continue
        if settlement.waited_ms:
            lateness.called(state, intent, settlement.waited_ms)
        settle(state, intent, settlement.outcome, settlement.log)
        counted.append(True)
    return counted


def settle(state: State, intent: Intent, outcome: Outcome, log: str | None = None) -> None:
    """End the current delivery. Its log output replaces that of an earlier attempt."""
    take_back(state, intent)
    if log is not None:
        rare_of(intent).log = log
    elif intent.rare is not None:
        intent.rare.log = None
    if type(outcome) is Done:  # by far the most frequent: not through the match below
        if outcome.result is not None:
            rare_of(intent).result = outcome.result
        finish(state, intent, ACKED)
        return
    match outcome:
        case Failed():
            _failed(state, intent, outcome)
        case Lost(message):
            _lost(state, intent, message)
        case Returned(message):
            _returned(state, intent, message)
        case Snoozed(delay_ms, reason):
            intent.attempt -= 1
            note = f"snoozed for {span(delay_ms)}" + (f" ({reason})" if reason else "")
            wait_again(state, intent, state.at_ms + delay_ms, note[:ERROR_CHARS_MAX])
        case Expired(message):
            expire(state, intent, message)
        case Rejected(kind, message, http_status):  # pragma: no branch - there are no others
            finish(state, intent, DEAD_LETTERED, _error(state, intent, kind, message, http_status))


def _failed(state: State, intent: Intent, outcome: Failed) -> None:
    error = _error(state, intent, outcome.kind, outcome.message, outcome.http_status)
    terms = intent.terms
    if terms.guarantee is Guarantee.AT_MOST_ONCE:
        note = f"{error.message} (at most once: not tried again)"
        finish(state, intent, DEAD_LETTERED, _error(state, intent, error.kind, note, error.http_status))
        return
    if intent.attempt >= terms.redelivery.max_attempts:
        finish(state, intent, DEAD_LETTERED, error)
        return
    rare_of(intent).last_error = error
    delay_ms = outcome.delay_ms
    if delay_ms < 0:
        delay_ms = retry.delay_ms(terms.redelivery, intent.id, intent.attempt)
    next_at_ms = max(state.at_ms + delay_ms, outcome.not_before_ms)
    wait_again(state, intent, next_at_ms, f"{error.kind}: {error.message}")


def _lost(state: State, intent: Intent, message: str) -> None:
    """It is unknown how far the delivery got, so only an intent that may run twice is retried. At once the
    first time, because the intent rarely is what killed its worker; then with back-off, because it may be."""
    terms = intent.terms
    error = _error(state, intent, "lost", message, 0)
    if _once(intent) or intent.attempt >= terms.redelivery.max_attempts:
        finish(state, intent, DEAD_LETTERED, error)
        return
    rare = rare_of(intent)
    last = rare.last_error if intent.attempt > 1 else None
    first = state.rules >= 2 and (last is None or last.kind != "lost")
    delay_ms = 0 if first else retry.delay_ms(terms.redelivery, intent.id, intent.attempt)
    rare.last_error = error
    wait_again(state, intent, state.at_ms + delay_ms, f"lost: {message}")


def _returned(state: State, intent: Intent, message: str) -> None:
    """The delivery was stopped on purpose; the intent is not at fault."""
    if _once(intent):
        finish(state, intent, DEAD_LETTERED, _error(state, intent, "lost", message, 0))
        return
    intent.attempt -= 1
    wait_again(state, intent, state.at_ms, f"handed back: {message}"[:ERROR_CHARS_MAX])


def _once(intent: Intent) -> bool:
    """Whether an interrupted attempt is the last one."""
    terms = intent.terms
    return terms.guarantee is Guarantee.AT_MOST_ONCE or terms.on_interrupt is OnInterrupt.DEAD_LETTER


def _error(state: State, intent: Intent, kind: str, message: str, http_status: int) -> Error:
    return Error(state.at_ms, intent.delivery, kind, message[:ERROR_CHARS_MAX], http_status)
