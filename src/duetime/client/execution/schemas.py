"""The JSON Schema of a function's payload. A worker announces it to servers, which check payloads against it.

A schema never refuses a payload that the function would accept. Constraints that JSON Schema cannot express
are omitted, and so are constraints that Python and JSON Schema define differently (patterns, formats, lengths
of bytes).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import msgspec

from duetime.client.app.payload import PLAIN_SCHEMAS, Signature, wrong_for
from duetime.client.execution.functions import Functions
from duetime.client.worker.worker_options import Listed
from duetime.json_types import Json
from duetime.limits import FUNCTION_BYTES_MAX, FUNCTIONS_MAX, NAME_CHARS_MAX, SIGNATURE_CHARS_MAX

# Keywords with the same meaning for msgspec and for a validator; all others are omitted.
_KEPT = frozenset(
    {
        "$ref", "type", "enum", "const", "anyOf", "properties", "required", "additionalProperties", "items",
        "prefixItems", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "minLength", "maxLength", "minProperties", "maxProperties",
    }
)  # fmt: skip
_NAMED = ("properties", "$defs")
_LISTED = ("anyOf", "prefixItems")


def listed(functions: Functions, queues: list[str], entities: list[str]) -> list[Listed]:
    """The functions of an app in these queues, and the messages of these entity types."""
    found = [
        _listed(name, handler.signature, functions.queues[name], None)
        for name, handler in sorted(functions.tasks.items())
        if functions.queues[name] in queues
    ]
    for kind in entities:
        for message, signature in sorted(functions.entities[kind].messages.items()):
            found.append(_listed(message, signature, None, kind))
    return [each for each in found if len(each.name) <= NAME_CHARS_MAX][:FUNCTIONS_MAX]


def _listed(name: str, signature: Signature, queue: str | None, entity: str | None) -> Listed:
    try:
        schema = msgspec.json.encode(schema_of(signature))
    except Exception:  # a type that cannot be inspected: payloads are not checked
        schema = b""
    if len(schema) > FUNCTION_BYTES_MAX:
        schema = b""
    text = inspect.cleandoc(str(signature.signature))[:SIGNATURE_CHARS_MAX]
    return Listed(name, queue, entity, text, schema)


def schema_of(signature: Signature) -> Json:
    """The schema of a payload: `[[1, 2], {"name": 3}]` are the positional and the keyword arguments."""
    defs: Json = {}
    places: list[object] = []
    names: Json = {}
    rules: list[Json] = []
    more_places = more_names = False
    for p in signature.signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            more_places = True
        elif p.kind is p.VAR_KEYWORD:
            more_names = True
        else:
            schema = _parameter(signature.hints.get(p.name, Any), p.default, defs)
            if p.kind is not p.KEYWORD_ONLY:
                places.append(schema)
            if p.kind is not p.POSITIONAL_ONLY:
                names[p.name] = schema
            rules += _rules(p, len(places) - 1)
    args: Json = {"type": "array"}
    if places:  # an empty list is not allowed there
        args["prefixItems"] = places
    if not more_places:
        args["maxItems"] = len(places)
    kwargs: Json = {"type": "object", "properties": names}
    if not more_names:
        kwargs["additionalProperties"] = False
    whole: Json = {
        "type": "array", "minItems": 1, "maxItems": 2, "prefixItems": [args, kwargs],
    }  # fmt: skip
    if rules:
        whole["allOf"] = rules
    if defs:
        whole["$defs"] = defs
    return whole


def _rules(p: inspect.Parameter, place: int) -> Iterator[Json]:
    """Requires that a parameter is given exactly once. A server shows the description in its error."""
    by_place: Json = {"prefixItems": [{"type": "array", "minItems": place + 1}]}
    by_name: Json = {"minItems": 2, "prefixItems": [True, {"type": "object", "required": [p.name]}]}
    if p.default is p.empty:
        ways = [by_place] if p.kind is not p.KEYWORD_ONLY else []
        ways += [by_name] if p.kind is not p.POSITIONAL_ONLY else []
        yield {"description": f"the argument {p.name!r} is missing", "anyOf": ways}
    if p.kind is p.POSITIONAL_OR_KEYWORD:
        twice = {"allOf": [by_place, by_name]}
        yield {"description": f"the argument {p.name!r} is given twice", "not": twice}


def _parameter(kind: object, default: object, defs: Json) -> object:
    """The schema of one parameter; `True` if any value is allowed."""
    try:
        plain = PLAIN_SCHEMAS.get(kind)
    except TypeError:  # a type that cannot be hashed
        return True
    if plain is not None:
        # Plain values are passed on unchanged: the function takes every value that the client accepts.
        return True if type(default) in wrong_for(kind, inspect.Parameter.empty) else plain
    if kind in (Any, object, inspect.Parameter.empty):
        return True
    try:
        (schema,), found = msgspec.json.schema_components(
            [kind], schema_hook=lambda other: {}, ref_template="#/$defs/{name}"
        )
    except Exception:  # JSON Schema cannot express it
        return True
    for name, each in found.items():
        clean = _clean(each)
        if defs.setdefault(name, clean) != clean:  # two types with the same name: one of them is not checked
            return True
    schema = _clean(schema)
    if default is None and isinstance(schema, dict):
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def _clean(schema: object) -> Any:
    """A schema with only the keywords that have the same meaning for both."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "decimal":  # also read from numbers
        return {"type": ["string", "number"]}
    if schema.get("type") == "integer":  # `1.0` is one to a validator and to JSON, and `true` is not
        schema = {name: value for name, value in schema.items() if name != "format"}
    kept = {name: value for name, value in schema.items() if name in _KEPT}
    if "contentEncoding" in schema or "format" in schema:
        kept.pop("minLength", None), kept.pop("maxLength", None)
    for name in _NAMED:
        if name in kept:
            kept[name] = {each: _clean(inner) for each, inner in kept[name].items()}
    for name in _LISTED:
        if kept.get(name):
            kept[name] = [_clean(inner) for inner in kept[name]]
        else:
            kept.pop(name, None)
    for name in ("items", "additionalProperties"):
        if name in kept:
            kept[name] = _clean(kept[name])
    return kept
