"""Predictions: measured and predicted durations, their error, and the gain of ordering by them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime.wire.lane import OrderName
from duetime.wire.shapes import Moment, Out


class FunctionForecast(Out, frozen=True):
    """Durations of one function."""

    function: str
    count: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    sketch_error: Annotated[
        float, Meta(description="Median relative error if the function's median is the prediction.")
    ]
    model_error: Annotated[
        float | None,
        Meta(
            description=(
                "Median relative error of the model on the newest intents, which it was not trained on."
            )
        ),
    ]
    suggested_timeout_ms: Annotated[
        int | None, Meta(description="A multiple of the p99; null while there are too few samples.")
    ]


class Replayed(Out, frozen=True):
    """The time of jobs from due to end."""

    mean_ms: float
    p99_ms: float


class Gain(Out, frozen=True):
    """The same jobs in the order of arrival, and ordered by predicted duration."""

    jobs: int
    servers: Annotated[int, Meta(description="Maximum number of jobs at the same time.")]
    fifo: Replayed
    expected: Replayed
    mean_gain: Annotated[float, Meta(description="Relative reduction of the mean.")]
    p99_gain: Annotated[float, Meta(description="Relative reduction of the p99.")]


class LaneForecast(Out, frozen=True):
    """A lane that is ordered by predictions, or could be."""

    lane: str
    order: OrderName
    source: Annotated[
        str,
        Meta(description="Current source of predictions: model, sketch, or none (order of arrival)."),
    ]
    gain: Annotated[Gain | None, Meta(description="Null while there are too few jobs.")]


class ModelForecast(Out, frozen=True):
    """The model. It predicts only while it is IN_USE."""

    state: str
    detail: Annotated[str, Meta(description="Why it is not in use, if something is wrong.")]
    version: str | None
    trained_at: Moment | None
    rows: Annotated[int, Meta(description="Number of intents that it was trained on.")]
    model_error: float | None
    sketch_error: float | None
    pid: int | None


class Predictions(Out, frozen=True):
    """All statistics about durations."""

    functions: list[FunctionForecast]
    more_functions: Annotated[int, Meta(description="Number of functions that are not listed.")]
    lanes: list[LaneForecast]
    model: ModelForecast
    predicted: Annotated[dict[str, int], Meta(description="Predictions since the start, by source.")]
