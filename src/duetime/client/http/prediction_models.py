"""Responses about durations of functions, and the number of workers that queues need."""

from __future__ import annotations

from duetime.wire.shapes import Out


class FunctionForecast(Out, frozen=True):
    """Durations of one function."""

    function: str
    count: int = 0
    mean_ms: float = 0.0
    p50_ms: float = 0.0
    p90_ms: float = 0.0
    p99_ms: float = 0.0
    sketch_error: float = 0.0
    model_error: float | None = None
    suggested_timeout_ms: int | None = None


class Replayed(Out, frozen=True):
    """The time of jobs from due to end."""

    mean_ms: float = 0.0
    p99_ms: float = 0.0


class Gain(Out, frozen=True):
    """The gain of ordering the same jobs by prediction."""

    jobs: int = 0
    servers: int = 0
    fifo: Replayed = Replayed()
    expected: Replayed = Replayed()
    mean_gain: float = 0.0
    p99_gain: float = 0.0


class LaneForecast(Out, frozen=True):
    """A lane that is ordered by predictions, or could be."""

    lane: str
    order: str = ""
    source: str = ""
    gain: Gain | None = None


class ModelForecast(Out, frozen=True):
    """The model of durations."""

    state: str
    detail: str = ""
    version: str | None = None
    trained_at: str | None = None
    rows: int = 0
    model_error: float | None = None
    sketch_error: float | None = None
    pid: int | None = None


class Predictions(Out, frozen=True):
    """All statistics about durations."""

    functions: list[FunctionForecast] = []
    more_functions: int = 0
    lanes: list[LaneForecast] = []
    model: ModelForecast = ModelForecast(state="")
    predicted: dict[str, int] = {}


class QueueSignal(Out, frozen=True):
    """The values of one queue for an autoscaler."""

    queue: str
    lane: str = ""
    backlog: int = 0
    coming: int = 0
    running: int = 0
    workers: int = 0
    capacity: int = 0
    expected_ms: float = 0.0
    measured: bool = False
    work_seconds: float = 0.0
    drain_seconds: float | None = None
    lateness_risk: float = 0.0
    risk: str = ""
    suggested_workers: int = 0
    narrative: str = ""


class Autoscale(Out, frozen=True):
    """All queues that workers or subscribers serve."""

    target_seconds: float = 0.0
    queues: list[QueueSignal] = []
