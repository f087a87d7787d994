"""Delivery permits: own, borrowed, given back."""

from __future__ import annotations

import pytest

from duetime.kernel.queues.lanes import Lane
from duetime.kernel.queues.tiers import Permits, Tiers
from duetime.limits import PERMITS_MAX, TIER_PERMITS
from duetime.protocol.command import Resize
from tests.unit.kernel.bench import Bench, delivered, error, queue

ULTRA, FAST, HIGH, STANDARD, ECONOMY = range(5)


def sized(*permits: int) -> Bench:
    bench = Bench()
    for tier, number in enumerate(permits):
        bench.do(Resize(tier, number))
    return bench


def fill(bench: Bench, tier: int, count: int, name: str = "") -> list[str]:
    """Submit so many of a tier; those that were handed out."""
    ids = [f"{name or tier}-{n}" for n in range(count)]
    return delivered(bench.submit(*ids, on=queue(f"q{name or tier}", tier=tier)))


def used(bench: Bench) -> list[int]:
    return [permits.used for permits in bench.state.tiers.all]


def lent(bench: Bench) -> list[int]:
    return [permits.lent for permits in bench.state.tiers.all]


def test_the_defaults_are_those_of_the_limits():
    assert tuple(permits.max for permits in Bench().state.tiers.all) == TIER_PERMITS


def test_no_more_go_out_than_there_are_permits():
    bench = sized(1, 1, 1, 1, 3)
    assert len(fill(bench, ECONOMY, 10)) == 3
    assert used(bench) == [0, 0, 0, 0, 3]
    assert delivered(bench.done("4-0")) == ["4-3"]


def test_a_tier_out_of_permits_borrows_half_of_each_lower_tier():
    bench = sized(2, 4, 6, 8, 10)
    assert len(fill(bench, ULTRA, 100)) == 2 + 2 + 3 + 4 + 5
    assert used(bench) == [2, 2, 3, 4, 5]
    assert lent(bench) == [0, 2, 3, 4, 5]
    assert bench.state.tiers.all[ULTRA].borrows == 14


def test_no_permit_is_borrowed_from_a_higher_tier():
    bench = sized(10, 10, 10, 2, 2)
    assert len(fill(bench, ECONOMY, 10)) == 2
    assert len(fill(bench, STANDARD, 10)) == 2


def test_a_lender_keeps_half_for_itself():
    bench = sized(1, 1, 1, 1, 10)
    fill(bench, ULTRA, 100)
    assert lent(bench) == [0, 0, 0, 0, 5]
    assert len(fill(bench, ECONOMY, 100)) == 5


def test_only_idle_permits_are_lent():
    bench = sized(1, 1, 1, 1, 10)
    fill(bench, ECONOMY, 8)
    assert len(fill(bench, ULTRA, 100)) == 1 + 2


def test_an_odd_permit_is_not_lent_and_a_single_one_never():
    bench = sized(1, 1, 1, 1, 5)
    assert len(fill(bench, ULTRA, 100)) == 1 + 2
    bench = sized(1, 1, 1, 1, 1)
    assert len(fill(bench, ULTRA, 100)) == 1


def test_a_lender_s_own_work_goes_before_borrowers():
    """Each permit that comes back is the lender's first, as long as it has work of its own."""
    bench = sized(1, 1, 1, 1, 4)
    fill(bench, ECONOMY, 20)
    fill(bench, ULTRA, 20)
    assert used(bench) == [1, 0, 0, 0, 4]
    for n in range(16):
        (next_one,) = delivered(bench.done(f"4-{n}"))
        assert next_one.startswith("4-")
    assert delivered(bench.done("4-16")) == ["0-1"], "only then is something lent"


def test_two_borrowers_share_by_tier():
    bench = sized(1, 1, 1, 1, 4)
    fill(bench, FAST, 10)
    assert lent(bench)[ECONOMY] == 2
    fill(bench, ULTRA, 10)
    assert used(bench) == [1, 1, 0, 0, 2]
    (next_one,) = delivered(bench.done("1-1"))
    assert next_one.startswith("0-"), "the higher tier borrows first"


def test_a_borrowed_permit_goes_back_to_its_lender():
    bench = sized(1, 1, 1, 1, 4)
    fill(bench, ULTRA, 3)
    assert lent(bench) == [0, 0, 0, 0, 2]
    borrowed = [id for id in ("0-0", "0-1", "0-2") if bench.intent(id).permit == ECONOMY]
    assert len(borrowed) == 2
    for id in borrowed:
        bench.done(id)
    assert (used(bench), lent(bench)) == ([1, 0, 0, 0, 0], [0] * 5)


