"""Bars for numbers, drawn with characters in the available width."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.limits import NOTE_COLUMNS_MAX

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(value: float, most: float, width: int) -> str:
    """One bar. A value above zero has at least a visible part."""
    if value <= 0 or most <= 0 or width <= 0:
        return ""
    eighths = max(1, round(8 * width * min(value, most) / most))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def chart(
    labels: Sequence[str], values: Sequence[float | None], columns: int, notes: Sequence[str] = ()
) -> list[str]:
    """One line for each value: label, number, bar, note. No line is longer than `columns`.

    A value of None has neither a number nor a bar.
    """
    numbers = ["" if value is None else f"{value:g}" for value in values]
    left = max(map(len, labels), default=0)
    middle = max(map(len, numbers), default=0)
    most = max((value for value in values if value is not None), default=0)
    notes = notes or [""] * len(labels)
    right = min(max(map(len, notes), default=0), NOTE_COLUMNS_MAX)
    room = max(0, columns - left - middle - 4 - (right + 2 if right else 0))
    return [
        f"{label:<{left}}  {number:>{middle}}  {bar(value or 0, most, room):<{room}}  {cut(note, right)}"[
            :columns
        ].rstrip()
        for label, number, value, note in zip(labels, numbers, values, notes, strict=True)
    ]


def cut(text: str, width: int) -> str:
    """A text cut to this length, with a mark if it was cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
