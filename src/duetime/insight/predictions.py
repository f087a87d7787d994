"""Measured and predicted durations by function and lane, their error, and the gain of ordering by them."""

from __future__ import annotations

from duetime.engine.engine import Engine
from duetime.engine.predictions.model import Model
from duetime.engine.predictions.sketch import Sketch
from duetime.insight.queueing import gain_of
from duetime.limits import PREDICT_ENOUGH, PREDICT_SHOWN_MAX, SECOND_MS
from duetime.wire.predictions import FunctionForecast, LaneForecast, ModelForecast, Predictions
from duetime.wire.shapes import written

# The suggested timeout, which only a hanging call reaches: this multiple of the p99, at least a second.
_MARGIN = 3


def predictions(engine: Engine) -> Predictions:
    """The statistics now. The simulation of each ordered lane takes some milliseconds."""
    predictor, settings = engine.predictor, engine.reads.lane_settings
    durations, model = predictor.durations, predictor.model
    names = sorted(durations.functions, key=lambda name: (-durations.functions[name].added, name))
    known = [name for name in names if durations.functions[name].count]
    return Predictions(
        functions=[_function(name, durations.functions[name], model) for name in known[:PREDICT_SHOWN_MAX]],
        more_functions=max(0, len(known) - PREDICT_SHOWN_MAX),
        lanes=[
            LaneForecast(
                lane=lane,
                order=settings(lane).order.name,  # type: ignore[arg-type]
                source=predictor.source(lane),
                gain=gain_of(recent),
            )
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
    return ModelForecast(
        state=model.state,
        detail=model.trouble(),
        version=None if trained is None else trained.version,
        trained_at=None if trained is None else written(trained.at_ms),
        rows=0 if trained is None else trained.rows,
        model_error=None if trained is None else trained.score.model,
        sketch_error=None if trained is None else trained.score.sketch,
        pid=model.pid,
    )
