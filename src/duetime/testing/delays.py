"""How long a retry may wait, stated once more."""

from __future__ import annotations

from duetime.protocol.terms import Backoff, Redelivery


def delays(policy: Redelivery, attempt: int) -> tuple[int, int]:
    """The least and the most one may wait after this attempt."""
    wait = policy.initial_delay_ms
    if policy.backoff is Backoff.EXPONENTIAL and policy.multiplier_percent > 100:
        wait = policy.initial_delay_ms * policy.multiplier_percent ** (attempt - 1) // 100 ** (attempt - 1)
    wait = min(wait, policy.max_delay_ms)
    most = policy.max_delay_ms if policy.backoff is Backoff.EXPONENTIAL else wait
    if not policy.jitter:
        return wait, most
    return wait * 8 // 10, most * 12 // 10 + 1
