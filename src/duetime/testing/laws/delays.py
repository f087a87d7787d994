"""How long a retry may wait and when none follows, written again."""

from __future__ import annotations

from duetime.protocol.intent import SCHEDULED, Intent
from duetime.protocol.outcome import Expired, Failed, Outcome, Rejected, Returned
from duetime.protocol.terms import Backoff, Guarantee, OnInterrupt, Redelivery
from duetime.testing.sim.observed import Seen


def delays(policy: Redelivery, attempt: int) -> tuple[int, int]:
    """The minimum and maximum wait after this attempt."""
    wait = policy.initial_delay_ms
    if policy.backoff is Backoff.EXPONENTIAL and policy.multiplier_percent > 100:
        wait = policy.initial_delay_ms * policy.multiplier_percent ** (attempt - 1) // 100 ** (attempt - 1)
    wait = min(wait, policy.max_delay_ms)
    most = policy.max_delay_ms if policy.backoff is Backoff.EXPONENTIAL else wait
    if not policy.jitter:
        return wait, most
    return wait * 8 // 10, most * 12 // 10 + 1


def check_dead(seen: Seen, outcome: Outcome | None) -> None:
    """It was dead-lettered: no attempt was left, or none is allowed."""
    exhausted = seen.attempt >= seen.redelivery.max_attempts and not isinstance(outcome, Returned)
    once = seen.guarantee is Guarantee.AT_MOST_ONCE
    if isinstance(outcome, Failed):
        assert exhausted or once, f"{seen.id!r} has attempts left and was given up"
    elif not isinstance(outcome, Expired | Rejected):
        interrupted = seen.on_interrupt is OnInterrupt.DEAD_LETTER
        assert exhausted or once or interrupted, f"{seen.id!r} was lost once and given up"


def check_retry(seen: Seen, failed: Failed | None, at_ms: int, intent: Intent | None) -> None:
    """It waits for the next attempt, as long as its policy says."""
    least_ms, most_ms = delays(seen.redelivery, seen.attempt)
    if failed is None and not seen.lost:
        least_ms = most_ms = 0  # the first loss does not count against the intent
    seen.lost = failed is None
    if failed is not None and failed.delay_ms >= 0:
        least_ms = most_ms = failed.delay_ms
    seen.not_before_ms = at_ms + least_ms
    latest_ms = max(at_ms + most_ms, seen.execute_at_ms)
    if failed is not None:
        seen.not_before_ms = max(seen.not_before_ms, failed.not_before_ms)
        latest_ms = max(latest_ms, failed.not_before_ms)
    if intent is not None and intent.status is SCHEDULED:
        assert intent.wake_at_ms <= latest_ms, (
            f"{seen.id!r} waits {intent.wake_at_ms - latest_ms} ms more than its policy allows"
        )
