"""Compares what was written down once with what is read today."""

from __future__ import annotations

from typing import Any


def holds(today: Any, then: Any) -> bool:
    """Whether everything that was there is there; fields may have been appended since."""
    if isinstance(then, dict):
        return isinstance(today, dict) and all(k in today and holds(today[k], v) for k, v in then.items())
    if isinstance(then, list):
        return len(today) == len(then) and all(map(holds, today, then))
    return bool(today == then)


def differences(today: Any, then: Any, place: str = "") -> list[str]:
    """The places where today's value does not hold the former one."""
    if holds(today, then):
        return []
    if isinstance(then, dict) and isinstance(today, dict):
        missing = [f"{place}.{name} is missing" for name in then if name not in today]
        known = [name for name in then if name in today]
        return missing + [each for k in known for each in differences(today[k], then[k], f"{place}.{k}")]
    return [f"{place}: {then!r} has become {today!r}"]
