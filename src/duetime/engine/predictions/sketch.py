"""A distribution of durations in bounded memory: counts in buckets whose bounds grow by a tenth.

A quantile is right to within five percent; adding a value is one look-up and one increment; two sketches can
be merged. It adapts to change: after some thousands of values, the old ones count half.
"""

from __future__ import annotations

from itertools import accumulate
from math import log

from duetime.limits import SKETCH_SAMPLES_KEPT

_GROWTH = 1.1
# Up to two days; longer values are in the last bucket.
_BUCKETS = 202


def _bucket(ms: int) -> int:
    return min(_BUCKETS - 1, 1 + int(log(ms) / log(_GROWTH))) if ms > 0 else 0


# Most values are short: their buckets are looked up. And the value that represents each bucket.
_SHORT = tuple(map(_bucket, range(4_096)))
_MIDDLE = (0.5, *(_GROWTH**place * 2 * _GROWTH / (1 + _GROWTH) for place in range(_BUCKETS - 1)))


class Sketch:
    """The distribution of some durations, in milliseconds."""

    __slots__ = ("_again", "_mean_ms", "added", "count", "counts", "max_ms")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS
        self.count = 0
        """The number of values in the buckets: after ageing, fewer than were added."""
        self.added = 0
        self.max_ms = 0
        """The longest value seen: no quantile is above it."""
        self._mean_ms = 0.0
        self._again = 0

    def add(self, ms: int) -> None:
        if ms > self.max_ms:
            self.max_ms = ms
        self.counts[_SHORT[ms] if 0 <= ms < 4_096 else _bucket(ms)] += 1
        self.count += 1
        self.added += 1
        if self.count >= SKETCH_SAMPLES_KEPT:
            self._age()

    def merge(self, other: Sketch) -> None:
        """Add the values of another sketch."""
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.count += other.count
        self.added += other.added
        self.max_ms = max(self.max_ms, other.max_ms)
        self._again = 0
        if self.count >= SKETCH_SAMPLES_KEPT:
            self._age()

    def _age(self) -> None:
        self.counts = [(count + 1) // 2 for count in self.counts]
        self.count = sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """The time within which this share of them ended, at most the longest; None when empty."""
        middle = self._middle(share)
        return middle if middle is None else min(middle, max(_MIDDLE[0], self.max_ms))

    def _middle(self, share: float) -> float | None:
        wanted = share * self.count
        if not wanted:
            return None
        return _MIDDLE[next(place for place, below in enumerate(accumulate(self.counts)) if below >= wanted)]

    @property
    def mean_ms(self) -> float:
        """The mean; computed again only after enough new values."""
        if self.added >= self._again:
            self._again = self.added + 1 + self.count // 32
            total = sum(count * middle for count, middle in zip(self.counts, _MIDDLE, strict=True) if count)
            self._mean_ms = total / self.count if self.count else 0.0
        return self._mean_ms

    def error(self) -> float | None:
        """The median relative error of predicting the median. None when empty."""
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