def test_a_retry_gives_its_permit_back_while_it_waits():
    bench = sized(1, 1, 1, 1, 1)
    fill(bench, STANDARD, 2)
    assert delivered(bench.fail("3-0")) == ["3-1"]


def test_more_permits_are_used_at_once():
    bench = sized(1, 1, 1, 1, 2)
    fill(bench, ECONOMY, 10)
    assert len(delivered(bench.do(Resize(ECONOMY, 6)))) == 4


def test_more_permits_of_a_lender_are_borrowed_at_once():
    bench = sized(1, 1, 1, 1, 2)
    fill(bench, ULTRA, 10)
    assert used(bench) == [1, 0, 0, 0, 1]
    assert len(delivered(bench.do(Resize(ECONOMY, 8)))) == 3


def test_fewer_permits_take_nothing_back_but_give_nothing_more():
    bench = sized(1, 1, 1, 1, 6)
    fill(bench, ECONOMY, 10)
    bench.do(Resize(ECONOMY, 3))
    assert used(bench)[ECONOMY] == 6
    for n in range(3):
        assert delivered(bench.done(f"4-{n}")) == []
    assert len(delivered(bench.done("4-3"))) == 1


def test_fewer_permits_while_half_are_lent():
    bench = sized(1, 1, 1, 1, 8)
    fill(bench, ULTRA, 10)
    assert (used(bench)[ECONOMY], lent(bench)[ECONOMY]) == (4, 4)
    bench.do(Resize(ECONOMY, 4))
    assert len(fill(bench, ECONOMY, 10)) == 0, "all four are out, on loan"
    for n in range(1, 5):
        (next_one,) = delivered(bench.done(f"0-{n}"))
        assert next_one.startswith("4-"), "the lender had to wait, and goes first"
    assert lent(bench)[ECONOMY] == 0


@pytest.mark.parametrize(("tier", "permits"), [(-1, 5), (5, 5), (0, 0), (0, -1), (0, PERMITS_MAX + 1)])
def test_a_size_that_makes_no_sense_is_refused(tier, permits):
    bench = Bench()
    assert error(bench.do(Resize(tier, permits))) == "InvalidField"
    assert tuple(each.max for each in bench.state.tiers.all) == TIER_PERMITS


@pytest.mark.parametrize("permits", [1, PERMITS_MAX])
def test_the_smallest_and_the_largest_size_are_taken(permits):
    bench = Bench()
    assert error(bench.do(Resize(2, permits))) == ""
    assert bench.state.tiers.all[2].max == permits


def test_the_holders_of_permits_are_known_after_a_restart():
    bench = sized(1, 1, 1, 1, 4)
    fill(bench, ULTRA, 10)
    fill(bench, ECONOMY, 10)
    bench.save()
    again = bench.thawed()
    assert (used(again), lent(again)) == (used(bench), lent(bench))
    assert [each.max for each in again.state.tiers.all] == [1, 1, 1, 1, 4]
    out = sorted(bench.state.out[""])
    assert sorted(again.state.out[""]) == out
    for id in out:
        assert delivered(again.done(id)) == delivered(bench.done(id))


def test_one_intent_that_waits_for_permits_holds_none():
    """A burst over all tiers on few permits is always worked off: nobody waits while holding some."""
    bench = sized(2, 2, 2, 2, 2)
    out: list[str] = []
    for tier in range(5):
        out += fill(bench, tier, 200)
    finished = 0
    while out:
        out += delivered(bench.done(out.pop(0)))
        finished += 1
        assert sum(used(bench)) == len(out) <= 10
    assert finished == 1_000


def test_a_lender_is_the_next_lower_tier_with_free_permits():
    tiers = Tiers()
    assert tiers.lender(HIGH) == HIGH, "its own first"
    tiers.all[HIGH].used = tiers.all[HIGH].max
    assert tiers.lender(HIGH) == STANDARD
    tiers.all[STANDARD].lent = tiers.all[STANDARD].max // 2
    assert tiers.lender(HIGH) == ECONOMY
    tiers.all[ECONOMY].used = tiers.all[ECONOMY].max
    assert tiers.lender(HIGH) == -1


def test_a_stale_first_entry_does_not_decide_about_packing():
    lane = Lane("callback:h#batch", serial=False, pushed=True)
    plain = Lane("callback:h", serial=False, pushed=True)
    packed, other = lane.track(STANDARD), plain.track(STANDARD)
    permits = Permits(2)
    permits.take_packed()
    packed.listed = (5, 5)
    permits.tracks = [(1, 1, other), (5, 5, packed)]
    assert permits.packable(), "the first entry is stale"
    assert permits.tracks == [(5, 5, packed)]
    packed.listed = None
    assert not permits.packable() and not permits.tracks
