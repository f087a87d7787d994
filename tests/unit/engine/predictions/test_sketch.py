"""A sketch is right to within five percent, whatever it is given, and follows what changes."""

from __future__ import annotations

import sys
from random import Random

import pytest

from duetime.engine.predictions.sketch import Sketch


def filled(values: list[int]) -> Sketch:
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    return sketch


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_quantile_is_right_to_within_five_percent(seed, share):
    random = Random(seed)
    values = [1 + int(random.lognormvariate(random.uniform(1, 9), 1.5)) for _ in range(5_000)]
    found = filled(values).quantile(share)
    exact = sorted(values)[round(share * len(values)) - 1]
    assert found == pytest.approx(exact, rel=0.05, abs=0.6)


def test_the_mean_is_right_to_within_five_percent():
    random = Random(1)
    values = [int(random.expovariate(1 / 800)) for _ in range(5_000)]
    assert filled(values).mean_ms == pytest.approx(sum(values) / len(values), rel=0.05)


def test_the_mean_is_looked_at_again_when_there_is_more():
    sketch = filled([100])
    assert sketch.mean_ms == pytest.approx(100, rel=0.05)
    for _ in range(50):
        sketch.add(10)
    assert sketch.mean_ms < 15


def test_an_empty_sketch_has_no_quantiles():
    sketch = Sketch()
    assert (sketch.quantile(0.5), sketch.mean_ms, sketch.error()) == (None, 0.0, None)


def test_two_add_up_to_one():
    values = [Random(n).randrange(1, 10_000) for n in range(600)]
    one, both = filled(values), filled(values[:200])
    both.merge(filled(values[200:]))
    assert both.counts == one.counts and both.mean_ms == one.mean_ms and both.added == one.added


def test_many_merged_ones_are_aged_too():
    sketch = filled([50] * 5_000)
    sketch.merge(filled([50] * 5_000))
    assert sketch.count <= 8_192 and sketch.added == 10_000


@pytest.mark.parametrize("ms", [-5, 0, 1, 4_095, 4_096, 10**12])
def test_any_number_has_its_place(ms):
    found = filled([ms] * 3)
    assert found.count == 3 and found.quantile(0.5) is not None


def test_a_changed_duration_dominates_after_some_thousand_runs():
    sketch = filled([1_000] * 50_000)
    for _ in range(20_000):
        sketch.add(10)
    assert sketch.quantile(0.5) == pytest.approx(10, rel=0.06)


def test_memory_does_not_depend_on_how_many_are_added():
    many = filled([n * 37 % 100_000 for n in range(100_000)])
    assert sys.getsizeof(many.counts) < 2_500 and len(many.counts) == len(Sketch().counts)
    assert many.added == 100_000


def test_the_error_is_the_median_distance_from_the_median():
    assert filled([100] * 50).error() == 0.0
    assert filled([10] * 70 + [1_000] * 40 + [5] * 20).error() == pytest.approx(0.0)
    assert filled([10] * 10 + [100] * 11 + [1_000] * 10).error() == pytest.approx(0.9, abs=0.02)
