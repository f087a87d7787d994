"""How long something takes, in bounded memory: counts in buckets whose bounds grow by a tenth.

A quantile read off it is right to within five percent; adding is one look-up and one increment; two of them
add up to one. It follows what changes: past some thousands of values, the old ones count half.
"""

from __future__ import annotations

from itertools import accumulate
from math import log

_GROWTH = 1.1
# Up to two days; what is longer is in the last one.
_BUCKETS = 202
_KEPT = 8_192


def _bucket(ms: int) -> int:
    return min(_BUCKETS - 1, 1 + int(log(ms) / log(_GROWTH))) if ms > 0 else 0


# Most are short: those are looked up. And what a value in each bucket is taken for.
_SHORT = tuple(map(_bucket, range(4_096)))
_MIDDLE = (0.5, *(_GROWTH**place * 2 * _GROWTH / (1 + _GROWTH) for place in range(_BUCKETS - 1)))


class Sketch:
    """The distribution of some durations, in milliseconds."""

    __slots__ = ("_again", "_mean_ms", "added", "count", "counts", "max_ms")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS
        self.count = 0
        """What the buckets hold: with age, less than was added."""
        self.added = 0
        self.max_ms = 0
        """The longest seen: no quantile is above it."""
        self._mean_ms = 0.0
        self._again = 0

    def add(self, ms: int) -> None:
        if ms > self.max_ms:
            self.max_ms = ms
        self.counts[_SHORT[ms] if 0 <= ms < 4_096 else _bucket(ms)] += 1
        self.count += 1
        self.added += 1
        if self.count >= _KEPT:
            self._age()

    def merge(self, other: Sketch) -> None:
        """Take in what another one holds."""
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.count += other.count
        self.added += other.added
        self.max_ms = max(self.max_ms, other.max_ms)
        self._again = 0
        if self.count >= _KEPT:
            self._age()

    def _age(self) -> None:
        self.counts = [(count + 1) // 2 for count in self.counts]
        self.count = sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """The time within which this share of them ended, at most the longest; None when there are none."""
        middle = self._middle(share)
        return middle if middle is None else min(middle, max(_MIDDLE[0], self.max_ms))

    def _middle(self, share: float) -> float | None:
        wanted = share * self.count
        if not wanted:
            return None
        return _MIDDLE[next(place for place, below in enumerate(accumulate(self.counts)) if below >= wanted)]

    @property
    def mean_ms(self) -> float:
        """The mean; looked at again only when there is something new worth looking for."""
        if self.added >= self._again:
            self._again = self.added + 1 + self.count // 32
            total = sum(count * middle for count, middle in zip(self.counts, _MIDDLE, strict=True) if count)
            self._mean_ms = total / self.count if self.count else 0.0
        return self._mean_ms

    def error(self) -> float | None:
        """How far off its median is, as a share of what it was: the median of that. None when empty."""
        guess_ms = self._middle(0.5)
        if guess_ms is None:
            return None
        off = sorted(
            (abs(guess_ms - middle) / max(1.0, middle), count)
            for count, middle in zip(self.counts, _MIDDLE, strict=True)
            if count
        )
        reached = accumulate(count for _, count in off)
        return next(share for (share, _), below in zip(off, reached, strict=True) if 2 * below >= self.count)
