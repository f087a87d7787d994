"""What the engine and the model's process say to each other: JSON, one message a line."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from duetime.engine.predictions.features import Row


class Ask(Struct, frozen=True, gc=False):
    """How long will these take?"""

    number: int
    rows: list[Row]


class Answer(Struct, frozen=True, tag="answer", gc=False):
    """So long, in milliseconds."""

    number: int
    expected_ms: list[int]


class Score(Struct, frozen=True, gc=False):
    """How far off predictions were on the newest intents, which were kept back from learning: the median of
    the error as a share of what it was. `sketch`: the median of the function's own earlier durations."""

    count: int
    model: float
    sketch: float


class Trained(Struct, frozen=True, tag="trained", gc=False):
    """There is a new model."""

    version: str
    at_ms: int
    rows: int
    score: Score
    functions: dict[str, Score]


class Failed(Struct, frozen=True, tag="failed", gc=False):
    """It could not be trained."""

    why: str


Message = Answer | Trained | Failed

read_ask = msgspec.json.Decoder(Ask).decode
read_message = msgspec.json.Decoder(Message).decode
write = msgspec.json.Encoder().encode
