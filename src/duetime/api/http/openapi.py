"""The OpenAPI document, generated from the route table and the Structs of `wire`.

Each error response is listed with its possible codes, so that clients can be generated, and tests can check
every response of a real server against this document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from types import UnionType
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from duetime import errors
from duetime.api.access.auth import Role
from duetime.api.http import problems
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.http.router import Route
from duetime.errors import DuetimeError
from duetime.json_types import Json
from duetime.wire.intent import Intent, KnownId
from duetime.wire.problem import Problem
from duetime.wire.shapes import Out

_REF: Final = "#/components/schemas/{name}"
_PATH_PARAMETER: Final = re.compile(r"{(\w+)(?::path)?}")
_JSON: Final = "application/json"
_PROBLEM: Final = problems.MEDIA_TYPE.decode()
_ABOUT: Final = (
    "A durable time and task engine: it runs work on time, survives crashes, and explains every delay.\n\n"
    "Times in responses are ISO-8601 UTC with milliseconds; times in requests are ISO-8601 with any offset,"
    " or a number of seconds since 1970. Unknown fields and parameters are refused. Every error is a problem"
    " document (`application/problem+json`) with an `errorCode` for programs and a `recoveryHint` for people."
)
_NEEDS: Final = {
    Role.read: "any token",
    Role.worker: "a token of the role worker or admin",
    Role.submit: "a token of the role submit or admin",
    Role.admin: "a token of the role admin",
}
_REASONS: Final = {
    200: "Done.", 201: "Created.", 400: "The request cannot be read.", 401: "No token, or an unknown one.",
    403: "The role of the token does not allow this.", 404: "It does not exist.",
    409: "Conflict with existing data.", 413: "Too large.",
    422: "A field has an invalid value, or the state of the intent does not allow it.",
    429: "Overload: wait and send it again.", 500: "A bug in Duetime, with a trace id.",
    503: "Temporarily unavailable: wait and send it again.",
}  # fmt: skip
# Other content types, selected by Accept.
_ALSO: Final = {
    "getMetrics": {
        "application/openmetrics-text": {"schema": {"type": "string"}},
        _JSON: {"schema": {"type": "object"}},
    }
}
_CALLBACK: Final = {
    "delayMs": 60_000,
    "callback": {"url": "http://localhost:9000/hook"},
    "payload": {"order": 17},
    "tags": {"team": "billing"},
}
_TASK: Final = {"delayMs": 5_000, "task": {"name": "send_report", "queue": "reports"}, "payload": {"day": 3}}
_ENTITY: Final = {"delayMs": 0, "entity": {"type": "cart", "id": "17", "message": "remind"}}
_STREAM: Final = {"executeAt": "2030-01-31T09:00:00+01:00", "stream": {"name": "orders"}, "priority": "HIGH"}

# Bodies that can be sent unchanged. By operation: a name, a summary, and the body.
EXAMPLES: Final[Mapping[str, Mapping[str, tuple[str, object]]]] = {
    "createIntent": {
        "callback": ("Call a URL in a minute", _CALLBACK),
        "task": ("Run a function on a worker", _TASK),
        "entity": ("Send a message to one entity", _ENTITY),
        "stream": ("Deliver it to a subscriber at a given time", _STREAM),
        "slo": (
            "Set a lateness objective; Duetime chooses the tier",
            {**_STREAM, "slo": {"maxTardinessMs": 1_000}},
        ),
    },
    "createIntents": {"two": ("Two intents in one append", [_CALLBACK, _TASK])},
    "patchIntent": {"later": ("Move it", {"executeAt": "2030-02-28T09:00:00Z"})},
    "cancelIntent": {"nothing": ("All fields are optional", {})},
    "fireIntentNow": {"nothing": ("All fields are optional", {})},
    "reviveIntent": {
        "again": ("As it was", {}),
        "elsewhere": ("To another place", {"callback": {"url": "http://localhost:9001/hook"}}),
    },
    "claimFromQueue": {
        "wait": ("Up to ten; wait for the first", {"consumer": "mailer-1", "max": 10, "waitMs": 20_000})
    },
    "settleForQueue": {
        "two": (
            "One is done, one failed",
            {
                "consumer": "mailer-1",
                "outcomes": [
                    {"outcome": "done", "intentId": "mail-1", "delivery": 1, "result": {"sent": True}},
                    {"outcome": "failed", "intentId": "mail-2", "delivery": 1, "message": "mailbox full"},
                ],
            },
        )
    },
    "extendForQueue": {
        "one": (
            "One that takes longer",
            {"consumer": "mailer-1", "deliveries": [{"intentId": "mail-1", "delivery": 1}]},
        )
    },
}


def document(routes: Iterable[Route]) -> Json:
    """OpenAPI 3.1 of these routes."""
    routes = list(routes)
    schemas, components = _schemas(routes)
    paths: Json = {}
    for route in routes:
        path = _PATH_PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": metadata.version("duetime"),
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "schemas": components,
            "examples": {
                kind.__name__: _example(kind) for route in routes for kind in (*route.errors, *_common(route))
            },
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Duetime-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


class OpenApi:
    """The document for a route, created at the first request."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._body: bytes | None = None

    async def __call__(self, call: Call) -> Answer:
        if self._body is None:
            self._body = msgspec.json.encode(document(self._routes))
        return Answer(self._body)


