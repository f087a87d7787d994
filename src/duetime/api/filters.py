"""Which intents are meant: a query's filters, for lists and for events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from duetime.api import moments
from duetime.api.compose import tier_named
from duetime.errors import BadQuery, DuetimeError
from duetime.protocol.intent import Intent, Status
from duetime.protocol.terms import Entity, Task, Tier

Match = Callable[[Intent, str], bool]


def statuses_from(text: str) -> tuple[Status, ...]:
    """Statuses by name, in any case, several with commas."""
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
    """A moment out of the query: a text, or a number of seconds."""
    text = query.get(name)
    if text is None:
        return None
    value: str | float = text
    try:
        value = float(text)
    except ValueError:
        value = text.replace(" ", "+")  # a plus sign that was not escaped
    try:
        return moments.read(value, name)
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
    """A parameter nobody knows is a mistake of the caller, not something to pass over."""
    allowed = set(known)
    for name in query:
        if name not in allowed and not (tags and name.startswith("tag.") and len(name) > 4):
            names = ", ".join(sorted(allowed)) or "none"
            raise BadQuery(
                f"There is no parameter {name[:64]!r} here.", hint=f"Known are: {names}.", parameter=name[:64]
            )


def entity_from(text: str) -> tuple[str, str | None]:
    """TYPE or TYPE/ID."""
    kind, slash, id = text.partition("/")
    if not kind or (slash and not id):
        raise BadQuery("entity must be TYPE or TYPE/ID.", parameter="entity")
    return kind, id or None


def match_from(query: Mapping[str, str], known: set[str]) -> Match:
    """A test of one intent, for streams of events."""
    check_names(query, known)
    wanted: list[Callable[[Intent], Any]] = []
    names = frozenset(status.name for status in statuses_from(query["status"])) if "status" in query else None
    if "tier" in query:
        tier = tier_from(query["tier"])
        wanted.append(lambda intent: intent.terms.tier is tier)
    if "queue" in query:
        lane = f"task:{query['queue']}"
        wanted.append(lambda intent: intent.terms.lane == lane)
    if "task" in query:
        task = query["task"]
        wanted.append(
            lambda intent: isinstance(intent.terms.target, Task) and intent.terms.target.name == task
        )
    if "entity" in query:
        kind, entity_id = entity_from(query["entity"])
        wanted.append(
            lambda intent: (
                isinstance(intent.terms.target, Entity)
                and intent.terms.target.kind == kind
                and entity_id in (None, intent.terms.target.id)
            )
        )
    if "intentId" in query:
        id = query["intentId"]
        wanted.append(lambda intent: intent.id == id)
    return lambda intent, status: (names is None or status in names) and all(test(intent) for test in wanted)
