"""Options of a function that name its arguments: `Limit(key="tenant:{tenant}")`.

Only the options of a registration are templates. Those of `task.options(...)` are taken as they are, because
they often contain data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from string import Formatter
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from msgspec.structs import replace

from duetime.client.app.options import PER_INTENT
from duetime.client.app.payload import LATER, Signature
from duetime.errors import InvalidField
from duetime.wire.intent import Limit

if TYPE_CHECKING:
    from duetime.client.app.plan import Options

Values = Mapping[str, str]
"""The arguments of a call as text, by name."""
Fill = Callable[[Values], Any]
"""Makes the value of an option."""

_PLAIN = (str, int, float, Decimal, UUID, date)
_HINT = "Write {name} with the name of a parameter, and {{ or }} for a brace."


class Templates:
    """The options of one function that are filled from the arguments of each call."""

    def __init__(self, fills: Mapping[str, tuple[Fill, frozenset[str]]], signature: Signature) -> None:
        """`fills`: by option, the function that makes its value, and the arguments that it names."""
        self._fills = fills
        self._signature = signature
        shared = [names for option, (_, names) in fills.items() if option not in PER_INTENT]
        self.shared = tuple(sorted(frozenset[str]().union(*shared)))
        """The arguments that the terms depend on: calls with the same values share their terms."""

    @staticmethod
    def of(options: Options, signature: Signature, function: str) -> Templates | None:
        """The templates among the options of a registration; None if there are none."""
        parameters = signature.named()
        fills: dict[str, tuple[Fill, frozenset[str]]] = {}
        for option, texts, rebuilt in _texts(options):
            parsed = [_parsed(option, text) for text in texts]
            if all(parts is None for parts in parsed):
                continue
            names = frozenset(name for parts in parsed for _, name in parts or () if name is not None)
            for name in sorted(names.difference(parameters)):
                raise InvalidField(
                    f"{option} names {{{name}}}, and {function} has no such parameter.",
                    hint=f"Its parameters are: {', '.join(parameters) or 'none'}.",
                )
            fills[option] = (_fill(texts, parsed, rebuilt), names)
        return Templates(fills, signature) if fills else None

    def without(self, options: Collection[str]) -> Templates | None:
        """The templates of the options that are not replaced."""
        left = {option: fill for option, fill in self._fills.items() if option not in options}
        return Templates(left, self._signature) if left else None

    def __contains__(self, option: object) -> bool:
        return option in self._fills

    def values(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Values:
        """The named arguments of a call. A call that does not fit the signature is refused."""
        try:
            bound = self._signature.signature.bind(*args, **kwargs)
        except TypeError:
            self._signature.encode(args, kwargs)
            raise
        bound.apply_defaults()
        named = {name: option for option, (_, names) in self._fills.items() for name in names}
        return {name: _text(option, name, bound.arguments[name]) for name, option in named.items()}

    def filled(self, values: Values, *, own: bool) -> dict[str, Any]:
        """The values of the options: those of the intent itself (`own`), or those of its terms."""
        return {
            option: fill(values) for option, (fill, _) in self._fills.items() if (option in PER_INTENT) is own
        }


def _texts(options: Options) -> list[tuple[str, list[str], Callable[[list[str]], Any]]]:
    """The options that may be templates: name, texts, and how to put new texts in their place."""
    found: list[tuple[str, list[str], Callable[[list[str]], Any]]] = []
    for option in ("key", "collapse_key", "fairness_key", "shard_key"):
        text = getattr(options, option)
        if isinstance(text, str):
            found.append((option, [text], lambda texts: texts[0]))
    unique = options.unique
    if unique is not None:
        found.append(("unique", [unique.key], lambda texts: replace(unique, key=texts[0])))
    if options.tags:
        tags = dict(options.tags)
        if all(isinstance(text, str) for text in tags.values()):
            found.append(("tags", list(tags.values()), lambda texts: dict(zip(tags, texts, strict=True))))
    if options.limits:
        limits = [
            each if isinstance(each, Limit) else msgspec.convert(each, Limit) for each in options.limits
        ]
        found.append(
            (
                "limits",
                [limit.key for limit in limits],
                lambda texts: tuple(
                    replace(limit, key=text) for limit, text in zip(limits, texts, strict=True)
                ),
            )
        )
    return found


def _parsed(option: str, text: str) -> list[tuple[str, str | None]] | None:
    """The parts of a template: text, and the name that follows it. None: it is plain text."""
    if "{" not in text and "}" not in text:
        return None
    found: list[tuple[str, str | None]] = []
    try:
        for literal, name, spec, conversion in Formatter().parse(text):
            if name is not None and (spec or conversion or not name.isidentifier()):
                raise ValueError(f"{{{name}}} is not the name of a parameter")
            found.append((literal, name))
    except ValueError as error:
        raise InvalidField(f"{option}={text!r} cannot be read: {error}.", hint=_HINT) from None
    return found


def _fill(
    texts: list[str],
    parsed: list[list[tuple[str, str | None]] | None],
    rebuilt: Callable[[list[str]], Any],
) -> Fill:
    def fill(values: Values) -> Any:
        return rebuilt(
            [
                text
                if parts is None
                else "".join(literal + ("" if name is None else values[name]) for literal, name in parts)
                for text, parts in zip(texts, parsed, strict=True)
            ]
        )

    return fill


def _text(option: str, name: str, value: object) -> str:
    """An argument as text."""
    if isinstance(value, Enum):
        value = value.value
    if value is LATER:
        raise InvalidField(
            f"{option} names the argument {name!r}, which is the result of the step before.",
            hint="Name an argument that is known when the step is scheduled.",
            argument=name,
        )
    if not isinstance(value, _PLAIN):
        raise InvalidField(
            f"{option} names the argument {name!r}, which is {_kind(value)}.",
            hint="Name an argument that is text, a number, a date or a UUID.",
            argument=name,
        )
    return str(value)


def _kind(value: object) -> str:
    return "None" if value is None else f"of the type {inspect.formatannotation(type(value))}"
