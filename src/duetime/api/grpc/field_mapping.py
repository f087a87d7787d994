"""Maps gRPC messages to the Structs of `wire` and back, by the names of their fields.

A time is `execute_at` in a Struct and `execute_at_ms` in a message. The members of an enum have its name as a
prefix (`GUARANTEE_AT_MOST_ONCE`). A message may lack fields of the Struct, and a Struct fields of the
message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
import msgspec.inspect as types
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Raw, Struct

from duetime.errors import NotJson
from duetime.json_types import Json
from duetime.limits import TIME_MS_MAX
from duetime.timefmt import iso
from duetime.wire.declarations import fields_of, parts, removable, structs

M = TypeVar("M", bound=Message)
Fields = Json
_Read = Callable[[Any, str], Any]


# From a message to JSON.


def reader(message: type[Message], struct: type[Struct]) -> Callable[[Message, str], Fields]:
    """Converts messages into the JSON object for the Struct's decoder. The text is the path for errors."""
    steps = list(_steps(message, struct))

    def read(message: Any, place: str) -> Fields:
        found: Fields = {}
        for name, shown, has_presence, wanted, value in steps:
            if has_presence:
                if not message.HasField(name):
                    continue
            elif not wanted and not getattr(message, name):
                continue
            found[shown] = value(getattr(message, name), f"{place}.{shown}")
        return found

    return read


def _steps(message: type[Message], struct: type[Struct]) -> Iterator[tuple[str, str, bool, bool, _Read]]:
    """Each field that both have: its two names, whether it is optional or required, its reader."""
    known = {field.name: field for field in fields_of(struct)}
    for field in message.DESCRIPTOR.fields:
        own = known.get(field.name)
        if own is not None:
            yield field.name, own.encode_name, field.has_presence, own.required, _value(field, own.type)
        elif (own := known.get(field.name.removesuffix("_ms"))) is not None:
            value = _moment_or_null if removable(own) else moment
            yield field.name, own.encode_name, field.has_presence, own.required, value


def _value(field: Any, kind: types.Type) -> _Read:
    if field.enum_type is not None:
        choices = [
            each for part in parts(kind) if isinstance(part, types.LiteralType) for each in part.values
        ]
        names = {number: _spelled(name, choices) for number, name in _names(field.enum_type).items()}
        return lambda number, place: names.get(number, str(number))
    if field.message_type is None:
        if field.type == field.TYPE_BYTES:
            return _text if field.name == "body" else json_of
        return (lambda value, place: list(value)) if field.is_repeated else (lambda value, place: value)
    if field.message_type.GetOptions().map_entry:
        return lambda value, place: dict(value)
    if "values" in field.message_type.fields_by_name:  # an optional map
        return lambda value, place: dict(value.values)
    struct = next(part.cls for part in structs(kind))
    read = reader(GetMessageClass(field.message_type), struct)
    if field.is_repeated:
        return lambda value, place: [read(each, f"{place}[{number}]") for number, each in enumerate(value)]
    return read


def _spelled(name: str, choices: list[Any]) -> str:
    return name.lower() if name.lower() in choices else name


def _names(enum: EnumDescriptor) -> dict[int, str]:
    """The names of an enum's numbers, without the prefix."""
    prefix = str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")
    return {number: str(each.name).removeprefix(prefix) for number, each in enum.values_by_number.items()}


def moment(at_ms: int, place: str = "") -> str | float:
    """A time in the form of the API. A time out of range becomes a number, which the API refuses."""
    return iso(at_ms) if 0 < at_ms <= TIME_MS_MAX else at_ms / 1000


def _moment_or_null(at_ms: int, place: str) -> str | float | None:
    return None if at_ms == 0 else moment(at_ms, place)


def _text(body: bytes, place: str) -> str:
    try:
        return body.decode()  # text is sent unchanged
    except UnicodeDecodeError as error:
        raise NotJson(f"{place} is not UTF-8: {error}.", hint="Send text.", path=place) from None


def json_of(body: bytes, place: str) -> Raw:
    """Check that bytes are one JSON document, which can be embedded in another."""
    if not body:
        return Raw(b"null")
    try:
        if not body.isascii():
            body.decode()
        return msgspec.json.decode(body, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson(
            f"{place} is not JSON: {error}.", hint="Send JSON in UTF-8, or nothing.", path=place
        ) from None


# From a Struct to a message.


def writer(message: type[M], struct: type[Struct]) -> Callable[[Struct], M]:
    """Converts Structs into messages. Times are in milliseconds already."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(struct)}
    steps = []
    for field in message.DESCRIPTOR.fields:
        name = field.name if field.name in kinds else field.name.removesuffix("_ms")
        if name in kinds:
            steps.append((field.name, name, _written(field, struct, name)))

    def write(value: Struct) -> M:
        found: Fields = {}
        for name, own, written in steps:
            each = getattr(value, own)
            if each is not None:
                found[name] = each if written is None else written(each)
        return message(**found)

    return write


def _written(field: Any, struct: type[Struct], name: str) -> Callable[[Any], Any] | None:
    if field.enum_type is not None:
        return numbers(field.enum_type).__getitem__
    if field.message_type is None:
        return _bytes if field.type == field.TYPE_BYTES else None
    if field.message_type.GetOptions().map_entry:
        return None
    own = next(each.type for each in fields_of(struct) if each.name == name)
    write = writer(GetMessageClass(field.message_type), next(part.cls for part in structs(own)))
    return (lambda values: [write(each) for each in values]) if field.is_repeated else write


def numbers(enum: EnumDescriptor) -> dict[str | None, Any]:
    """The numbers of an enum by name, in upper and lower case. None is 0."""
    found: dict[str | None, Any] = {None: 0}
    for number, name in _names(enum).items():
        found |= {name: number, name.lower(): number}
    return found


def _bytes(value: Any) -> bytes:
    """A document as bytes: encoded JSON, plain text, or a value to encode as JSON."""
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)
