"""The law of limits, written again: buckets filled by fractions, and intents in flight counted by name."""

from __future__ import annotations

from fractions import Fraction

from duetime.protocol.command import LaneSettings
from duetime.protocol.terms import Limit
from duetime.testing.sim.observed import Seen


class RateLaw:
    """Tokens that arrive evenly, up to a burst; and the intents in flight."""

    def __init__(self) -> None:
        self.tokens: Fraction | None = None
        self.at_ms = 0
        self.out: set[str] = set()

    def go(self, id: str, limit: Limit, at_ms: int) -> None:
        """An intent starts: there must be a token, and room."""
        if limit.concurrency:
            assert len(self.out) < limit.concurrency, f"{id!r}: {len(self.out)} of {limit.key!r} are out"
        self.out.add(id)
        if not limit.rate:
            return
        if self.tokens is None:
            self.tokens, self.at_ms = Fraction(limit.burst), at_ms
        passed_ms = at_ms - self.at_ms
        self.tokens = min(
            Fraction(limit.burst), self.tokens + Fraction(passed_ms * limit.rate, limit.period_ms)
        )
        self.at_ms = at_ms
        assert self.tokens >= 1, f"{id!r} goes out, and {limit.key!r} has {float(self.tokens):.3f} tokens"
        self.tokens -= 1


class Rates:
    """The buckets of all keys and lanes."""

    def __init__(self) -> None:
        self._keys: dict[str, RateLaw] = {}
        self._lanes: dict[str, RateLaw] = {}
        self._settings: dict[str, LaneSettings] = {}
        self._ms = self._at_ms = 0

    def pass_to(self, at_ms: int, leap_ms: int) -> None:
        """Time passes; setting the clock, ahead or back, fills no bucket and empties none."""
        self._ms += max(0, at_ms - self._at_ms - leap_ms)
        self._at_ms = at_ms

    def set_lane(self, lane: str, settings: LaneSettings) -> None:
        self._settings[lane] = settings
        bucket = self._lanes.get(lane)
        if bucket is not None:
            bucket.tokens = None  # a new rate begins with a full bucket, at the most

    def go(self, seen: Seen) -> None:
        """An intent is handed out."""
        for limit in () if seen.serial else seen.limits:
            self._keys.setdefault(limit.key, RateLaw()).go(seen.id, limit, self._ms)
        settings = self._settings.get(seen.lane, LaneSettings())
        limit = Limit(seen.lane, settings.rate, settings.period_ms, settings.burst, settings.concurrency)
        self._lanes.setdefault(seen.lane, RateLaw()).go(seen.id, limit, self._ms)

    def back(self, seen: Seen) -> None:
        """Its delivery ended."""
        for limit in () if seen.serial else seen.limits:
            self._keys[limit.key].out.discard(seen.id)
        self._lanes[seen.lane].out.discard(seen.id)
