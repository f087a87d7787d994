"""The delay before a retry. Integers only; the jitter is a stable hash, so a replay waits just as long."""

from __future__ import annotations

from zlib import crc32

from duetime.protocol.terms import Backoff, Redelivery


def delay_ms(policy: Redelivery, id: str, attempt: int) -> int:
    """The delay after this attempt: min(initial * multiplier^(attempt-1), max), then x 0.8 to 1.2."""
    delay = policy.initial_delay_ms
    if policy.backoff is Backoff.EXPONENTIAL:
        for _ in range(attempt - 1):
            if delay >= policy.max_delay_ms or policy.multiplier_percent <= 100:
                break
            # Round up, so that a small delay with a small multiplier still grows.
            delay = -(-delay * policy.multiplier_percent // 100)
    delay = min(delay, policy.max_delay_ms)
    if policy.jitter:
        per_mille = 800 + crc32(f"{id}:{attempt}".encode()) % 401
        delay = delay * per_mille // 1000
    return delay
