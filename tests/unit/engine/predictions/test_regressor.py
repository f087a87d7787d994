"""The regressor learns what a median cannot know, and says honestly when it does not."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("sklearn")

from threadpoolctl import threadpool_limits

from duetime.engine.predictions.features import Row
from duetime.engine.predictions.regressor import Regressor, judged
from duetime.limits import EXPECTED_MS_MAX


@pytest.fixture(autouse=True)
def _one_core():
    with threadpool_limits(limits=1):
        yield


def rows(count: int, seed: int = 1) -> tuple[list[Row], list[int]]:
    """One function whose time follows a number in its payload, one that always takes the same."""
    random, made, took = Random(seed), [], []
    for _ in range(count):
        size = random.randrange(1, 2_000)
        steady = random.random() < 0.3
        name = "task:steady" if steady else "task:by-size"
        made.append((name, "task:default", 20, 1, size, 2, random.randrange(24), 1))
        took.append(max(1, round((200 if steady else size) * random.lognormvariate(0, 0.1))))
    return made, took


def test_a_model_of_the_payload_beats_the_median():
    made, took = rows(2_000)
    score, functions = judged(made, took)
    assert score.model < 0.1 < 0.2 < score.sketch
    assert functions["task:by-size"].model < functions["task:by-size"].sketch / 3
    assert functions["task:steady"].sketch < 0.1
    assert sum(each.count for each in functions.values()) == score.count == 400


def test_an_unknown_function_gets_a_prediction():
    model = Regressor(*rows(500))
    [known, unknown] = model.expected_ms(
        [("task:by-size", "task:default", 20, 1, 1_500, 2, 3, 1), ("task:new", "task:q", 0, 0, 9, 0, 0, 4)]
    )
    assert known == pytest.approx(1_500, rel=0.4) and 1 <= unknown <= EXPECTED_MS_MAX


def test_a_model_of_random_durations_does_not_beat_the_median():
    random = Random(3)
    made = [("task:f", "task:q", 20, 1, random.randrange(100), 2, 0, 1) for _ in range(1_000)]
    took = [round(random.lognormvariate(5, 1)) for _ in made]
    score, _ = judged(made, took)
    assert score.model > 0.8 * score.sketch
