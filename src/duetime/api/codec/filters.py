"""The filters of a query, for lists and for events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from duetime.api.codec import times
from duetime.api.codec.intent_decoder import tier_named
from duetime.errors import BadQuery, DuetimeError
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Status
from duetime.protocol.terms import Tier

NAMES: Final = frozenset({"status", "tier", "queue", "task", "entity", "from", "to"})


def statuses_from(text: str) -> tuple[Status, ...]:
    """Statuses by name, in upper or lower case, separated by commas."""
    found: list[Status] = []
    for name in text.split(","):
        status = Status.__members__.get(name.strip().upper())
        if status is None:
            names = ", ".join(Status.__members__)
            raise BadQuery(
                f"There is no status {name[:32]!r}.", hint=f"Use one of {names}.", parameter="status"
            )
        found.append(status)
    return tuple(found)


def tier_from(text: str) -> Tier:
    try:
        return tier_named(text, "tier")
    except DuetimeError as error:
        raise BadQuery(error.message, hint=error.hint, parameter="tier") from None


def time_from(query: Mapping[str, str], name: str) -> int | None:
    """A time in the query: a text, or a number of seconds."""
    text = query.get(name)
    if text is None:
        return None
    value: str | float = text
    try:
        value = float(text)
    except ValueError:
        value = text.replace(" ", "+")  # an unescaped plus sign
    try:
        return times.read(value, name)
    except DuetimeError as error:
        raise BadQuery(error.message, hint=error.hint, parameter=name) from None


def number_from(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise BadQuery(f"{name} must be a whole number from {least} to {most}.", parameter=name)
    return int(text)


def check_names(query: Mapping[str, str], known: Iterable[str], *, tags: bool = False) -> None:
    """Refuse unknown parameters."""
    allowed = set(known)
    for name in query:
        if name not in allowed and not (tags and name.startswith("tag.") and len(name) > 4):
            names = ", ".join([*sorted(allowed), *(["tag.NAME"] if tags else [])]) or "none"
            raise BadQuery(
                f"There is no parameter {name[:64]!r} here.",
                hint=f"Known parameters: {names}.",
                parameter=name[:64],
            )


def filter_from(query: Mapping[str, str], *others: str) -> Filter:
    """The filter in a query. `others` are the names of other parameters."""
    check_names(query, {*NAMES, *others}, tags=True)
    entity = query.get("entity")
    if entity is not None and (entity.startswith("/") or entity.endswith("/") or not entity):
        raise BadQuery("entity must be TYPE or TYPE/ID.", parameter="entity")
    return Filter(
        statuses=statuses_from(query["status"]) if "status" in query else (),
        tier=tier_from(query["tier"]) if "tier" in query else None,
        queue=query.get("queue"),
        task=query.get("task"),
        entity=entity,
        tags={name.removeprefix("tag."): value for name, value in query.items() if name.startswith("tag.")},
        from_ms=time_from(query, "from"),
        to_ms=time_from(query, "to"),
    )
