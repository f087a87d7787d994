"""Names of fields as they cross the network."""

from __future__ import annotations


def camel(name: str) -> str:
    """A Python name as JSON has it: `execute_at` is `executeAt`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
