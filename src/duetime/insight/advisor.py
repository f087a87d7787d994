"""Which tier an objective asks for: the cheapest one that can keep it."""

from __future__ import annotations

from duetime.limits import TIER_WINDOW_MS
from duetime.protocol.terms import Guarantee, Tier

# What is delivered until it is acknowledged may need a second try within the objective.
_MARGIN = {Guarantee.AT_LEAST_ONCE: 2, Guarantee.AT_MOST_ONCE: 1}


def choose(max_tardiness_ms: int, guarantee: Guarantee) -> tuple[Tier, str]:
    """The tier, and why this one."""
    margin = _MARGIN[guarantee]
    for tier in reversed(Tier):
        window_ms = TIER_WINDOW_MS[tier]
        if margin * window_ms <= max_tardiness_ms:
            times = f"{margin} x {window_ms} ms" if margin > 1 else f"{window_ms} ms"
            return tier, (
                f"{tier.name} is the cheapest tier that fits: its window of {window_ms} ms"
                f" ({times} for {guarantee.name}) is within {max_tardiness_ms} ms."
            )
    window_ms = TIER_WINDOW_MS[Tier.ULTRA]
    return Tier.ULTRA, (
        f"No tier's window fits {max_tardiness_ms} ms with the margin of {guarantee.name};"
        f" ULTRA ({window_ms} ms) is the most punctual there is."
    )
