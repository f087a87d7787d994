"""The type of a JSON object as Python holds it."""

from __future__ import annotations

from typing import Any

# The values are what msgspec reads or writes: str, int, float, bool, None, lists and further objects.
Json = dict[str, Any]
