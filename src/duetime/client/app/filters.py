"""Filters of intents, as keywords of an App."""

from __future__ import annotations

from collections.abc import Mapping

from duetime.client.app.policies import choice
from duetime.client.app.times import moment_ms
from duetime.client.http.requests import FilterFields
from duetime.errors import InvalidField
from duetime.json_types import Json
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Status
from duetime.protocol.terms import Tier


def filter_of(fields: Mapping[str, object]) -> Filter:
    """The filter of the keywords of `FilterFields`. None: no condition."""
    given: Json = dict(fields)
    unknown = given.keys() - FilterFields.__annotations__.keys()
    if unknown:
        names = ", ".join(FilterFields.__annotations__)
        raise InvalidField(f"There is no filter {sorted(unknown)[0]!r}.", hint=f"Filters are: {names}.")
    for name in ("queue", "task", "entity"):
        value = given.get(name)
        if value is not None and (type(value) is not str or not value):
            raise InvalidField(f"{name}={value!r} is not a name.")
    tags = dict(given.get("tags") or {})
    if not all(type(each) is str for pair in tags.items() for each in pair):
        raise InvalidField("tags must be text: names and values.", hint='Write tags={"customer": "42"}.')
    status, tier = given.get("status"), given.get("tier")
    statuses = () if status is None else (status,) if isinstance(status, str) else tuple(status)
    since, until = given.get("since"), given.get("until")
    return Filter(
        statuses=tuple(choice(Status, each, "status") for each in statuses),
        tier=None if tier is None else choice(Tier, tier, "tier"),
        queue=given.get("queue"),
        task=given.get("task"),
        entity=given.get("entity"),
        tags=tags,
        from_ms=None if since is None else moment_ms(since),
        to_ms=None if until is None else moment_ms(until),
    )
