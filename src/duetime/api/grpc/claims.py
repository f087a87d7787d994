"""Unique and collapse keys between the messages of gRPC and the JSON of the API."""

from __future__ import annotations

from typing import Any

from duetime.v1 import intents_pb2 as pb
from duetime.wire.intent import IntentOut

_COLLAPSE: dict[str | None, Any] = {
    name.removeprefix("COLLAPSE_"): number for name, number in pb.Collapse.items()
}
_UNTIL: dict[str, Any] = {name.removeprefix("UNTIL_"): number for name, number in pb.Until.items()}


def said(new: pb.NewIntent) -> dict[str, Any]:
    """What a message says of its keys."""
    found: dict[str, Any] = {}
    if new.HasField("collapse_key"):
        found["collapseKey"] = new.collapse_key
    if new.collapse:
        found["collapse"] = _name(pb.Collapse.Name, new.collapse, "COLLAPSE_")
    if new.HasField("unique"):
        unique = found["unique"] = {"key": new.unique.key}
        if new.unique.until:
            unique["until"] = _name(pb.Until.Name, new.unique.until, "UNTIL_")
        if new.unique.HasField("for_ms"):
            unique["forMs"] = new.unique.for_ms
    return found


def show(message: pb.Intent, shown: IntentOut) -> None:
    """What an intent has of them."""
    if shown.collapse_key is not None:
        message.collapse_key = shown.collapse_key
        message.collapse = _COLLAPSE[shown.collapse]
    if shown.unique is not None:
        unique = shown.unique
        message.unique.CopyFrom(pb.Unique(key=unique.key, until=_UNTIL[unique.until], for_ms=unique.for_ms))


def _name(name: Any, number: int, prefix: str) -> str:
    """The name in our own words; a number that has none is refused as it is."""
    try:
        found: str = name(number)
    except ValueError:
        return str(number)
    return found.removeprefix(prefix)
