"""Pause, resume, configure, start."""

from __future__ import annotations

import pytest

from duetime.protocol.command import Configure, Drain, Pause, Resize, Resume, Settings, Start
from duetime.protocol.intent import Status
from duetime.protocol.terms import Redelivery
from tests.unit.kernel.bench import Bench, delivered, entity, errors, queue, stream, terms


def test_a_paused_lane_hands_out_nothing_and_takes_everything():
    bench = Bench()
    bench.do(Pause("task:q"))
    assert delivered(bench.submit("a", "b", on=queue("q"))) == []
    assert delivered(bench.submit("c", on=queue("other"))) == ["c"]
    assert delivered(bench.do(Resume("task:q"))) == ["a", "b"]


def test_running_deliveries_continue_when_their_lane_is_paused():
    bench = Bench()
    bench.submit("a", on=queue("q"))
    bench.do(Pause("task:q"))
    assert bench.done("a").answer == [True]
    assert bench.state.lanes["task:q"].paused


def test_a_paused_lane_is_paused_after_a_restart_even_if_it_is_empty():
    bench = Bench()
    bench.do(Pause("task:q"))
    bench.do(Pause("entity:cart/1"))
    bench.save()
    again = bench.thawed()
    assert delivered(again.submit("a", on=queue("q"))) == []
    assert again.state.entities == bench.state.entities == 1


def test_a_paused_pulled_lane_waits_with_credits():
    bench = Bench()
    bench.do(Pause("stream:s"))
    bench.demand("w", "stream:s", 2)
    assert delivered(bench.submit("a", on=stream())) == []
    assert delivered(bench.do(Resume("stream:s"))) == ["a"]


def test_resuming_an_unknown_or_empty_lane_leaves_nothing_behind():
    bench = Bench()
    bench.do(Resume("task:q"))
    bench.do(Pause("task:q"))
    bench.do(Resume("task:q"))
    assert bench.state.lanes == {}


def test_deadlines_pass_in_a_paused_lane():
    bench = Bench()
    bench.do(Pause("task:q"))
    bench.submit("a", on=queue("q"), deadline=500)
    bench.at(500)
    assert bench.status("a") is Status.EXPIRED


def test_settings_hold_from_here_on():
    bench = Bench()
    bench.submit("a", "b", delay=5)
    bench.do(Configure(Settings(pending_max=2)))
    assert errors(bench.submit("c")) == ["Busy"]
    bench.do(Configure(Settings(pending_max=3)))
    assert errors(bench.submit("c")) == [""]


def test_a_lane_becomes_pulled_and_pushed_again():
    bench = Bench()
    for tier in (3, 4):
        bench.do(Resize(tier, 1))
    bench.submit("a", "b", "c")
    bench.configure(pushed=())
    bench.done("a")
    assert bench.status("b") is Status.DUE
    assert delivered(bench.demand("w", "task:default")) == ["b"]
    applied = bench.configure(pushed=("task",))
    assert delivered(applied) == ["c"]
    assert bench.done("b").answer == [True]
    assert bench.done("c").answer == [True]
    assert [permits.used for permits in bench.state.tiers.all] == [0] * 5


def test_settings_survive_a_restart():
    bench = Bench(pending_max=7, pushed=("task",))
    bench.save()
    assert bench.thawed().state.settings == bench.state.settings


def test_a_new_writer_loses_what_the_old_one_ran():
    bench = Bench()
    bench.submit("a", "b", "c")
    bench.done("b")
    applied = bench.do(Start(1))
    assert [change.id for change in applied.changes] == ["a", "c"]
    assert bench.statuses("a", "c") == ["SCHEDULED", "SCHEDULED"]
    assert bench.intent("a").attempt == 1, "an interruption counts"
    assert delivered(bench.later(1_000)) == ["a", "c"]
    assert bench.intent("a").delivery == 2


def test_a_crash_loop_ends_as_a_dead_letter():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(max_attempts=3, jitter=False)))
    for _ in range(3):
        bench.start()
        bench.later(10_000)
    assert bench.status("a") is Status.DEAD_LETTERED


@pytest.mark.parametrize("epoch", [9, 10])
def test_an_epoch_is_a_number_that_grows(epoch):
    bench = Bench()
    bench.do(Start(10))
    with pytest.raises(AssertionError, match="grow"):
        bench.do(Start(epoch))


def test_ten_is_newer_than_nine():
    bench = Bench()
    bench.do(Start(9))
    bench.do(Start(10))
    assert bench.state.epoch == 10


def test_a_draining_engine_hands_out_nothing_and_keeps_everything():
    bench = Bench()
    bench.submit("running")
    bench.submit("m1", "m2", on=entity())
    bench.demand("w", "stream:s", 5)
    bench.do(Drain())
    assert delivered(bench.submit("a")) == []
    assert delivered(bench.submit("s", on=stream())) == []
    assert delivered(bench.done("m1")) == []
    assert bench.done("running").answer == [True], "what runs may end"
    bench.submit("late", on=queue("q"), deadline=100)
    bench.later(100)
    assert bench.status("late") is Status.EXPIRED, "time goes on"
    assert bench.statuses("a", "s", "m2") == ["DUE", "DUE", "DUE"]


@pytest.mark.parametrize("restart", [False, True])
def test_the_next_engine_hands_out_what_a_draining_one_kept(restart):
    bench = Bench()
    bench.do(Drain())
    bench.submit("a", "b")
    bench.submit("m1", "m2", on=entity())
    if restart:
        bench.save()
        bench = bench.thawed()
        assert delivered(bench.later(5)) == [], "it still drains until somebody starts"
    assert sorted(delivered(bench.start())) == ["a", "b", "m1"]
    assert delivered(bench.done("m1")) == ["m2"]
