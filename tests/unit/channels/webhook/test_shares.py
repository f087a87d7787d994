"""What the endpoints of one host get of it."""

from __future__ import annotations

from duetime.channels.webhook.calls import CallPlan
from duetime.channels.webhook.shares import HostShares, host_share
from duetime.kernel.queues.tiers import Permits
from duetime.limits import TIER_PERMITS
from duetime.protocol.terms import Callback, Terms, Tier

ORIGIN = "http://shop.example"


def plan(path: str, tier: Tier = Tier.STANDARD) -> CallPlan:
    callback = Callback(ORIGIN + path)
    return CallPlan(Terms(callback, "callback:", tier), callback, 1.0, False)


class Shop:
    """One host with ten calls at a time, each tier."""

    def __init__(self) -> None:
        self.shares = HostShares(lambda tier: 10)

    def start(self, plan: CallPlan, now_s: float) -> bool:
        self.shares.seen(plan, now_s)
        if self.shares.full(plan, now_s):
            return False
        self.shares.began(plan, now_s)
        return True

    def fill(self, plan: CallPlan, now_s: float) -> int:
        count = 0
        while count < 100 and self.start(plan, now_s):
            count += 1
        return count


def test_one_endpoint_leaves_something_to_the_next():
    shop = Shop()
    assert [shop.fill(plan(f"/{n}"), 100.0) for n in range(4)] == [8, 2, 1, 1], "one each in any case"
    shop.shares.ended(plan("/0"), 100.0, answered=False)
    assert shop.fill(plan("/0"), 100.0) == 0


def test_an_endpoint_alone_gets_everything_once_it_answers():
    shop, alone = Shop(), plan("/alone")
    assert shop.fill(alone, 100.0) == 8
    shop.shares.ended(alone, 100.5, answered=True)
    assert shop.fill(alone, 100.5) == 100, "its permits and connections are the limit"
    assert not shop.shares.full(alone, 101.4) and shop.shares.full(alone, 101.5), "as long as it answers"


def test_the_query_and_the_tier():
    shop = Shop()
    assert shop.fill(plan("/a?x=1"), 100.0) == 8 and shop.fill(plan("/a?x=2"), 100.0) == 0
    assert shop.fill(plan("/a", Tier.FAST), 100.0) == 8, "another tier has permits of its own"


def test_a_silent_endpoint_at_its_share_is_held_back_ever_longer():
    shop, slow, fine = Shop(), plan("/slow"), plan("/fine")
    shop.start(fine, 100.0)
    assert shop.fill(slow, 100.0) == 8
    assert shop.shares.shut(slow, 100.9) is None, "it may still answer: it waits here"
    assert shop.shares.silent(100.9) == []
    shut = shop.shares.shut(slow, 103.0)
    assert shut is not None and shut.wait_s == 3.0
    assert shut.text == (
        f"{ORIGIN}/slow has 8 calls under way and has answered none for 3 s;"
        " the rest of the 10 calls of its host is left to others, and it was not called"
    )
    assert shop.shares.silent(103.0) == [f"{ORIGIN}/slow"]
    shop.shares.ended(slow, 103.0, answered=True)
    assert shop.start(slow, 103.0) and shop.shares.shut(slow, 103.0) is None
    shop.shares.ended(fine, 103.0, answered=True)
    assert shop.shares.silent(200.0) == [f"{ORIGIN}/slow"], "alone, and silent"
    shop.shares.ended(slow, 200.0, answered=True)
    assert shop.shares.silent(200.0) == [], "alone, and it answers"


def test_the_channels_share_of_a_host_equals_the_kernels():
    assert [host_share(tier) for tier in range(5)] == [Permits(each).share for each in TIER_PERMITS]
