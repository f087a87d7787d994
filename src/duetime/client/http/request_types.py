"""What is said to a server: Python's names and values as the JSON and the queries of its API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict
from urllib.parse import quote

from duetime.client.app.payload import encode
from duetime.client.app.times import Moment, moment_ms
from duetime.client.http.models import (
    Callback,
    EntityTarget,
    Limit,
    Redelivery,
    Slo,
    StreamTarget,
    TaskTarget,
    Unique,
)
from duetime.errors import InvalidField
from duetime.timefmt import iso
from duetime.wire.names import camel

Fields = Mapping[str, Any]
# Whose own fields may be written in Python's names too.
_GROUPS = ("callback", "task", "entity", "stream", "slo", "redelivery", "unique")
_TIMES = ("execute_at", "deadline")


class NewIntent(TypedDict, total=False):
    """An intent to be made: the fields of `POST /v1/intents` in Python's names."""

    intent_id: str
    execute_at: Moment
    delay_ms: int
    deadline: Moment
    expired_action: str
    precision_tier: str
    slo: Slo | Fields
    ack_level: str
    guarantee: str
    callback: Callback | Fields
    task: TaskTarget | Fields
    entity: EntityTarget | Fields
    stream: StreamTarget | Fields
    payload: Any
    priority: int | str
    redelivery: Redelivery | Fields
    timeout_ms: int
    lease_ms: int
    result_ttl_ms: int
    after: list[str]
    after_on: str
    group: str
    members: int
    idempotency_key: str
    on_duplicate: str
    collapse_key: str
    collapse: str
    unique: Unique | Fields
    tags: Mapping[str, str]
    limits: Sequence[Limit | Fields]
    fairness_key: str
    fairness_weight: int
    shard_key: str
    traceparent: str


class Changes(TypedDict, total=False):
    """What may be changed of an intent while it waits. None removes a deadline."""

    execute_at: Moment
    deadline: Moment | None
    expired_action: str
    redelivery: Redelivery | Fields
    tags: Mapping[str, str]
    priority: int | str
    payload: Any


class LaneChanges(TypedDict, total=False):
    """What a lane allows from now on. None takes a limit away."""

    concurrency: int | None
    rate: str | None
    burst: int
    pending_max: int | None
    priority: int
    order: str
    paused: bool


class Revival(TypedDict, total=False):
    """What may be different when a dead letter is tried again."""

    execute_at: Moment
    deadline: Moment | None
    callback: Callback | Fields
    redelivery: Redelivery | Fields
    payload: Any


class Filter(TypedDict, total=False):
    """Which intents: all conditions hold. `status` may be several; `since` and `until` bound their time."""

    status: str | Iterable[str]
    tier: str
    queue: str
    task: str
    entity: str
    tags: Mapping[str, str]
    since: Moment
    until: Moment


def body(fields: Mapping[str, Any]) -> bytes:
    """A JSON object of these fields."""
    return encode(written(fields), "The request")


def written(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields in the API's names, times as text."""
    shown: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _TIMES and value is not None:
            value = moment_text(value)
        elif name in _GROUPS and isinstance(value, Mapping):
            value = {camel(key): each for key, each in value.items()}
        shown[camel(name)] = value
    return shown


def moment_text(moment: Moment) -> str:
    """A moment as the API writes it."""
    return iso(moment_ms(moment))


def path(*parts: str) -> str:
    """A path below `/v1`, whatever the parts have in them."""
    if not all(parts):
        raise InvalidField("An id or a name is empty.")
    return "/v1/" + "/".join(quote(part, safe=":") for part in parts)


def query(filter: Mapping[str, Any], **more: Any) -> list[tuple[str, str]]:
    """A filter and other parameters as a query."""
    pairs: list[tuple[str, str]] = []
    for name, value in {**filter, **more}.items():
        if value is None:
            continue
        if name == "tags":
            pairs += [(f"tag.{key}", each) for key, each in value.items()]
        elif name in ("since", "until", "at"):
            pairs.append(({"since": "from", "until": "to"}.get(name, name), moment_text(value)))
        elif name == "status":
            pairs.append((name, value if isinstance(value, str) else ",".join(value)))
        else:
            pairs.append((camel(name), str(value)))
    return pairs


def filter_body(filter: Mapping[str, Any]) -> dict[str, Any]:
    """A filter as the JSON object of the same names as in a query."""
    plain = {name: value for name, value in filter.items() if name != "tags"}
    shown: dict[str, Any] = dict(query(plain))
    if filter.get("tags"):
        shown["tags"] = dict(filter["tags"])
    return shown


def revision(expected: int | None) -> dict[str, str]:
    """The header that says which revision a change is for."""
    return {} if expected is None else {"X-Duetime-Expected-Revision": str(expected)}
