"""Unique and collapse keys: their fields on the network, and the claim that they become."""

from __future__ import annotations

from typing import Any

from duetime.errors import InvalidField
from duetime.protocol.terms import Claim, Until
from duetime.wire.intent import UniqueKey

_NOTHING = {"collapse_key": None, "collapse": None, "unique": None}


def shown(claim: Claim | None) -> dict[str, Any]:
    """The fields of an intent that describe its claim."""
    if claim is None:
        return _NOTHING
    if claim.collapses:
        return {"collapse_key": claim.key, "collapse": claim.until.name, "unique": None}
    until: Any = claim.until.name
    unique = UniqueKey(key=claim.key, until=until, for_ms=claim.for_ms or None)
    return {"collapse_key": None, "collapse": None, "unique": unique}


def read(collapse_key: str | None, collapse: str | None, unique: UniqueKey | None) -> Claim | None:
    """The claim of these fields of a request."""
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
