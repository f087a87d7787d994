"""A gradient-boosted regressor of the logarithm of a duration, and its error compared with a plain median."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from duetime.engine.predictions.features import Row
from duetime.engine.predictions.messages import Score
from duetime.limits import EXPECTED_MS_MAX, TRAIN_NAMES_MAX, TRAIN_SCORES_MAX

# The newest fifth is excluded from training, to measure the error.
_KEPT_BACK = 5
# On a log scale, a small constant keeps durations near zero from dominating.
_FLOOR_MS = 0.5


class Regressor:
    """Trained once, predicts often."""

    def __init__(self, rows: Sequence[Row], took_ms: Sequence[int]) -> None:
        self._functions = _codes(row[0] for row in rows)
        self._queues = _codes(row[1] for row in rows)
        self._trees = HistGradientBoostingRegressor(
            max_iter=100, learning_rate=0.1, min_samples_leaf=10, categorical_features=[0, 1], random_state=0
        )
        self._trees.fit(self._table(rows), np.log(np.asarray(took_ms, dtype=float) + _FLOOR_MS))
        self.expected_ms(rows[:1])  # the first prediction takes longer, and a caller would wait for it

    def expected_ms(self, rows: Sequence[Row]) -> list[int]:
        guesses = np.exp(self._trees.predict(self._table(rows))) - _FLOOR_MS
        return [int(guess) for guess in np.clip(np.rint(guesses), 1, EXPECTED_MS_MAX)]

    def _table(self, rows: Sequence[Row]) -> Any:
        nan = float("nan")
        return np.array(
            [(self._functions.get(row[0], nan), self._queues.get(row[1], nan), *row[2:]) for row in rows],
            dtype=float,
        )


def judged(rows: Sequence[Row], took_ms: Sequence[int]) -> tuple[Score, dict[str, Score]]:
    """Train with all rows but the newest, and measure the error for those, in total and by function. Rows are
    oldest first."""
    split = len(rows) - len(rows) // _KEPT_BACK
    learned = Regressor(rows[:split], took_ms[:split])
    guesses = np.array(learned.expected_ms(rows[split:]), dtype=float)
    plain = _medians(rows[:split], took_ms[:split], rows[split:])
    actual = np.maximum(np.asarray(took_ms[split:], dtype=float), 1.0)
    model, sketch = np.abs(guesses - actual) / actual, np.abs(plain - actual) / actual
    names = np.array([row[0] for row in rows[split:]])
    seen = Counter(names.tolist())
    found = {
        name: _score(model[names == name], sketch[names == name])
        for name, _ in seen.most_common(TRAIN_SCORES_MAX)
    }  # fmt: skip
    return _score(model, sketch), found


def _score(model: Any, sketch: Any) -> Score:
    return Score(len(model), round(float(np.median(model)), 4), round(float(np.median(sketch)), 4))


def _medians(rows: Sequence[Row], took_ms: Sequence[int], asked: Sequence[Row]) -> Any:
    """The prediction of the sketch: the median of the function so far, or that of all."""
    times: dict[str, list[int]] = {}
    for row, ms in zip(rows, took_ms, strict=True):
        times.setdefault(row[0], []).append(ms)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    every = float(np.median(np.asarray(took_ms)))
    return np.array([medians.get(row[0], every) for row in asked])


def _codes(names: Any) -> dict[str, int]:
    return {name: place for place, (name, _) in enumerate(Counter(names).most_common(TRAIN_NAMES_MAX))}
