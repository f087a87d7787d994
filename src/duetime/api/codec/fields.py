"""Finds the nearest field name for a misspelt one."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

import msgspec.inspect as types

from duetime.wire.declarations import structs

_STEP = re.compile(r"\.([A-Za-z]+)|\[")


def nearest(kind: object, place: str, name: str) -> str | None:
    """The field that was probably meant at a path (`$.callback`) of a body of this type."""
    names = {each.lower(): each for each in _names(kind, place)}
    said = name[:64].lower().replace("_", "").replace("-", "")
    found = difflib.get_close_matches(said, names, n=1, cutoff=0.7)
    return names[found[0]] if found else None


@lru_cache(maxsize=256)
def _names(kind: object, place: str) -> tuple[str, ...]:
    here = list(structs(types.type_info(kind)))
    for step in _STEP.finditer(place):
        name = step.group(1)
        if name is not None:  # `structs` handles the items of a list
            fields = [field for struct in here for field in struct.fields if field.encode_name == name]
            here = [struct for field in fields for struct in structs(field.type)]
    return tuple(field.encode_name for struct in here for field in struct.fields)
