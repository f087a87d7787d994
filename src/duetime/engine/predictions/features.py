"""The features of an intent for the duration model: function, queue, shape of the payload, hour.

The engine computes them for predictions and the trainer for training, with the same code.
"""

from __future__ import annotations

import msgspec

from duetime.limits import FEATURES_DEPTH_MAX, FEATURES_PAYLOAD_BYTES_MAX, HOUR_MS
from duetime.protocol.terms import Entity, Target, Task, Terms, lane_of

Row = tuple[str, str, int, int, int, int, int, int]
"""Function, queue, bytes, keys, longest list, depth, hour of the day (UTC), attempt."""

_NEAR = 2

_decode = msgspec.json.Decoder().decode


def function_of(target: Target) -> str:
    """The function: a task, or a message of an entity type; for callbacks the host, for streams the name."""
    if isinstance(target, Task):
        return f"task:{target.name}"
    if isinstance(target, Entity):
        return f"entity:{target.kind}.{target.message}"
    return lane_of(target)


def row_of(terms: Terms, payload: bytes, at_ms: int, attempt: int) -> Row:
    """The features of one intent."""
    queue = terms.lane.partition("/")[0] if terms.serial else terms.lane
    hour = at_ms // HOUR_MS % 24
    return (function_of(terms.target), queue, len(payload), *_shape(payload), hour, attempt)


def _shape(payload: bytes) -> tuple[int, int, int]:
    """The number of keys, the longest list (or the largest number), and the depth."""
    if not payload or len(payload) > FEATURES_PAYLOAD_BYTES_MAX:
        return 0, 0, 0
    try:
        value = _decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0, 0, 0
    keys, longest = _size(value)
    return keys, longest, _depth(value)


def _size(value: object, depth: int = 0) -> tuple[int, int]:
    """Near the top level: the number of keys, and the length of the longest list or text or the largest
    number, which may be the number of items to process."""
    if isinstance(value, str):
        return 0, len(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, int(min(abs(value), 1 << 40))
    if depth > _NEAR or not isinstance(value, list | dict):
        return 0, 0
    named = isinstance(value, dict)
    parts = [_size(part, depth + 1) for part in (value.values() if isinstance(value, dict) else value)]
    keys = sum(part[0] for part in parts) + (len(value) if named else 0)
    return keys, max([0 if named else len(value), *(part[1] for part in parts)])


def _depth(value: object) -> int:
    depth = 0
    while isinstance(value, list | dict) and value and depth < FEATURES_DEPTH_MAX:
        depth += 1
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return depth
