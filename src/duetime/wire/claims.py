"""Unique and collapse keys: their JSON, and the claims they become. The rules of `wire` hold."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from duetime import limits
from duetime.errors import InvalidField
from duetime.protocol.intent import Ties
from duetime.protocol.terms import Claim, Until
from duetime.wire.shapes import In, Out

Key = Annotated[str, Meta(min_length=1, max_length=limits.KEY_CHARS_MAX)]
Collapse = Annotated[
    Literal["DEBOUNCE", "THROTTLE"],
    Meta(description="Time of the new intent: its own (DEBOUNCE) or that of the replaced one (THROTTLE)."),
]


class UniqueIn(In, frozen=True):
    """No other intent with this key until this one starts, until it ends, or for a time."""

    key: Annotated[Key, Meta(examples=["report:42"])]
    until: Literal["START", "END", "TIME"] = "END"
    for_ms: (
        Annotated[int, Meta(ge=1, le=limits.RETRY_DELAY_MS_MAX, description="Duration; only with TIME.")]
        | None
    ) = None


class UniqueOut(Out, frozen=True):
    key: str
    until: str
    for_ms: int | None


class Shown:
    """The fields of an intent that say its claim."""

    __slots__ = ("collapse", "collapse_key", "unique")

    def __init__(self, claim: Claim | None) -> None:
        collapses = claim is not None and claim.collapses
        self.collapse_key: str | None = claim.key if claim is not None and collapses else None
        self.collapse: str | None = claim.until.name if claim is not None and collapses else None
        self.unique: UniqueOut | None = None
        if claim is not None and not collapses:
            self.unique = UniqueOut(key=claim.key, until=claim.until.name, for_ms=claim.for_ms or None)


NOTHING: Final = Shown(None)


def shown(ties: Ties | None) -> Shown:
    """What is shown of what ties an intent."""
    return NOTHING if ties is None or ties.claim is None else Shown(ties.claim)


def read(collapse_key: str | None, collapse: str | None, unique: UniqueIn | None) -> Claim | None:
    """The claim that these fields of a request make."""
    if unique is None:
        if collapse_key is None:
            if collapse is not None:
                raise InvalidField("collapse is given without a collapseKey.", path="$.collapse")
            return None
        return Claim(collapse_key, Until[collapse or "DEBOUNCE"])
    if collapse_key is not None or collapse is not None:
        raise InvalidField(
            "Both unique and collapseKey are given.",
            hint="unique refuses later intents, collapseKey lets them replace this one: use one.",
            path="$.unique",
        )
    if (unique.until == "TIME") != (unique.for_ms is not None):
        text = "forMs is missing" if unique.for_ms is None else "forMs is given without until: TIME"
        raise InvalidField(
            f"{text}, at $.unique.forMs.",
            hint="Set forMs together with until: TIME, and only then.",
            path="$.unique.forMs",
        )
    return Claim(unique.key, Until[unique.until], unique.for_ms or 0)
