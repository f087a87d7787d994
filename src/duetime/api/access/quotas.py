"""How many intents the bearer of a token may make in a time: a true token bucket for each, in this process.

What is asked for is counted before anything is written, and what was not made after all (a twin, a refusal)
is given back. A request goes through as long as the bucket is not empty, and may take more than is in it: so
a batch of thousands works with any rate, and whoever sent it waits until the debt is paid.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from duetime.clock import monotonic_ns
from duetime.errors import RateLimited

_MS_NS: Final = 1_000_000

bearer: ContextVar[str] = ContextVar("duetime_bearer", default="")
"""The hash of the token that came with the request which is answered just now. Empty: none was needed."""


class Quota(Struct, frozen=True):
    """So many in a period, and so many at once after a pause."""

    rate: int
    period_ms: int
    burst: int

    @property
    def interval_ns(self) -> int:
        """From one to the next; rounded up, so that the rate is never exceeded."""
        return -(-self.period_ms * _MS_NS // self.rate)


class Paid:
    """What a request took from a bucket, until it is known how much of that it needed."""

    __slots__ = ("_bucket", "_count", "_interval_ns")

    def __init__(self, bucket: Bucket, count: int, interval_ns: int) -> None:
        self._bucket = bucket
        self._count = count
        self._interval_ns = interval_ns

    def keep(self, count: int) -> None:
        """So many were made; the rest goes back."""
        self._bucket.full_ns -= (self._count - count) * self._interval_ns
        self._count = count


class Bucket:
    """Kept as one moment: when it will be full again."""

    __slots__ = ("full_ns",)

    def __init__(self) -> None:
        self.full_ns = 0

    def take(self, quota: Quota, count: int, now_ns: int) -> Paid | int:
        """So many, if there is one; else how many nanoseconds it is until there is."""
        interval_ns = quota.interval_ns
        wait_ns = self.full_ns - (quota.burst - 1) * interval_ns - now_ns
        if wait_ns > 0:
            return wait_ns
        self.full_ns = max(self.full_ns, now_ns) + count * interval_ns
        return Paid(self, count, interval_ns)


class Quotas:
    """The buckets of all tokens that have a rate."""

    def __init__(
        self, quota_of: Callable[[str], Quota | None], now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        """`quota_of` a token's hash is what it may do as of now: it may change at any time."""
        self._quota_of = quota_of
        self._now_ns = now_ns
        self._buckets: dict[str, tuple[Quota, Bucket]] = {}

    def asking(self) -> tuple[str, Quota] | None:
        """Who asks just now, and what they may do. None: they have no limit."""
        name = bearer.get()
        quota = self._quota_of(name) if name else None
        return None if quota is None else (name, quota)

    def charge(self, name: str, count: int) -> None:
        """So many were made for a token without its asking: by its schedules. What it asks for next waits."""
        quota = self._quota_of(name)
        if quota is not None and count:
            bucket = self._bucket(name, quota)
            bucket.full_ns = max(bucket.full_ns, self._now_ns()) + count * quota.interval_ns

    def _bucket(self, name: str, quota: Quota) -> Bucket:
        kept = self._buckets.get(name)
        if kept is None or kept[0] != quota:  # a new rate begins with a full bucket
            kept = self._buckets[name] = (quota, Bucket())
        return kept[1]

    def take(self, count: int) -> Paid | None:
        """Let whoever asks just now make so many intents, or raise. None: they have no limit."""
        asking = self.asking()
        if asking is None:
            return None
        name, quota = asking
        paid = self._bucket(name, quota).take(quota, count, self._now_ns())
        if isinstance(paid, Paid):
            return paid
        wait_ms = -(-paid // _MS_NS)
        raise RateLimited(
            f"This token may make {quota.rate} intents in {quota.period_ms} ms; the next in {wait_ms} ms.",
            waitMs=wait_ms,
        )


def unlimited(name: str) -> Quota | None:
    """Nobody has a limit."""
    return None
