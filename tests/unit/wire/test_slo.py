"""The cheapest tier whose window fits, with room for a second try where one may be needed."""

from __future__ import annotations

import pytest

from duetime.protocol.terms import Guarantee, Tier
from duetime.wire.slo import choose

LEAST, MOST = Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE


@pytest.mark.parametrize(
    ("max_tardiness_ms", "guarantee", "tier"),
    [
        (10_000, LEAST, Tier.ECONOMY),
        (2_000, LEAST, Tier.ECONOMY),
        (1_999, LEAST, Tier.STANDARD),
        (1_000, MOST, Tier.ECONOMY),
        (999, MOST, Tier.STANDARD),
        (200, LEAST, Tier.HIGH),
        (100, LEAST, Tier.FAST),
        (20, LEAST, Tier.ULTRA),
        (19, LEAST, Tier.ULTRA),
        (10, MOST, Tier.ULTRA),
        (1, MOST, Tier.ULTRA),
    ],
)
def test_the_cheapest_that_fits(max_tardiness_ms, guarantee, tier):
    found, reason = choose(max_tardiness_ms, guarantee)
    assert found is tier
    assert tier.name in reason
    assert f"{max_tardiness_ms} ms" in reason


def test_an_objective_that_no_tier_meets_is_reported():
    assert choose(19, LEAST)[1].startswith("No tier")
    assert not choose(20, LEAST)[1].startswith("No tier")
