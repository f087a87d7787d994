"""Bytes that requests may hold in memory before they are answered: in all, and for each holder."""

from __future__ import annotations


class Budget:
    """Counts bytes as they come, by who sent them: an address or a token."""

    def __init__(self, most: int, share: int) -> None:
        """`most` bytes in all, of which one holder may have `share`."""
        self.most = most
        self.share = share
        self.held = 0
        self._of: dict[str, int] = {}

    def take(self, holder: str, count: int) -> bool:
        """Count these bytes; False: they are too many, and are not counted."""
        of_holder = self._of.get(holder, 0) + count
        if of_holder > self.share or self.held + count > self.most:
            return False
        self.held += count
        self._of[holder] = of_holder
        return True

    def force(self, holder: str, count: int) -> None:
        """Count these bytes, too many or not: they are there."""
        self.held += count
        self._of[holder] = self._of.get(holder, 0) + count

    def has_room(self, holder: str) -> bool:
        """Whether more may be asked for."""
        return self.held <= self.most and self._of.get(holder, 0) <= self.share

    def give(self, holder: str, count: int) -> None:
        """These bytes are held no longer."""
        self.held -= count
        left = self._of[holder] - count
        if left:
            self._of[holder] = left
        else:
            del self._of[holder]
