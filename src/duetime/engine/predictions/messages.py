"""The messages between the engine and the process of the model: JSON, one message per line."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from duetime.engine.predictions.features import Row


class PredictionRequest(Struct, frozen=True, gc=False):
    """Asks for predicted durations."""

    number: int
    rows: list[Row]


class Predicted(Struct, frozen=True, tag="answer", gc=False):
    """The predicted durations, in milliseconds."""

    number: int
    expected_ms: list[int]


class Score(Struct, frozen=True, gc=False):
    """The median relative error of predictions for the newest intents, which were excluded from training.
    `sketch`: the same error if the median of the function's earlier durations is the prediction."""

    count: int
    model: float
    sketch: float


class Trained(Struct, frozen=True, tag="trained", gc=False):
    """A new model is ready."""

    version: str
    at_ms: int
    rows: int
    score: Score
    functions: dict[str, Score]


class TrainingFailed(Struct, frozen=True, tag="failed", gc=False):
    """The training failed."""

    why: str


Message = Predicted | Trained | TrainingFailed

read_request = msgspec.json.Decoder(PredictionRequest).decode
read_message = msgspec.json.Decoder(Message).decode
write = msgspec.json.Encoder().encode
