"""Limits of rate and concurrency: exact, shared by key, and nobody waits for nothing."""

from __future__ import annotations

import pytest

from duetime.kernel import invariants
from duetime.kernel.reasons import why
from duetime.protocol.command import LaneSettings, Pause, Resume, SetLane
from duetime.protocol.terms import Limit, Terms
from tests.unit.kernel.bench import T0, Bench, delivered, entity, error, queue, stream

ULTRA, STANDARD = 0, 3


def limited(*limits: Limit, name: str = "q", tier: int = ULTRA) -> Terms:
    return queue(name, limits=limits, tier=tier)


def ids(name: str, count: int) -> list[str]:
    return [f"{name}{n}" for n in range(count)]


def when(bench: Bench) -> int | None:
    """How long until the kernel wants to look again."""
    next_ms = bench.next()
    return None if next_ms is None else next_ms - bench.ms


def test_a_rate_lets_a_burst_go_and_then_one_in_each_interval():
    bench = Bench()
    terms = limited(Limit("t", rate=10, burst=3))
    assert delivered(bench.submit(*ids("a", 6), on=terms)) == ["a0", "a1", "a2"]
    assert when(bench) == 100
    assert delivered(bench.later(99)) == []
    assert delivered(bench.later(1)) == ["a3"]
    assert delivered(bench.later(250)) == ["a4", "a5"]
    assert bench.next() is None
    invariants.check(bench.state)


def test_a_rate_is_never_exceeded_by_rounding():
    assert Limit("t", rate=3).interval_ns == 333_333_334


def test_keys_are_shared_by_lanes_and_tiers():
    bench = Bench()
    limit = Limit("tenant:42", concurrency=2)
    assert delivered(bench.submit("a", "b", on=limited(limit, name="x"))) == ["a", "b"]
    assert delivered(bench.submit("c", on=limited(limit, name="y", tier=STANDARD))) == []
    assert delivered(bench.submit("d", on=limited(Limit("tenant:43", concurrency=2), name="y"))) == ["d"]
    assert delivered(bench.done("a")) == ["c"]
    invariants.check(bench.state)


def test_a_parked_intent_blocks_no_other():
    bench = Bench()
    bench.submit("a", "b", on=limited(Limit("k", concurrency=1)))
    assert delivered(bench.submit("free", on=queue("q", tier=ULTRA))) == ["free"]
    assert bench.statuses("a", "b", "free") == ["DISPATCHING", "DUE", "DISPATCHING"]


def test_why_names_the_limit_and_when():
    bench = Bench()
    bench.submit("a", "b", on=limited(Limit("tenant:42", rate=1, period_ms=5_000)))
    reason = why(bench.state, bench.intent("b"), T0)
    assert reason.code == "limited" and "tenant:42" in reason.sentence
    assert reason.data["next_at_ms"] == T0 + 5_000


def test_why_names_a_reached_concurrency_limit():
    bench = Bench()
    bench.do(SetLane("task:q", LaneSettings(concurrency=1)))
    bench.submit("a", "b", on=queue("q"))
    sentence = why(bench.state, bench.intent("b"), T0).sentence
    assert sentence.startswith("It waits for the limit of its lane 'task:q': the maximum number is running.")


def test_an_earlier_moment_takes_the_place_of_a_later_one():
    bench = Bench()
    bench.submit("a", "b", on=limited(Limit("k", rate=1, period_ms=5_000)))
    assert when(bench) == 5_000
    bench.submit("c", on=limited(Limit("k", rate=1, period_ms=1_000, burst=2), name="other"))
    assert when(bench) == 4_000
    assert delivered(bench.later(4_000)) == ["c"]
    assert delivered(bench.later(1_000)) == []  # c took a token: b's is there a second later
    assert when(bench) == 1_000
    assert delivered(bench.later(1_000)) == ["b"]
    invariants.check(bench.state)


def test_a_failed_attempt_frees_its_place():
    bench = Bench()
    bench.submit("a", "b", on=limited(Limit("k", concurrency=1)))
    assert delivered(bench.fail("a")) == ["b"]


def test_a_cancelled_waiting_intent_is_skipped():
    bench = Bench()
    bench.submit("a", "b", "c", on=limited(Limit("k", concurrency=1)))
    bench.cancel("b")
    assert delivered(bench.done("a")) == ["c"]
    invariants.check(bench.state)


def test_a_turn_is_passed_on_when_its_holder_expires():
    bench = Bench()
    terms = limited(Limit("k", concurrency=1))
    bench.submit("a", on=terms)
    bench.submit("b", on=terms, deadline=50)
    bench.submit("c", on=terms)
    bench.later(60)
    assert delivered(bench.done("a")) == ["c"]
    assert bench.statuses("b") == ["EXPIRED"]


def test_two_limits_both_hold_and_a_turn_with_one_is_not_lost_on_the_other():
    bench = Bench()
    wide, narrow = Limit("wide", concurrency=2), Limit("narrow", concurrency=1)
    assert delivered(bench.submit("a", "b", on=limited(wide, narrow))) == ["a"]
    assert delivered(bench.submit("c", on=limited(wide))) == ["c"]
    assert delivered(bench.submit("d", on=limited(wide))) == []
    assert delivered(bench.done("c")) == ["d"]  # b may not: narrow is taken, and its turn goes on to d
    assert delivered(bench.done("a")) == ["b"]
    invariants.check(bench.state)


