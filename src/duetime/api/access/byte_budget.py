"""The budget for bytes of unanswered requests in memory: in total, and for each holder."""

from __future__ import annotations


class Budget:
    """Counts bytes as they arrive, by sender: an address or a token."""

    def __init__(self, most: int, share: int) -> None:
        """`most`: bytes in total; `share`: of them, for one holder."""
        self.most = most
        self.share = share
        self.held = 0
        self._of: dict[str, int] = {}

    def take(self, holder: str, count: int) -> bool:
        """Count these bytes. False: they exceed the budget and are not counted."""
        of_holder = self._of.get(holder, 0) + count
        if of_holder > self.share or self.held + count > self.most:
            return False
        self.held += count
        self._of[holder] = of_holder
        return True

    def force(self, holder: str, count: int) -> None:
        """Count these bytes even if they exceed the budget: they are in memory already."""
        self.held += count
        self._of[holder] = self._of.get(holder, 0) + count

    def has_room(self, holder: str) -> bool:
        """Whether the budget is not used up."""
        return self.held <= self.most and self._of.get(holder, 0) <= self.share

    def give(self, holder: str, count: int) -> None:
        """Return these bytes to the budget."""
        self.held -= count
        left = self._of[holder] - count
        if left:
            self._of[holder] = left
        else:
            del self._of[holder]
