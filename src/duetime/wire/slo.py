"""Chooses a tier for a lateness objective: the cheapest tier with a window that fits."""

from __future__ import annotations

from duetime.limits import TIER_WINDOW_MS
from duetime.protocol.terms import Guarantee, Tier

# An at-least-once delivery may be repeated: half of the time is kept for a second one.
MARGIN = {Guarantee.AT_LEAST_ONCE: 2, Guarantee.AT_MOST_ONCE: 1}


def choose(max_tardiness_ms: int, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE) -> tuple[Tier, str]:
    """The tier for an intent with this maximum lateness, and the reason."""
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
