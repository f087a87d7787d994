"""The replay of a queue in another order: against what can be counted by hand."""

from __future__ import annotations

from duetime.engine.predictions.durations import EndedRun
from duetime.insight.queueing import gain_of, peak, replay


def job(due_ms: int, took_ms: int, expected_ms: int = 0, started_ms: int = 0) -> EndedRun:
    return EndedRun("task:f", due_ms, started_ms, took_ms, expected_ms)


def test_in_fifo_order_every_job_waits_for_all_earlier_ones():
    found = replay([job(0, 100), job(0, 10), job(50, 10)], 1, 0)
    assert found.mean_ms == round((100 + 110 + 70) / 3, 1) and found.p99_ms == 110


def test_the_shorter_first_as_predicted():
    jobs = [job(0, 5, 1), job(1, 100, 100), job(2, 10, 10), job(3, 10, 10)]
    found = replay(jobs, 1, 2)
    assert found.mean_ms == round((5 + (15 - 2) + (25 - 3) + (125 - 1)) / 4, 1)


def test_a_job_is_not_overtaken_after_twice_its_expected_time():
    found = replay([job(0, 1_000, 1), job(1, 100, 100), job(500, 1, 1)], 1, 2)
    assert found.p99_ms == 1_099, "the long one of 1 ms is before the short one of 500 ms"


def test_two_at_a_time():
    found = replay([job(0, 10), job(0, 10), job(0, 10)], 2, 0)
    assert found.mean_ms == round((10 + 10 + 20) / 3, 1)


def test_a_late_moment_is_no_other_than_an_early_one():
    shift = 1_800_000_000_000
    early, late = [job(0, 10), job(3, 10)], [job(shift, 10), job(shift + 3, 10)]
    assert replay(early, 2, 0) == replay(late, 2, 0)


def test_peak_is_the_largest_number_of_concurrent_jobs():
    assert peak([job(0, 10, started_ms=0), job(0, 10, started_ms=5), job(0, 10, started_ms=10)]) == 2


def test_a_gain_needs_at_least_two_jobs():
    assert gain_of([]) is None and gain_of([job(0, 1)]) is None
    jobs = [job(n, 1_000 if n % 10 == 0 else 10, 1_000 if n % 10 == 0 else 10, n) for n in range(100)]
    found = gain_of(jobs[::-1])
    assert found is not None and found.jobs == 100
    single = [EndedRun("f", each.due_at_ms, 0, 0, each.expected_ms) for each in jobs]
    nothing = gain_of(single)
    assert nothing is not None and (nothing.mean_gain, nothing.p99_gain) == (0.0, 0.0)


def test_a_line_of_short_ones_behind_long_ones_gains():
    jobs, at_ms = [], 0
    for n in range(200):
        ms = 900 if n % 5 == 0 else 10
        jobs.append(EndedRun("f", n, at_ms, ms, ms))
        at_ms += ms
    found = gain_of(jobs)
    assert found is not None and found.servers == 1
    assert found.mean_gain > 0.5 and found.p99_gain > -0.1
