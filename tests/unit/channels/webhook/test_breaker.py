"""The breaker: opens after failures in a row, lets one through to find out, and closes again."""

from __future__ import annotations

from duetime.channels.webhook.breaker import Breaker


def opened(at_s: float = 100.0) -> Breaker:
    breaker = Breaker(3, 5.0)
    for _ in range(3):
        assert breaker.admits(at_s)
        breaker.failed(at_s, probe=False)
    return breaker


def test_failures_in_a_row_open_it():
    breaker = opened()
    assert breaker.is_open and not breaker.admits(100.0) and not breaker.admits(104.9)
    assert breaker.wait_s(100.0) == 5.0 and breaker.wait_s(104.9) == 1.0


def test_a_success_resets_the_failure_count():
    breaker = Breaker(3, 5.0)
    for _ in range(10):
        breaker.failed(0.0, probe=False)
        breaker.failed(0.0, probe=False)
        breaker.succeeded()
    assert not breaker.is_open and breaker.admits(0.0)


def test_a_half_open_breaker_admits_one_probe():
    breaker = opened()
    assert breaker.admits(105.0) and not breaker.admits(105.0) and not breaker.admits(1_000.0)
    breaker.succeeded()
    assert not breaker.is_open and breaker.admits(105.0) and breaker.admits(105.0)


def test_each_time_it_is_left_alone_for_longer_up_to_a_limit():
    breaker = opened()
    now_s, waits = 105.0, []
    for _ in range(6):
        assert breaker.admits(now_s)
        breaker.failed(now_s, probe=True)
        waits.append(breaker.wait_s(now_s))
        now_s += waits[-1]
    assert waits == [10.0, 20.0, 40.0, 60.0, 60.0, 60.0]
    assert breaker.admits(now_s)
    breaker.succeeded()
    for _ in range(3):
        breaker.failed(now_s, probe=False)
    assert breaker.wait_s(now_s) == 5.0


def test_calls_that_began_before_it_opened_do_not_prolong_it():
    breaker = opened()
    breaker.failed(103.0, probe=False)
    breaker.abandoned(probe=False)
    assert breaker.wait_s(103.0) == 2.0
    assert breaker.admits(105.0)
    breaker.failed(106.0, probe=False)  # not the one that finds out
    breaker.abandoned(probe=False)
    assert not breaker.admits(106.0)


def test_a_probe_without_an_answer_is_followed_by_another():
    breaker = opened()
    assert breaker.admits(105.0)
    breaker.abandoned(probe=True)
    assert breaker.is_open and breaker.admits(105.0)


def test_a_probe_without_an_answer_is_followed_by_one_of_another_key():
    """A path that hangs until its time limit does not keep the others waiting as long."""
    breaker = opened()
    assert breaker.admits(105.0, "/hangs") and not breaker.admits(105.5, "/fine")
    assert not breaker.admits(106.0, "/hangs") and breaker.admits(106.0, "/fine")
    breaker.succeeded()
    breaker.failed(135.0, probe=True)  # the one that hung
    assert not breaker.is_open and breaker.admits(135.0)


def test_a_url_whose_probe_failed_waits_for_a_probe_of_another():
    breaker = opened()
    assert breaker.admits(105.0, "/bad")
    breaker.failed(105.0, probe=True)
    assert not breaker.admits(106.0, "/fine"), "it is held back, and remembered"
    assert not breaker.admits(115.0, "/bad") and breaker.admits(115.0, "/fine")
    breaker.failed(115.0, probe=True)
    assert not breaker.admits(120.0, "/bad")
    assert breaker.admits(136.0, "/fine"), "if no other comes within a second, it may after all"


def test_two_probes_that_fail_together_count_once():
    breaker = opened()
    assert breaker.admits(105.0, "/a") and breaker.admits(106.0, "/b")
    breaker.failed(107.0, probe=True)
    breaker.failed(107.0, probe=True)
    assert breaker.wait_s(107.0) == 10.0
