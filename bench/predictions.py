"""Ordering by expected duration: how much sooner jobs end than in the order of arrival, and how good the
predictions are.

The queue is simulated with the code of the shadow mode (`insight.queueing`), so the figures need no quiet
machine and are the same on every one. The model is the real one; the durations that it learns depend on the
payload.
"""

from __future__ import annotations

from random import Random
from statistics import fmean

from bench.figure import Figure
from duetime.engine.predictions.durations import EndedRun
from duetime.insight.queueing import replay
from duetime.limits import EXPECTED_FACTOR

SERVERS = 4
JOBS = 4_000
SEEDS = range(1, 41)
BUSY = (0.30, 0.50, 0.70, 0.85, 0.95)
# Durations in milliseconds, with their shares.
MIXES = {
    "90 % of 50 ms, 9 % of 500 ms, 1 % of 10 s": ((0.90, 50), (0.09, 500), (0.01, 10_000)),
    "half 100 ms, half 200 ms": ((0.5, 100), (0.5, 200)),
    "all equal": ((1.0, 100),),
}
# Predictions off by about a factor of seven.
SIGMA = 2.0
# Rows that the model learns from, and is then asked about.
ROWS = 4_000


def run() -> list[Figure]:
    figures = []
    for name, mix in MIXES.items():
        for busy in BUSY:
            gain = fmean(_gain(mix, busy, seed, 0.0) for seed in SEEDS)
            floor = 0.4 if busy == 0.85 and len(mix) == 3 else -0.01
            what = f"mean time to completion below FIFO: {name}, workers {busy:.0%} busy"
            figures.append(Figure(what, round(100 * gain, 1), "%", floor=100 * floor))
    first = MIXES["90 % of 50 ms, 9 % of 500 ms, 1 % of 10 s"]
    noisy = fmean(_gain(first, 0.85, seed, SIGMA) for seed in SEEDS)
    figures.append(
        Figure("... 85 % busy, predictions off by a factor of seven", round(100 * noisy, 1), "%", floor=40)
    )
    return figures + _model()


def _gain(mix: tuple[tuple[float, int], ...], busy: float, seed: int, sigma: float) -> float:
    """By how much the mean falls, as a share of FIFO's."""
    chance, error = Random(seed), Random(-seed)
    shares, lengths = [share for share, _ in mix], [ms for _, ms in mix]
    pause_ms = sum(share * ms for share, ms in mix) / (SERVERS * busy)
    at_ms, jobs = 0.0, []
    for _ in range(JOBS):
        at_ms += chance.expovariate(1 / pause_ms)
        (ms,) = chance.choices(lengths, shares)
        guess = ms * error.lognormvariate(0, sigma) if sigma else ms
        jobs.append(EndedRun("f", int(at_ms), int(at_ms), ms, int(guess)))
    fifo, expected = replay(jobs, SERVERS, 0), replay(jobs, SERVERS, EXPECTED_FACTOR)
    return 1 - expected.mean_ms / fifo.mean_ms


def _model() -> list[Figure]:
    """The error of the model and of the sketch's median, for durations that grow with the payload."""
    try:
        from duetime.engine.predictions.regressor import judged
    except ImportError:
        return []
    chance = Random(1)
    rows, took_ms = [], []
    for _ in range(ROWS):
        size = int(chance.lognormvariate(6, 1.5))
        rows.append(("import", "default", size, 3, size // 20, 2, chance.randrange(24), 1))
        took_ms.append(max(1, int(size * 0.4 * chance.lognormvariate(0, 0.2))))
    score, _ = judged(rows, took_ms)
    return [
        Figure("error of the model, durations that depend on the payload", round(100 * score.model, 1), "%"),
        Figure("... of the sketch", round(100 * score.sketch, 1), "%"),
        Figure("... of the sketch against the model", round(score.sketch / score.model, 2), "x", floor=2),
    ]
