"""How long to wait before the next attempt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.kernel.retry import delay_ms
from duetime.limits import RETRY_DELAY_MS_MAX
from duetime.protocol.terms import Backoff, Redelivery

policies = st.builds(
    Redelivery,
    backoff=st.sampled_from(Backoff),
    initial_delay_ms=st.integers(0, 10_000_000),
    max_delay_ms=st.integers(0, RETRY_DELAY_MS_MAX),
    multiplier_percent=st.integers(100, 1_000),
    jitter=st.booleans(),
)
attempts = st.integers(1, 10_000)


def plain(attempt: int, **policy) -> int:
    return delay_ms(Redelivery(jitter=False, **policy), "a", attempt)


def test_the_default_doubles_up_to_a_minute():
    assert [plain(n) for n in range(1, 9)] == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_a_fixed_delay_stays():
    assert {plain(n, backoff=Backoff.FIXED, initial_delay_ms=700) for n in range(1, 50)} == {700}


def test_a_fixed_delay_has_the_same_maximum():
    assert plain(1, backoff=Backoff.FIXED, initial_delay_ms=700, max_delay_ms=500) == 500


def test_a_multiplier_may_have_a_fraction():
    assert [plain(n, multiplier_percent=150) for n in range(1, 5)] == [1_000, 1_500, 2_250, 3_375]


def test_a_multiplier_of_one_does_not_grow():
    assert plain(9, multiplier_percent=100) == 1_000


def test_no_delay_at_all_is_allowed():
    assert plain(10_000, initial_delay_ms=0) == 0


def test_jitter_differs_between_intents_and_between_attempts():
    policy = Redelivery(backoff=Backoff.FIXED)
    assert len({delay_ms(policy, f"i{n}", 1) for n in range(100)}) > 50
    assert len({delay_ms(policy, "a", n) for n in range(1, 101)}) > 50


def test_jitter_reaches_both_ends():
    policy = Redelivery(backoff=Backoff.FIXED)
    delays = [delay_ms(policy, f"i{n}", 1) for n in range(10_000)]
    assert (min(delays), max(delays)) == (800, 1_200)


def test_jitter_is_the_same_in_every_process_and_release():
    assert [delay_ms(Redelivery(), "a", n) for n in (1, 2, 3, 4)] == [946, 2264, 3604, 7544]


@given(policies, attempts)
def test_the_formula_of_the_contract_holds(policy, attempt):
    delay = delay_ms(policy, "a", attempt)
    limit = policy.max_delay_ms
    if policy.backoff is Backoff.FIXED:
        exact = min(policy.initial_delay_ms, limit)
        low = high = exact
    else:
        grown = policy.initial_delay_ms
        for _ in range(min(attempt - 1, 2_000)):
            grown = grown * policy.multiplier_percent // 100
            if grown >= limit:
                break
        low = min(grown, limit)
        high = limit if attempt > 1 else low
    if policy.jitter:
        low, high = low * 800 // 1000, high * 1200 // 1000
    assert low <= delay <= high
    assert delay <= limit * 1.2
    assert delay == delay_ms(policy, "a", attempt)


@given(policies, st.integers(1, 200))
def test_without_jitter_a_delay_never_shrinks(policy, attempt):
    policy = Redelivery(
        backoff=policy.backoff,
        initial_delay_ms=policy.initial_delay_ms,
        max_delay_ms=policy.max_delay_ms,
        multiplier_percent=policy.multiplier_percent,
        jitter=False,
    )
    assert delay_ms(policy, "a", attempt) <= delay_ms(policy, "a", attempt + 1)


@given(st.text(min_size=1), st.integers(1, 6))
def test_with_jitter_doubling_still_grows_until_the_maximum(id, attempt):
    policy = Redelivery(max_delay_ms=10**9)
    assert delay_ms(policy, id, attempt) < delay_ms(policy, id, attempt + 1)