def test_a_lane_has_limits_at_run_time():
    bench = Bench()
    bench.do(SetLane("task:mail", LaneSettings(concurrency=1)))
    mail = queue("mail")
    assert delivered(bench.submit("a", "b", "c", on=mail)) == ["a"]
    assert delivered(bench.do(SetLane("task:mail", LaneSettings(concurrency=2)))) == ["b"]
    assert delivered(bench.do(SetLane("task:mail", LaneSettings()))) == ["c"]
    assert bench.state.lane_settings == {}
    invariants.check(bench.state)


def test_a_new_limit_counts_what_is_out_already():
    bench = Bench()
    mail = queue("mail")
    bench.submit("a", "b", on=mail)
    bench.do(SetLane("task:mail", LaneSettings(concurrency=2)))
    assert delivered(bench.submit("c", on=mail)) == []
    assert delivered(bench.done("a")) == ["c"]


def test_a_lane_may_hold_less_than_the_others():
    bench = Bench()
    bench.do(SetLane("task:mail", LaneSettings(pending_max=1)))
    bench.submit("a", delay=1000, on=queue("mail"))
    assert [reply.reason.value for reply in bench.submit("b", on=queue("mail")).answer] == ["LaneFull"]  # type: ignore


def test_entities_have_no_other_limits():
    bench = Bench()
    assert error(bench.do(SetLane("entity:cart/1", LaneSettings(rate=1)))) == "InvalidField"
    assert error(bench.do(SetLane("entity:cart/1", LaneSettings(pending_max=5)))) == ""
    bench.submit("a", on=entity("e"))
    assert bench.statuses("a") == ["DISPATCHING"]


def test_pulled_lanes_are_limited_too():
    bench = Bench()
    terms = stream("s", limits=(Limit("k", rate=1, period_ms=100),))
    bench.submit(*ids("a", 3), on=terms)
    assert delivered(bench.demand("w", "stream:s", 5)) == ["a0"]
    assert delivered(bench.later(100)) == ["a1"]


def test_a_clock_that_is_set_back_does_not_stop_a_rate():
    bench = Bench()
    bench.submit("a", "b", on=limited(Limit("k", rate=1, period_ms=1_000)))
    bench.at(-3_600_000 + 10)
    assert when(bench) == 1_000
    bench.later(1_000)
    assert bench.statuses("b") in (["DISPATCHING"], ["SCHEDULED"])


@pytest.mark.parametrize("passed_ms", [0, 50])
def test_a_restart_forgets_nothing(passed_ms):
    bench = Bench()
    terms = limited(Limit("r", rate=10, burst=2), Limit("c", concurrency=3))
    bench.submit(*ids("a", 5), on=terms)
    bench.later(passed_ms)
    bench.save()
    again = bench.thawed()
    assert again.state.flow.limiters["key:r"].full_ns == bench.state.flow.limiters["key:r"].full_ns
    assert again.state.flow.limiters["key:c"].running == 2
    assert again.next() == bench.next()
    invariants.check(again.state)
    wait = 100 - passed_ms
    assert delivered(again.later(wait)) == delivered(bench.later(wait)) == ["a2"]


def test_limits_hold_over_many_terms_and_dropped_limiters():
    """Whatever is remembered of terms, and forgotten again, one key has one limiter."""
    bench = Bench()
    always, lane = Limit("always", concurrency=1), SetLane("task:narrow", LaneSettings(concurrency=1))
    first = limited(always)
    bench.submit("a", on=first)
    bench.do(lane)
    for n in range(6_000):  # more limiters than are kept, then more terms than are remembered
        bench.submit(f"b{n}", on=limited(Limit(f"k{n}" if n < 1_500 else "k", concurrency=1)))
        bench.done(f"b{n}")
        if n % 1_000 == 0:
            bench.later(1)
            bench.submit(f"n{n}", f"m{n}", on=limited(name="narrow"))
            assert bench.statuses(f"n{n}", f"m{n}") == ["DISPATCHING", "DUE"]
            assert delivered(bench.done(f"n{n}")) == [f"m{n}"]
            bench.done(f"m{n}")
    assert delivered(bench.submit("c", on=limited(always))) == []
    assert delivered(bench.submit("d", on=first)) == []
    assert delivered(bench.done("a")) == ["c"]
    assert delivered(bench.done("c")) == ["d"]
    invariants.check(bench.state)


def test_limiters_that_mean_nothing_are_dropped():
    bench = Bench()
    for n in range(1_100):
        bench.submit(f"i{n}", on=limited(Limit(f"k{n}", concurrency=1), name="many"))
        bench.done(f"i{n}")
    assert len(bench.state.flow.limiters) < 200


def test_a_paused_lane_does_not_keep_the_engine_awake():
    bench = Bench()
    terms = limited(Limit("k", rate=10, burst=2))
    bench.submit(*ids("a", 8), on=terms)
    bench.do(Pause("task:q"))
    bench.later(100)
    bench.later(1_000)
    for _ in range(5):
        wait = when(bench)
        assert wait is None or wait > 0
        bench.later(wait or 1)
    assert delivered(bench.do(Resume("task:q"))) == ["a2", "a3"]
    assert delivered(bench.later(100)) == ["a4"]
    invariants.check(bench.state)
