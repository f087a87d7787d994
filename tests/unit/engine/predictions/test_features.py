"""What is told of an intent: its function, its payload's shape, the hour. Any payload has one."""

from __future__ import annotations

import msgspec
import pytest

from duetime.engine.predictions.features import function_of, row_of
from duetime.limits import HOUR_MS
from duetime.protocol.terms import Bare, Callback, Entity, Stream, Target, Task, Terms, lane_of


def row(payload: object, at_ms: int = 0) -> tuple[int, ...]:
    """Keys, longest, depth and hour."""
    body = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
    found = row_of(Terms(Task("f"), "task:default"), body, at_ms, 1)
    assert found[2] == len(body)
    return found[3:7]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Task("mail", "q"), "task:mail"),
        (Entity("cart", "7", "add"), "entity:cart.add"),
        (Callback("https://shop.example/a/b"), "callback:shop.example"),
        (Stream("news"), "stream:news"),
        (Bare(), "bare:"),
    ],
)
def test_the_function_of_an_intent(target: Target, name: str):
    assert function_of(target) == name


def test_all_entities_of_a_type_are_one_queue():
    target = Entity("cart", "7", "add")
    assert row_of(Terms(target, lane_of(target)), b"", 0, 1)[1] == "entity:cart"


@pytest.mark.parametrize(
    ("payload", "shape"),
    [
        (b"", (0, 0, 0)),
        (b"not json", (0, 0, 0)),
        (b"[" * 5_000, (0, 0, 0)),
        ({"a": 1, "b": 2}, (2, 2, 1)),
        ([[1, 2, 3], {"x": [0] * 50}], (1, 50, 2)),
        ([[30_000]], (0, 30_000, 2)),
        ("four", (0, 4, 0)),
        ([True, None, -7.5], (0, 7, 1)),
        (1e300, (0, 1 << 40, 0)),
        ([[[[["deep"]]]]], (0, 1, 5)),
        ({"big": "x" * 20_000}, (0, 0, 0)),
    ],
)
def test_any_payload_has_a_shape(payload, shape):
    assert row(payload)[:3] == shape


def test_the_hour_is_of_the_day():
    assert [row(1, n * HOUR_MS)[3] for n in (0, 23, 24, 49)] == [0, 23, 0, 1]
