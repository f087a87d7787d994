"""Arguments and results as plain JSON, with the types that Celery keeps: dates, UUIDs, decimals, bytes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from duetime.contrib.celery.exceptions import EncodeError

_TYPE, _VALUE = "__type__", "__value__"

_READ: Mapping[str, Callable[[str], object]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "bytes": b64decode,
}


def pack(value: Any) -> Any:
    """A value as JSON data."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {_key(key): pack(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [pack(each) for each in value]
    tagged = _tagged(value)
    if tagged is not None:
        return {_TYPE: tagged[0], _VALUE: tagged[1]}
    if hasattr(value, "as_tuple"):  # a result
        return pack(value.as_tuple())
    raise EncodeError(f"Object of type {type(value).__name__} is not JSON serializable")


def unpack(value: Any) -> Any:
    """The value of JSON data."""
    if isinstance(value, list):
        return [unpack(each) for each in value]
    if isinstance(value, dict):
        if value.keys() == {_TYPE, _VALUE} and value[_TYPE] in _READ:
            return _READ[value[_TYPE]](value[_VALUE])
        return {key: unpack(each) for key, each in value.items()}
    return value


def _key(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    if isinstance(key, str | int | float):
        return str(key)
    raise EncodeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")


def _tagged(value: object) -> tuple[str, str] | None:
    if isinstance(value, date | time):
        kind = "datetime" if isinstance(value, datetime) else "date" if isinstance(value, date) else "time"
        return kind, str(value)
    if isinstance(value, Decimal):
        return "decimal", str(value)
    if isinstance(value, UUID):
        return "uuid", value.hex
    if isinstance(value, bytes):
        return "bytes", b64encode(value).decode()
    return None
