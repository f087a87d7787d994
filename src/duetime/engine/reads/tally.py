"""The tally: how often intents of each tier moved from one status to another. A part of the state, so it
survives a restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from duetime.limits import TIER_NAMES
from duetime.protocol.intent import Status

_STATUSES: Final = len(Status)
_TIERS: Final = range(len(TIER_NAMES))


class Tally:
    """Reads the kernel's counts of transitions."""

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = counts

    def moves(self, tier: int, old: int, new: int) -> int:
        """How often intents of a tier moved from one status to another. From itself: created with it."""
        return self._counts[tier * 64 + old * 8 + new]

    def moves_to(self, status: int, tier: int | None = None) -> int:
        """The number of transitions into a status; of one tier or of all. Creation is not a transition."""
        tiers = _TIERS if tier is None else (tier,)
        return sum(self.moves(of, old, status) for of in tiers for old in range(_STATUSES) if old != status)

    def standing(self, tier: int) -> list[int]:
        """The number of intents of a tier by status now."""
        counts = []
        for status in range(_STATUSES):
            came = sum(self.moves(tier, old, status) for old in range(_STATUSES))
            went = sum(self.moves(tier, status, new) for new in range(_STATUSES) if new != status)
            counts.append(came - went)
        return counts
