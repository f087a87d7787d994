"""Measured and predicted durations by function and lane, their error, and the gain of ordering by them."""

from __future__ import annotations

from msgspec import Struct

from duetime.engine.engine import Engine
from duetime.engine.predictions.model import Model
from duetime.engine.predictions.sketch import Sketch
from duetime.insight.queueing import Gain, gain_of
from duetime.limits import PREDICT_ENOUGH, SECOND_MS
from duetime.timefmt import iso

# The suggested timeout, which only a hanging call reaches: this multiple of the p99, at least a second.
_MARGIN = 3
_SHOWN_MAX = 200


class FunctionForecast(Struct, rename="camel"):
    """Durations of one function."""

    function: str
    count: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    sketch_error: float
    """Median relative error if the function's median is used as the prediction."""
    model_error: float | None
    """Median relative error of the model on the newest intents, which it was not trained on."""
    suggested_timeout_ms: int | None
    """A multiple of the p99; None while there are too few samples."""


class LaneForecast(Struct, rename="camel"):
    """A lane that is ordered by predictions, or could be."""

    lane: str
    order: str
    source: str
    """The current source of predictions: model, sketch, or none (order of arrival)."""
    gain: Gain | None


class ModelForecast(Struct, rename="camel"):
    """The model. It predicts only while it is IN_USE."""

    state: str
    detail: str
    version: str | None = None
    trained_at: str | None = None
    rows: int = 0
    model_error: float | None = None
    sketch_error: float | None = None
    pid: int | None = None


class Predictions(Struct, rename="camel"):
    """All statistics about durations."""

    functions: list[FunctionForecast]
    more_functions: int
    lanes: list[LaneForecast]
    model: ModelForecast
    predicted: dict[str, int]
    """Predictions since the start, by source."""


def predictions(engine: Engine) -> Predictions:
    """The statistics now. The simulation of each ordered lane takes some milliseconds."""
    predictor, settings = engine.predictor, engine.reads.lane_settings
    durations, model = predictor.durations, predictor.model
    names = sorted(durations.functions, key=lambda name: (-durations.functions[name].added, name))
    known = [name for name in names if durations.functions[name].count]
    return Predictions(
        functions=[_function(name, durations.functions[name], model) for name in known[:_SHOWN_MAX]],
        more_functions=max(0, len(known) - _SHOWN_MAX),
        lanes=[
            LaneForecast(lane, settings(lane).order.name, predictor.source(lane), gain_of(recent))
            for lane, recent in sorted(durations.watched.items())
        ],
        model=_model(model),
        predicted=dict(predictor.told),
    )


def _function(name: str, sketch: Sketch, model: Model) -> FunctionForecast:
    score = None if model.trained is None else model.trained.functions.get(name)
    p99_ms = _ms(sketch, 0.99)
    enough = sketch.count >= PREDICT_ENOUGH
    return FunctionForecast(
        function=name,
        count=sketch.added,
        mean_ms=round(sketch.mean_ms, 1),
        p50_ms=_ms(sketch, 0.5),
        p90_ms=_ms(sketch, 0.9),
        p99_ms=p99_ms,
        sketch_error=round(sketch.error() or 0.0, 4),
        model_error=None if score is None else score.model,
        suggested_timeout_ms=max(SECOND_MS, round(_MARGIN * p99_ms)) if enough else None,
    )


def _ms(sketch: Sketch, share: float) -> float:
    return round(sketch.quantile(share) or 0.0, 1)


def _model(model: Model) -> ModelForecast:
    trained = model.trained
    if trained is None:
        return ModelForecast(model.state, model.trouble(), pid=model.pid)
    return ModelForecast(
        state=model.state,
        detail=model.trouble(),
        version=trained.version,
        trained_at=iso(trained.at_ms),
        rows=trained.rows,
        model_error=trained.score.model,
        sketch_error=trained.score.sketch,
        pid=model.pid,
    )
