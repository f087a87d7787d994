"""Bars for numbers, drawn with characters, as wide as there is room."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(value: float, most: float, width: int) -> str:
    """One bar; what is more than nothing is seen."""
    if value <= 0 or most <= 0 or width <= 0:
        return ""
    eighths = max(1, round(8 * width * min(value, most) / most))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def chart(labels: Sequence[str], values: Sequence[float], columns: int) -> list[str]:
    """A line for each value: its label, its number, its bar; no line is longer than `columns`."""
    numbers = [f"{value:g}" for value in values]
    left = max(map(len, labels), default=0)
    middle = max(map(len, numbers), default=0)
    most = max(values, default=0)
    room = max(0, columns - left - middle - 4)
    return [
        f"{label:<{left}}  {number:>{middle}}  {bar(value, most, room)}".rstrip()[:columns]
        for label, number, value in zip(labels, numbers, values, strict=True)
    ]
