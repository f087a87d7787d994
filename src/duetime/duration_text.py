"""Durations as text, with integers only: "850 ms", "4.2 s", "4 min 10 s", "3 h 5 min", "2 d 4 h".

The notes in an intent's history contain this text, and a replay must produce the same notes: its form is
fixed."""

from __future__ import annotations

from duetime.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS


def span(ms: int) -> str:
    """A duration in its two largest units."""
    if ms < SECOND_MS:
        return f"{max(ms, 0)} ms"
    if ms < 10 * SECOND_MS:
        tenths = ms // 100
        return f"{tenths // 10}.{tenths % 10} s" if tenths % 10 else f"{tenths // 10} s"
    if ms < MINUTE_MS:
        return f"{ms // SECOND_MS} s"
    units = (
        (DAY_MS, "d", HOUR_MS, "h"),
        (HOUR_MS, "h", MINUTE_MS, "min"),
        (MINUTE_MS, "min", SECOND_MS, "s"),
    )
    large_ms, large, small_ms, small = next(unit for unit in units if ms >= unit[0])
    rest = ms % large_ms // small_ms
    return f"{ms // large_ms} {large} {rest} {small}" if rest else f"{ms // large_ms} {large}"


def exact(ms: int) -> str:
    """A duration in all its units, for settings: "1 min 30 s", "12 s 500 ms"."""
    units = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"), (1, "ms"))
    parts = []
    for unit_ms, unit in units:
        number, ms = divmod(ms, unit_ms)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts) or "0 ms"