def _schemas(routes: list[Route]) -> tuple[dict[object, Json], Json]:
    """The schemas of all types in requests and responses, and the named ones."""
    types: list[object] = [KnownId, Problem]
    for route in routes:
        for kind in (route.body, *route.answers.values()):
            types += [each for each in _one_of(kind) if each is not None and each not in types]
    found, components = msgspec.json.schema_components(types, ref_template=_REF)
    for kind in _all_of(Out):
        if kind.__module__.startswith("duetime.wire."):
            _complete(components.get(kind.__name__), kind)
    for schema in components.values():
        _loosen(schema)
    return dict(zip(map(_key, types), map(_plain, found), strict=True)), _plain(components)


def _all_of(base: type[Struct]) -> Iterator[type[Struct]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _all_of(kind)


def _complete(schema: Json | None, kind: type[Struct]) -> None:
    """Require all fields of a response: a server sends all. Defaults are for responses of older servers."""
    config = kind.__struct_config__
    if schema is None or config.forbid_unknown_fields or config.omit_defaults:
        return
    schema["required"] = list(schema["properties"])
    for field in schema["properties"].values():
        field.pop("default", None)


def _loosen(schema: Json) -> None:
    """Name the defaults of a request in words: generators of clients require a field that has a default."""
    if schema.get("additionalProperties") is not False:
        return
    for field in schema["properties"].values():
        default = field.pop("default", None)
        if default not in (None, "", [], {}):
            shown = default if isinstance(default, str) else json.dumps(default)
            words = str(field.get("description", "")).rstrip(".")
            if "(default" not in words:
                field["description"] = f"{words} (default: {shown}).".lstrip()


_TYPES: Final = {str: "string", int: "integer"}


def _plain(schema: object) -> Any:
    """A schema that all tools read alike: patterns of JSON Schema (Python's \\Z becomes $), the type of
    each enum, and `additionalProperties` of an object with any fields."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: value.replace("\\Z", "$") if name == "pattern" and isinstance(value, str) else _plain(value)
        for name, value in schema.items()
    }
    values = plain.get("enum")
    if isinstance(values, list) and "type" not in plain and len(kinds := set(map(type, values))) == 1:
        plain["type"] = _TYPES[kinds.pop()]
    if plain.get("type") == "object" and not plain.keys() & {"properties", "additionalProperties"}:
        plain["additionalProperties"] = True
    return plain


def _one_of(kind: object) -> tuple[object, ...]:
    """The alternatives of a union, which msgspec describes only one by one."""
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


def _schema(kind: object, schemas: dict[object, Json]) -> Json:
    found = [schemas[_key(each)] for each in _one_of(kind)]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _key(kind: object) -> str:
    """Annotated types need not be hashable."""
    return repr(kind)


def _operation(route: Route, schemas: dict[object, Json]) -> Json:
    operation: Json = {
        "operationId": route.name,
        "summary": route.summary,
        "description": " ".join(filter(None, (route.about, _needs(route)))),
        "tags": [route.tag],
        "parameters": _parameters(route, schemas),
        "responses": _responses(route, schemas),
        "security": [] if route.role is None else [{"token": []}, {"bearer": []}],
    }
    if route.body is not None:
        operation["requestBody"] = _body(route, schemas)
    if route.stream:
        operation["x-stream"] = True
    return operation


def _needs(route: Route) -> str:
    if route.role is None:
        return "Needs no token."
    return f"Needs {_NEEDS[route.role]}, if the server has tokens."


def _parameters(route: Route, schemas: dict[object, Json]) -> list[Json]:
    found: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name, schemas)}
        for name in _PATH_PARAMETER.findall(route.path)
    ]
    for parameter in route.parameters:
        found.append(
            {
                "name": parameter.name,
                "in": parameter.place,
                "required": parameter.required,
                "description": parameter.description,
                "schema": dict(parameter.schema),
            }
        )
    return found


def _path_schema(name: str, schemas: dict[object, Json]) -> Json:
    return schemas[_key(KnownId)] if name == "id" else {"type": "string", "minLength": 1}


def _body(route: Route, schemas: dict[object, Json]) -> Json:
    media: Json = {"schema": _schema(route.body, schemas)}
    examples = EXAMPLES.get(route.name)
    if examples:
        media["examples"] = {
            name: {"summary": summary, "value": value} for name, (summary, value) in examples.items()
        }
    content = {_JSON: media}
    if route.ndjson:
        content["application/x-ndjson"] = {
            "schema": {"type": "string", "description": "One JSON object per line."}
        }
    return {"required": route.body_required, "content": content}


def _responses(route: Route, schemas: dict[object, Json]) -> Json:
    answers: Json = {}
    for status, kind in route.answers.items():
        answers[str(status)] = {
            "description": _REASONS.get(status, "Done."),
            "headers": _headers(route, status, kind),
            "content": {route.media_type: {"schema": _schema(kind, schemas)}, **_ALSO.get(route.name, {})},
        }
    by_status: dict[int, list[type[DuetimeError]]] = {}
    for error in dict.fromkeys((*route.errors, *_common(route))):
        by_status.setdefault(error.status, []).append(error)
    for status in sorted(by_status):
        answer = _refusal(status, by_status[status])
        known = answers.setdefault(str(status), answer)
        if known is not answer:  # a 503 that is a normal response: /health/ready has its reasons
            known["content"].update(answer["content"])
            known["headers"].update(answer["headers"])
    return dict(sorted(answers.items()))


def _headers(route: Route, status: int, kind: object) -> Json:
    headers: Json = {}
    if kind is Intent:
        headers["ETag"] = _header("The intent's revision, for If-Match.", required=True)
    if status == 201:
        headers["Location"] = _header("Where it is found.", required=True)
    if route.write:
        headers["Idempotent-Replayed"] = _header(
            "true if the request was answered before, or the intent exists already."
        )
    return headers


def _header(description: str, kind: str = "string", *, required: bool = False) -> Json:
    return {"description": description, "required": required, "schema": {"type": kind}}


# The errors of routes that need the engine, while it stops or after it failed.
_STOPPED: Final = (
    errors.Closed, errors.Fatal, errors.Damaged, errors.Denied, errors.DiskFailed, errors.Held,
)  # fmt: skip


def _common(route: Route) -> list[type[DuetimeError]]:
    """The errors of all routes of this kind, in addition to the route's own."""
    found: list[type[DuetimeError]] = [
        errors.BadHttp, errors.ForeignPage, errors.ForeignHost, errors.TooLarge, DuetimeError,
    ]  # fmt: skip
    if route.role is not None:
        found += [errors.NotJsonType, errors.NoToken]
        if route.role is not Role.read:
            found.append(errors.Forbidden)
        if not route.stream:
            found.append(errors.Busy)
    if any(parameter.place == "query" for parameter in route.parameters):
        found.append(errors.BadQuery)
    if route.write:
        found += [errors.InvalidField, errors.KeyReused]
    if errors.NotReady in route.errors:
        found += _STOPPED
    if errors.LogUnavailable in route.errors:
        found += [errors.NoSpace, errors.Exhausted]
    return found


def _refusal(status: int, kinds: list[type[DuetimeError]]) -> Json:
    kinds = sorted(kinds, key=lambda kind: kind.code)
    codes = sorted({kind.code for kind in kinds})
    headers: Json = {}
    if any(kind.retryable for kind in kinds):
        headers["Retry-After"] = _header("Seconds to wait.", "integer")
    if status == 401:
        headers["WWW-Authenticate"] = _header("How to send a token.", required=True)
    said = {"status": {"const": status}, "errorCode": {"enum": codes}}
    return {
        "description": _REASONS.get(status, "Refused."),
        "headers": headers,
        "content": {
            _PROBLEM: {
                # Beside the reference, as 3.1 allows: client generators read only the reference and create
                # one Problem class. With allOf they would create one class per response.
                "schema": {"$ref": _REF.format(name="Problem"), "properties": said},
                "examples": {
                    str(kind.code): {"$ref": f"#/components/examples/{kind.__name__}"} for kind in kinds
                },
            }
        },
    }


def _example(kind: type[DuetimeError]) -> Json:
    problem = problems.problem(kind())
    return {"summary": problem.title, "value": msgspec.to_builtins(problem)}
