"""Arguments and results as JSON, with msgspec: dataclasses, datetimes, UUIDs, pydantic models; never pickle.

Arguments are decoded to the types in the function's signature.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from duetime.errors import InvalidField
from duetime.limits import CALL_SIGNATURES_KEPT

# Types that JSON returns unchanged.
_PLAIN = (int, str, float, bool, list, dict, type(None), Any, object, inspect.Parameter.empty)

# The values that are accepted for a plain type. All other types are checked only when the function runs.
_ALLOWED: Mapping[type, frozenset[type]] = {
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
    str: frozenset({str}),
    bool: frozenset({bool}),
    bytes: frozenset(),
    bytearray: frozenset(),
    list: frozenset({list, tuple, set, frozenset}),
    dict: frozenset({dict}),
    type(None): frozenset({type(None)}),
}
# Their types in JSON. `bool` is an `int` in Python.
PLAIN_SCHEMAS: Mapping[object, Mapping[str, object]] = {
    int: {"type": ["integer", "boolean"]},
    float: {"type": ["number", "boolean"]},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
    type(None): {"type": "null"},
}
_CHECKED: frozenset[type] = frozenset().union(*_ALLOWED.values())
LATER = object()
"""Stands for an argument that is not known yet."""
_NOTHING: frozenset[type] = frozenset()


def _encode_other(value: object) -> object:
    dump = getattr(value, "model_dump", None)  # a pydantic model
    if dump is not None:
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _decode_other(kind: type, value: object) -> object:
    if kind is object:
        return value
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    raise TypeError(f"{kind.__name__} cannot be read from JSON")


_encode = msgspec.json.Encoder(enc_hook=_encode_other).encode
_decode = msgspec.json.Decoder().decode


def encode(value: object, what: str) -> bytes:
    """A value as JSON; `what` names it in the error."""
    try:
        encoded = _encode(value)
    except Exception as error:
        raise InvalidField(
            f"{what} cannot be stored: {error}.",
            hint="Pass plain data, dataclasses, msgspec Structs or pydantic models.",
        ) from error
    if b"null" in encoded and _has_no_number(value):
        raise _no_number(what)
    return encoded


def _no_number(what: str) -> InvalidField:
    return InvalidField(
        f"{what} contains a float that is NaN or infinite, which JSON cannot represent.",
        hint="Use None or text.",
    )


def decode(body: bytes, kind: object = Any) -> Any:
    """JSON as a value of this type."""
    value = _decode(body)
    return value if kind in _PLAIN else convert(value, kind)


def convert(value: object, kind: object) -> Any:
    return msgspec.convert(value, kind, dec_hook=_decode_other)


def _has_no_number(value: object) -> bool:
    """Whether the data contains a NaN or infinite float, which msgspec writes as null. Needs a second
    encoding, so it is called only if the JSON contains a null."""
    try:
        json.dumps(msgspec.to_builtins(value, enc_hook=_encode_other, str_keys=True), allow_nan=False)
    except ValueError:
        return True
    return False


class Signature:
    """Encodes and decodes the arguments of one function."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self._name = name
        self.signature = inspect.signature(function)
        try:
            hints = get_type_hints(function)
        except Exception:  # a name cannot be resolved: arguments are not converted
            hints = {}
        self.returns = hints.pop("return", Any)
        self.hints: dict[str, object] = hints
        parameters = list(self.signature.parameters.values())
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._required = sum(p.default is p.empty for p in positional)
        self._simple = len(positional) == len(parameters)
        self._most = len(positional)
        self._by_place = [
            (place, hints[p.name]) for place, p in enumerate(positional) if _needs(hints, p.name)
        ]
        self._by_name = {p.name: hints[p.name] for p in parameters if _needs(hints, p.name)}
        self._wrong_by_name = {
            p.name: wrong_for(hints[p.name], p.default) for p in parameters if p.name in hints
        }
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):  # *args and **kwargs take many arguments
                self._wrong_by_name.pop(p.name, None)
        # The types of arguments that were already checked: most calls have the same types.
        self._fine: set[tuple[type, ...]] = set()

    def encode(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """The arguments as a payload. A call that does not fit the signature is refused here."""
        if kwargs or not (self._simple and self._required <= len(args) <= self._most):
            try:
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                text = f"{self._name}{self.signature} cannot be called with these arguments: {error}."
                raise InvalidField(
                    text, hint="Pass arguments that match the function's signature."
                ) from error
        if not args and not kwargs:
            return b""
        if kwargs or tuple(map(type, args)) not in self._fine:
            self._check_types(args, kwargs)
        try:
            payload = _encode([args, kwargs] if kwargs else [args])
        except Exception:
            self._name_the_culprit(args, kwargs)
            raise
        if b"null" in payload and _has_no_number([args, kwargs]):
            self._name_the_culprit(args, kwargs)
            raise _no_number(f"The arguments of {self._name}")
        return payload

    def named(self) -> list[str]:
        """The names of its parameters, without *args and **kwargs."""
        parameters = self.signature.parameters.values()
        return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def lacks_first(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Whether only the first argument is missing: the result of another call can be put there."""
        if self._simple and not kwargs:
            return len(args) < self._required <= len(args) + 1
        return not self._fits(args, kwargs) and self._fits((None, *args), kwargs)

    def _fits(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def encode_rest(self, args: tuple[object, ...], kwargs: dict[str, object]) -> bytes:
        """The arguments after the first one as a payload."""
        self._check_types((LATER, *args), kwargs)
        return encode([args, kwargs] if kwargs else [args], f"The arguments of {self._name}")

    def check_first(self, returns: object, by: str, *, listed: bool = False) -> None:
        """Raise if the first argument cannot be what another function returns. `listed`: a list of that."""
        first = next(iter(self.signature.parameters.values()))
        kind = self.hints.get(first.name, Any)
        if listed and get_origin(kind) is list:
            kind = get_args(kind)[0]
            fits = _may_take(kind, first.empty, returns)
        else:
            fits = _may_take(kind, first.default, list if listed else returns)
        if not fits:
            what = inspect.formatannotation(returns)
            result = f"a list of what {by} returns ({what})" if listed else f"the result of {by}, {what},"
            raise InvalidField(
                f"{self._name} cannot take {result} as its argument {first.name!r}:"
                f" it wants {inspect.formatannotation(first.annotation)}.",
                hint="Pass the first argument to bind(), or change one of the types.",
                argument=first.name,
            )

    def decode(self, payload: bytes, skipped: int = 0) -> tuple[list[object], dict[str, object]]:
        """The arguments, with the types in the function's signature. `skipped`: 1 if the first is missing."""
        if not payload:
            return [], {}
        parts = _decode(payload)
        args: list[object] = parts[0]
        kwargs: dict[str, object] = parts[1] if len(parts) > 1 else {}
        for place, kind in self._by_place:
            if skipped <= place < len(args) + skipped:
                args[place - skipped] = convert(args[place - skipped], kind)
        if kwargs:
            for name, kind in self._by_name.items():
                if name in kwargs:
                    kwargs[name] = convert(kwargs[name], kind)
        return args, kwargs

    def _check_types(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """Refuse an argument of an obviously wrong type; remember the accepted types."""
        for name, value in self.signature.bind(*args, **kwargs).arguments.items():
            if type(value) in self._wrong_by_name.get(name, _NOTHING):
                wanted = inspect.formatannotation(self.signature.parameters[name].annotation).strip("'")
                text = (
                    f"Argument {name!r} of {self._name} is of the type {type(value).__name__}, not {wanted}."
                )
                raise InvalidField(
                    text, hint="Pass a value of the type in the function's signature.", argument=name
                )
        if not kwargs and len(self._fine) < CALL_SIGNATURES_KEPT:
            self._fine.add(tuple(map(type, args)))

    def _name_the_culprit(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        for place, value in enumerate(args, 1):
            encode(value, f"Argument {place} of {self._name}")
        for name, value in kwargs.items():
            encode(value, f"Argument {name!r} of {self._name}")


def _may_take(kind: object, default: object, returns: object) -> bool:
    """Whether a parameter of this type may take a value of that type. Only plain types are compared."""
    wrong = wrong_for(kind, default)
    parts = get_args(returns) if get_origin(returns) in (Union, UnionType) else (returns,)
    origins = [get_origin(part) or part for part in parts]
    if not all(isinstance(each, type) and each in _CHECKED for each in origins):
        return True
    return any(each not in wrong for each in origins)


def wrong_for(kind: object, default: object) -> frozenset[type]:
    """The plain types that are wrong for this type; empty if only the function can decide."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    allowed: set[type] = {type(default)}  # the type of the default is accepted too
    for part in parts:
        origin = get_origin(part) or part
        if not isinstance(origin, type) or origin not in _ALLOWED:
            return _NOTHING
        allowed |= _ALLOWED[origin]
    return _CHECKED - allowed


def _needs(hints: Mapping[str, object], name: str) -> bool:
    """Whether a parameter has a type that must be converted from JSON."""
    return name in hints and hints[name] not in _PLAIN
