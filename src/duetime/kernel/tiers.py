"""Delivery permits: how many pushed deliveries of each tier may be out. Owns the counters.

A tier out of permits borrows idle ones from lower tiers, at most half of a lender's, so a lender always
keeps the other half for itself. A permit is one number taken inside one thread, one at a time or not at
all, so nothing can wait while it holds some.
"""

from __future__ import annotations

from duetime.kernel.lanes import Track
from duetime.limits import TIER_NAMES, TIER_PERMITS


class Permits:
    """One tier's permits and the tracks that could use one now."""

    __slots__ = ("borrows", "lent", "max", "tracks", "used")

    def __init__(self, permits_max: int) -> None:
        self.max = permits_max
        self.used = 0
        """Out in all, lent ones included."""
        self.lent = 0
        self.borrows = 0
        """How often this tier borrowed, since the start."""
        self.tracks: list[tuple[int, int, Track]] = []
        """A heap of (rank, seq, track) by each track's first intent; entries may be stale."""

    def lendable(self) -> bool:
        return self.used < self.max and self.lent < self.max // 2


class Tiers:
    """The permits of all tiers."""

    def __init__(self) -> None:
        self.all = [Permits(permits) for permits in TIER_PERMITS]

    def lender(self, tier: int) -> int:
        """Whose permit this tier could use now: its own, a lower tier's, or -1 for nobody's."""
        own = self.all[tier]
        if own.used < own.max:
            return tier
        for lower in range(tier + 1, len(TIER_NAMES)):
            if self.all[lower].lendable():
                return lower
        return -1

    def take(self, tier: int, permit: int) -> None:
        """An intent of `tier` goes out on this tier's permit."""
        lender = self.all[permit]
        lender.used += 1
        if permit != tier:
            lender.lent += 1
            self.all[tier].borrows += 1

    def give_back(self, tier: int, permit: int) -> None:
        """Return the permit that an intent of `tier` held."""
        lender = self.all[permit]
        lender.used -= 1
        if permit != tier:
            lender.lent -= 1
