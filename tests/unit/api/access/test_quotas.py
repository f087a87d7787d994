"""Buckets of those who make intents: never more than the rate allows, and debts are paid."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from duetime.api.access.quotas import Bucket, Paid, Quota, Quotas, bearer
from duetime.errors import RateLimited

MS = 1_000_000
S = 1_000 * MS


@pytest.fixture
def clock():
    """A clock that stands still until it is moved."""
    return [7 * S]


@pytest.fixture
def quotas(clock):
    known = {"a": Quota(10, 1_000, 3), "b": Quota(1, 60_000, 1)}
    return Quotas(known.get, lambda: clock[0])


def take(quotas, name, count=1):
    token = bearer.set(name)
    try:
        return quotas.take(count)
    finally:
        bearer.reset(token)


def wait_ms(quotas, name):
    with pytest.raises(RateLimited) as refused:
        take(quotas, name)
    assert refused.value.code == 42901 and refused.value.retryable
    return refused.value.details["waitMs"]


def test_a_burst_is_admitted_at_once_and_the_rest_one_by_one(quotas, clock):
    for _ in range(3):
        take(quotas, "a")
    assert wait_ms(quotas, "a") == 100
    clock[0] += 99 * MS
    assert wait_ms(quotas, "a") == 1
    clock[0] += MS
    take(quotas, "a")
    assert wait_ms(quotas, "a") == 100


def test_callers_without_a_token_or_a_rate_have_no_quota(quotas):
    assert quotas.take(1_000_000) is None
    for _ in range(100):
        assert take(quotas, "somebody else") is None


def test_each_has_a_bucket_of_its_own(quotas):
    take(quotas, "b")
    assert wait_ms(quotas, "b") == 60_000
    take(quotas, "a")


def test_a_batch_may_take_more_than_there_is_and_the_next_waits(quotas, clock):
    take(quotas, "a", 1_000)
    assert wait_ms(quotas, "a") == 99_800
    clock[0] += 99_800 * MS
    take(quotas, "a", 1_000)


def test_quota_of_intents_that_were_not_created_is_returned(quotas, clock):
    paid = take(quotas, "a", 1_000)
    assert isinstance(paid, Paid)
    paid.keep(2)
    take(quotas, "a")
    assert wait_ms(quotas, "a") == 100
    again = take(quotas, "b")
    again.keep(0)
    again.keep(0)
    take(quotas, "b")
    assert wait_ms(quotas, "b") == 60_000


@pytest.mark.parametrize("seed", range(20))
def test_never_more_than_the_rate_in_any_window(seed):
    """Against a bucket filled by fractions; batches may overdraw it, and only from above zero."""
    random = Random(seed)
    quota = Quota(random.randint(1, 500), random.choice((100, 1_000, 7_000)), random.randint(1, 20))
    bucket, tokens, now_ns = Bucket(), Fraction(quota.burst), 10**12
    for _ in range(2_000):
        passed_ns = random.choice((0, 1, 999, MS, 20 * MS, 300 * MS))
        now_ns += passed_ns
        gained = Fraction(passed_ns * quota.rate, quota.period_ms * MS)
        tokens = min(Fraction(quota.burst), tokens + gained)
        count = random.choice((1, 1, 1, 1, 5, 60))
        paid = bucket.take(quota, count, now_ns)
        if isinstance(paid, Paid):
            assert tokens >= 1
            made = count if random.random() < 0.8 else random.randint(0, count)
            paid.keep(made)
            tokens -= made
        else:
            # Rounding up to whole nanoseconds costs a little, and never gives.
            assert tokens < 1 + Fraction(quota.burst * quota.rate, quota.period_ms * MS) * 4_000


def test_intents_of_schedules_are_charged_to_the_next_request():
    now_ns = 0
    quota = Quota(1, 1_000, 3)
    quotas = Quotas(lambda name: quota if name == "a" else None, lambda: now_ns)
    token = bearer.set("a")
    try:
        assert quotas.take(1) is not None
        quotas.charge("a", 2)
        with pytest.raises(RateLimited) as refused:
            quotas.take(1)
        assert refused.value.details["waitMs"] == 1_000
        now_ns = 1_000_000_000
        assert quotas.take(1) is not None
        quotas.charge("nobody", 5)  # a token that is gone, or has no rate any more
        quotas.charge("a", 0)
    finally:
        bearer.reset(token)
