"""Quotas: the rate at which each token may create intents, with a token bucket in this process.

The requested number is counted before anything is written. Intents that were not created (duplicates,
refusals) are returned to the bucket. A request is accepted while the bucket is not empty, and may take more
than the bucket contains: so a batch of thousands works with any rate, and its sender must wait until the
bucket is filled again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from msgspec import Struct

from duetime.clock import monotonic_ns
from duetime.errors import RateLimited
from duetime.limits import MS_NS
from duetime.protocol.terms import interval_ns

bearer: ContextVar[str] = ContextVar("duetime_bearer", default="")
"""The hash of the current request's token. Empty: no token was required."""


class Quota(Struct, frozen=True):
    """The maximum number per period, and the burst after a pause."""

    rate: int
    period_ms: int
    burst: int

    @property
    def interval_ns(self) -> int:
        """The interval between two intents."""
        return interval_ns(self.rate, self.period_ms)


class Paid:
    """The number that a request took from a bucket, until the number of created intents is known."""

    __slots__ = ("_bucket", "_count", "_interval_ns")

    def __init__(self, bucket: Bucket, count: int, interval_ns: int) -> None:
        self._bucket = bucket
        self._count = count
        self._interval_ns = interval_ns

    def keep(self, count: int) -> None:
        """This many were created; return the rest to the bucket."""
        self._bucket.full_ns -= (self._count - count) * self._interval_ns
        self._count = count


class Bucket:
    """A token bucket, stored as the time at which it will be full."""

    __slots__ = ("full_ns",)

    def __init__(self) -> None:
        self.full_ns = 0

    def pay(self, count: int, interval_ns: int, now_ns: int) -> None:
        """Take this many, even from an empty bucket."""
        self.full_ns = max(self.full_ns, now_ns) + count * interval_ns

    def take(self, quota: Quota, count: int, now_ns: int) -> Paid | int:
        """Take this many if the bucket is not empty; otherwise return the wait in nanoseconds."""
        interval_ns = quota.interval_ns
        wait_ns = self.full_ns - (quota.burst - 1) * interval_ns - now_ns
        if wait_ns > 0:
            return wait_ns
        self.pay(count, interval_ns, now_ns)
        return Paid(self, count, interval_ns)


class Quotas:
    """The buckets of all tokens that have a rate."""

    def __init__(
        self, quota_of: Callable[[str], Quota | None], now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        """`quota_of` returns the current quota for the hash of a token. It may change at any time."""
        self._quota_of = quota_of
        self._now_ns = now_ns
        self._buckets: dict[str, tuple[Quota, Bucket]] = {}

    def asking(self) -> tuple[str, Quota] | None:
        """The current caller and its quota. None: no limit."""
        name = bearer.get()
        quota = self._quota_of(name) if name else None
        return None if quota is None else (name, quota)

    def charge(self, name: str, count: int) -> None:
        """Count intents that the schedules of a token created. Its next requests may have to wait."""
        quota = self._quota_of(name)
        if quota is not None and count:
            self._bucket(name, quota).pay(count, quota.interval_ns, self._now_ns())

    def _bucket(self, name: str, quota: Quota) -> Bucket:
        kept = self._buckets.get(name)
        if kept is None or kept[0] != quota:  # a new rate starts with a full bucket
            kept = self._buckets[name] = (quota, Bucket())
        return kept[1]

    def take(self, count: int) -> Paid | None:
        """Allow the current caller to create this many intents, or raise. None: no limit."""
        asking = self.asking()
        if asking is None:
            return None
        name, quota = asking
        paid = self._bucket(name, quota).take(quota, count, self._now_ns())
        if isinstance(paid, Paid):
            return paid
        wait_ms = -(-paid // MS_NS)
        raise RateLimited(
            f"This token may create {quota.rate} intents in {quota.period_ms} ms; the next in {wait_ms} ms.",
            waitMs=wait_ms,
        )


def unlimited(name: str) -> Quota | None:
    """No limits."""
    return None
