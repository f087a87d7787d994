"""Histograms: the number of values in each bucket, since the start and in the last minutes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable

from duetime.limits import METER_SLICE_MS, METER_SLICES_KEPT


class Histogram:
    """The number of values in each bucket. A bucket holds values up to its bound; the last, the rest."""

    __slots__ = ("bounds", "counts", "max", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum: float = 0
        self.max: float = 0
        """The largest value seen: no quantile is above it."""

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        if value > self.max:
            self.max = value

    def add_many(self, values: Iterable[float]) -> None:
        bounds, counts = self.bounds, self.counts
        # Values that come together are mostly equal, and counting equal ones is quick.
        for value, times in Counter(values).items():
            counts[bisect_left(bounds, value)] += times
            self.sum += value * times
            if value > self.max:
                self.max = value

    def merge(self, other: Histogram) -> None:
        """Add the values of another histogram with the same buckets."""
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum
        self.max = max(self.max, other.max)

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def mean(self) -> float:
        count = self.count
        return self.sum / count if count else 0.0

    def quantile(self, share: float) -> float | None:
        """The value that this share of all values does not exceed, by the buckets; None when empty."""
        wanted = self.count * share
        if not wanted:
            return None
        below = 0
        for place, count in enumerate(self.counts):
            if count and below + count >= wanted:
                low = self.bounds[place - 1] if place else 0.0
                high = self.bounds[place] if place < len(self.bounds) else self.max
                return min(self.max, low + (high - low) * (wanted - below) / count)
            below += count
        raise AssertionError("the buckets add up to the count")


class Sliding:
    """A histogram of everything since the start, with the last minutes available separately."""

    __slots__ = ("_past", "_slices", "_stamp", "bounds", "current")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.current = Histogram(bounds)
        self._past = Histogram(bounds)
        self._stamp = 0
        self._slices: deque[tuple[int, Histogram]] = deque([(0, self.current)])

    def at(self, now_ms: int) -> Histogram:
        """The slice of this moment: values added to it count as recent."""
        stamp = now_ms // METER_SLICE_MS
        if stamp != self._stamp:
            self._stamp = stamp
            self.current = Histogram(self.bounds)
            self._slices.append((stamp, self.current))
            if len(self._slices) > METER_SLICES_KEPT:
                self._past.merge(self._slices.popleft()[1])
        return self.current

    def add_past(self, value: float) -> None:
        """Add a value that is not recent."""
        self._past.add(value)

    def recent(self, now_ms: int) -> Histogram:
        """The last minutes."""
        found, stamp = Histogram(self.bounds), now_ms // METER_SLICE_MS
        for at, part in self._slices:
            if stamp - METER_SLICES_KEPT < at <= stamp:
                found.merge(part)
        return found

    def total(self) -> Histogram:
        """Everything since the start."""
        found = Histogram(self.bounds)
        found.merge(self._past)
        for _, part in self._slices:
            found.merge(part)
        return found
