"""What is said of an intent's share of its queue, as JSON. The rules of `wire` hold."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime import limits
from duetime.errors import InvalidField

FairnessKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.FAIRNESS_KEY_CHARS_MAX,
        description="Fairness key, such as the tenant: keys take turns in proportion to their weights.",
        examples=["tenant-42"],
    ),
]
FairnessWeight = Annotated[
    int, Meta(ge=1, le=limits.FAIRNESS_WEIGHT_MAX, description="Weight of the fairness key.")
]


def check(key: str | None, weight: int | None, entity: bool) -> None:
    """What the types above cannot say."""
    if weight is not None and key is None:
        raise InvalidField(
            "fairnessWeight is given without fairnessKey, at $.fairnessWeight.", path="$.fairnessWeight"
        )
    if key is not None and entity:
        raise InvalidField(
            "An entity runs one at a time, in order; its messages have no fairness key, at $.fairnessKey.",
            path="$.fairnessKey",
        )
