"""Reads the declarations of `wire`: the fields of a Struct, their types and descriptions.

Options of Python and of the command line, messages of gRPC and reference pages are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec.inspect as types
from msgspec import NODEFAULT, Struct


def fields_of(struct: type[Struct]) -> tuple[types.Field, ...]:
    """The fields of a Struct with their types and descriptions."""
    info = types.type_info(struct)
    assert isinstance(info, types.StructType)
    return info.fields


def parts(kind: types.Type) -> Iterator[types.Type]:
    """The types that a value may have, without descriptions."""
    if isinstance(kind, types.Metadata):
        yield from parts(kind.type)
    elif isinstance(kind, types.UnionType):
        for each in kind.types:
            yield from parts(each)
    else:
        yield kind


def structs(kind: types.Type) -> Iterator[types.StructType]:
    """The Structs that a value, or an item of it, may be."""
    for part in parts(kind):
        if isinstance(part, types.StructType):
            yield part
        elif isinstance(part, types.ListType):
            yield from structs(part.item_type)


def removable(field: types.Field) -> bool:
    """Whether null removes the value, where an omitted field stays."""
    # msgspec shows a default of UNSET as a field that is not required and has no default.
    unset = not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT
    return unset and any(isinstance(part, types.NoneType) for part in parts(field.type))


def description(kind: types.Type) -> str:
    """The description of a field: its own, or that of its Struct."""
    if isinstance(kind, types.Metadata):
        return (kind.extra_json_schema or {}).get("description") or description(kind.type)
    if isinstance(kind, types.UnionType):
        return next((text for each in kind.types if (text := description(each))), "")
    return (kind.cls.__doc__ or "").strip() if isinstance(kind, types.StructType) else ""
