"""A deadline relative to the time of execution."""

from __future__ import annotations

from duetime.protocol.intent import Status
from duetime.protocol.outcome import Rejected
from tests.unit.kernel.bench import T0, Bench, delivered, error, stream

EXPIRES = stream(expires_ms=500)


def test_the_deadline_counts_from_the_time_of_execution():
    bench = Bench()
    bench.submit("i", delay=1_000, on=EXPIRES)
    assert bench.intent("i").deadline_ms == T0 + 1_500
    bench.at(1_500)
    assert bench.status("i") is Status.EXPIRED


def test_an_own_deadline_goes_first():
    bench = Bench()
    bench.submit("i", on=EXPIRES, deadline_ms=T0 + 9_000)
    assert bench.intent("i").deadline_ms == T0 + 9_000


def test_a_dependent_has_its_deadline_from_its_release_on():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), on=EXPIRES)
    assert bench.intent("c").deadline_ms == 0, "it waits as long as its parent takes"
    bench.at(60_000)
    bench.done("p")
    assert bench.intent("c").deadline_ms == T0 + 60_500
    bench.at(60_500)
    assert bench.status("c") is Status.EXPIRED


def test_a_dependent_with_a_later_time_has_its_deadline_after_it():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), delay=2_000, on=EXPIRES)
    bench.done("p")
    assert bench.intent("c").deadline_ms == T0 + 2_500


def test_a_dependent_keeps_the_deadline_that_a_patch_gave_it():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), on=EXPIRES)
    bench.patch("c", execute_at_ms=T0 + 100)
    assert bench.intent("c").deadline_ms == 0, "its deadline still counts from its release"
    bench.patch("c", deadline_ms=T0 + 9_000)
    bench.done("p")
    assert bench.intent("c").deadline_ms == T0 + 9_000


def test_the_deadline_moves_with_a_patched_time():
    bench = Bench()
    bench.submit("i", delay=1_000, on=EXPIRES)
    assert error(bench.patch("i", execute_at_ms=T0 + 60_000)) == ""
    assert bench.intent("i").deadline_ms == T0 + 60_500
    bench.patch("i", execute_at_ms=T0 + 70_000, deadline_ms=0)
    assert bench.intent("i").deadline_ms == 0
    bench.patch("i", tags={"a": "b"})
    assert bench.intent("i").deadline_ms == 0, "only a new time brings it back"


def test_a_revived_intent_has_the_whole_time_again():
    bench = Bench()
    bench.submit("i", on=EXPIRES)
    assert delivered(bench.demand("w", "stream:s")) == ["i"]
    bench.settle("i", Rejected("no", "never"))
    bench.at(10_000)
    bench.revive("i", execute_at_ms=T0 + 20_000)
    assert bench.intent("i").deadline_ms == T0 + 20_500
