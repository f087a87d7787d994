"""Which tier a promise needs: the cheapest whose window fits."""

from __future__ import annotations

from duetime.limits import TIER_WINDOW_MS
from duetime.protocol.terms import Guarantee, Tier

# What is delivered until it is acknowledged may be delivered again: half of the time is for that.
MARGIN = {Guarantee.AT_LEAST_ONCE: 2, Guarantee.AT_MOST_ONCE: 1}


def choose(max_tardiness_ms: int, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE) -> tuple[Tier, str]:
    """The tier, and why, for an intent that may be so late and no more."""
    margin = MARGIN[guarantee]
    kept = f"with a {margin}x margin for {guarantee.name}" if margin > 1 else f"as is for {guarantee.name}"
    for tier in reversed(Tier):
        window_ms = TIER_WINDOW_MS[tier]
        if window_ms * margin <= max_tardiness_ms:
            return tier, (
                f"{tier.name} is the cheapest tier that fits: its window of {window_ms} ms, {kept},"
                f" is within {max_tardiness_ms} ms."
            )
    window_ms = TIER_WINDOW_MS[Tier.ULTRA]
    return Tier.ULTRA, (
        f"No tier fits {max_tardiness_ms} ms {kept}; ULTRA, with a window of {window_ms} ms, is the nearest."
    )
