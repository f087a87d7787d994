"""Converts Python's names and values to the JSON and the queries of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict
from urllib.parse import quote

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from duetime.client.app.payload import encode
from duetime.client.app.times import Moment, moment_ms
from duetime.errors import InvalidField
from duetime.json_types import Json
from duetime.timefmt import iso
from duetime.wire.names import camel

# Fields that contain fields, which may have Python's names too.
_PARTS = ("callback", "task", "entity", "stream", "slo", "redelivery", "unique")
_TIMES = ("execute_at", "deadline", "start", "end")


class FilterFields(TypedDict, total=False):
    """A filter: all conditions must match. `status` may be several; `since` and `until` limit the time."""

    status: str | Iterable[str]
    tier: str
    queue: str
    task: str
    entity: str
    tags: Mapping[str, str]
    since: Moment
    until: Moment


def body(given: Mapping[str, object]) -> bytes:
    """A JSON object with these fields."""
    return encode(written(given), "The request")


def written(given: Mapping[str, Any]) -> Json:
    """The fields with the names of the API, times as text."""
    shown: Json = {}
    for name, value in given.items():
        if name in _TIMES and value is not None:
            value = moment_text(value)
        elif name in _PARTS:
            value = _part(value)
        elif name == "limits" and value is not None:
            value = [_part(each) for each in value]
        shown[camel(name)] = value
    return shown


def _part(part: object) -> Any:
    """The fields inside a field, with the API's names. Defaults are omitted: a server may have others."""
    if isinstance(part, Struct):
        given = [(field, getattr(part, field.name)) for field in fields(part)]
        return {field.encode_name: each for field, each in given if each != _default(field)}
    return {camel(key): each for key, each in part.items()} if isinstance(part, Mapping) else part


def _default(field: FieldInfo) -> object:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def moment_text(moment: Moment) -> str:
    """A time in the form of the API."""
    return iso(moment_ms(moment))


def path(*parts: str) -> str:
    """A path below `/v1`, with escaped parts."""
    if not all(parts):
        raise InvalidField("An id or a name is empty.")
    return "/v1/" + "/".join(quote(part, safe=":") for part in parts)


def query(filter: Mapping[str, Any], **more: object) -> list[tuple[str, str]]:
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


def filter_body(filter: Mapping[str, Any]) -> Json:
    """A filter as a JSON object, with the names of the query."""
    plain = {name: value for name, value in filter.items() if name != "tags"}
    shown: Json = dict(query(plain))
    if filter.get("tags"):
        shown["tags"] = dict(filter["tags"])
    return shown


def revision(expected: int | None) -> dict[str, str]:
    """The header with the expected revision of a change."""
    return {} if expected is None else {"X-Duetime-Expected-Revision": str(expected)}
