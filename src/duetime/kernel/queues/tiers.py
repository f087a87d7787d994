"""Delivery permits: the maximum number of pushed deliveries in flight per tier. Owns the counters.

A tier out of permits borrows idle ones from lower tiers, at most half of a lender's, so a lender always
keeps the other half. A permit is one number taken inside one thread, one at a time or not at
all, so nothing can wait while it holds some.

Batched callbacks are packed: as many as fit one request share one permit of their own tier. The number of
permits they use depends only on the number in flight.

A polite track (the callbacks of one host) takes a permit only while it holds less than a few times what is
free. Alone it gets four fifths of a tier; however many hosts hang, some permits are left for the next host.
"""

from __future__ import annotations

from heapq import heappop

from duetime.kernel.queues.lanes import Track
from duetime.limits import CALLBACK_BATCH_MAX, HOST_SHARE, TIER_NAMES, TIER_PERMITS


class Permits:
    """One tier's permits and the tracks that could use one now."""

    __slots__ = ("borrows", "lent", "max", "pack", "packed", "tracks", "used")

    def __init__(self, permits_max: int) -> None:
        self.max = permits_max
        self.used = 0
        """Permits in use, including lent ones."""
        self.lent = 0
        self.pack = CALLBACK_BATCH_MAX
        """The number of packed deliveries that share one permit."""
        self.packed = 0
        """Packed deliveries in flight; the permits they share are included in `used`."""
        self.borrows = 0
        """How often this tier borrowed since the start."""
        self.tracks: list[tuple[int, int, Track]] = []
        """A heap of (rank, seq, track) by each track's first intent; entries may be stale."""

    def lendable(self) -> bool:
        return self.used < self.max and self.lent < self.max // 2

    def packable(self) -> bool:
        """Whether the first in line is packed and a permit in use has room for it."""
        if self.packed % self.pack == 0:
            return False
        tracks = self.tracks
        while tracks and tracks[0][2].listed != tracks[0][:2]:
            heappop(tracks)  # stale: the track's first intent is another one now
        return bool(tracks) and tracks[0][2].lane.packed

    def held_back(self, track: Track) -> bool:
        """Whether a polite track holds its share already: the remaining permits are left to others."""
        if not track.lane.polite:
            return False
        if not track.lane.packed:
            return track.out >= HOST_SHARE * (self.max - self.used)
        return self.packed % self.pack == 0 and track.out // self.pack >= HOST_SHARE * (self.max - self.used)

    @property
    def share(self) -> int:
        """The number of permits a polite track gets when no other track wants any."""
        return -(-self.max * HOST_SHARE // (HOST_SHARE + 1))

    def take_packed(self) -> None:
        if self.packed % self.pack == 0:
            self.used += 1
        self.packed += 1

    def give_back_packed(self) -> None:
        self.packed -= 1
        if self.packed % self.pack == 0:
            self.used -= 1

    def repack(self, pack: int) -> None:
        """Change the number of deliveries that share a permit."""
        self.used += -(-self.packed // pack) - -(-self.packed // self.pack)
        self.pack = pack


class Tiers:
    """The permits of all tiers."""

    def __init__(self) -> None:
        self.all = [Permits(permits) for permits in TIER_PERMITS]

    def lender(self, tier: int) -> int:
        """The tier whose permit this tier could use now: its own, a lower one, or -1 for none."""
        own = self.all[tier]
        if own.used < own.max:
            return tier
        for lower in range(tier + 1, len(TIER_NAMES)):
            if self.all[lower].lendable():
                return lower
        return -1

    def take(self, tier: int, permit: int) -> None:
        """An intent of `tier` starts on a permit of tier `permit`."""
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
