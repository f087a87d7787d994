"""Simulates a small queue: how long finished jobs would have taken in another order."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from duetime.engine.predictions.durations import EndedRun
from duetime.limits import EXPECTED_FACTOR
from duetime.wire.predictions import Gain, Replayed


def gain_of(ended: Sequence[EndedRun]) -> Gain | None:
    """The gain of ordering by prediction; None if there are too few jobs."""
    jobs = sorted(ended, key=lambda each: each.due_at_ms)
    if len(jobs) < 2:
        return None
    servers = peak(jobs)
    fifo, expected = replay(jobs, servers, 0), replay(jobs, servers, EXPECTED_FACTOR)
    mean_gain = 1 - expected.mean_ms / fifo.mean_ms if fifo.mean_ms else 0.0
    p99_gain = 1 - expected.p99_ms / fifo.p99_ms if fifo.p99_ms else 0.0
    return Gain(
        jobs=len(jobs),
        servers=servers,
        fifo=fifo,
        expected=expected,
        mean_gain=round(mean_gain, 3),
        p99_gain=round(p99_gain, 3),
    )


def peak(jobs: Sequence[EndedRun]) -> int:
    """The maximum number of jobs at the same time."""
    steps = [(job.started_at_ms, 1) for job in jobs]
    steps += [(job.started_at_ms + job.took_ms, -1) for job in jobs]
    most = now = 0
    for _, step in sorted(steps):  # at the same time, ends come before starts
        now += step
        most = max(most, now)
    return max(1, most)


def replay(jobs: Sequence[EndedRun], servers: int, factor: int) -> Replayed:
    """Run jobs in the order of arrival with this concurrency; each job is moved back by a multiple of its
    predicted duration."""
    free = [0] * servers
    heapify(free)
    ready: list[tuple[int, int]] = []
    took: list[int] = []
    coming = now_ms = 0
    while len(took) < len(jobs):
        now_ms = max(now_ms, heappop(free))
        if not ready:
            now_ms = max(now_ms, jobs[coming].due_at_ms)
        while coming < len(jobs) and jobs[coming].due_at_ms <= now_ms:
            job = jobs[coming]
            heappush(ready, (job.due_at_ms + factor * job.expected_ms, coming))
            coming += 1
        job = jobs[heappop(ready)[1]]
        heappush(free, now_ms + job.took_ms)
        took.append(now_ms + job.took_ms - job.due_at_ms)
    took.sort()
    return Replayed(
        mean_ms=round(sum(took) / len(took), 1),
        p99_ms=float(took[min(len(took) - 1, len(took) * 99 // 100)]),
    )
