"""The JSON Schemas of workers: which are accepted, and the cost of checking a payload.

A schema comes from outside, and payloads are checked on the event loop. So nothing is loaded for it:
references stay inside the document. And its cost is computed in advance. A reference costs as much as the
schema to which it refers; this gives the number of comparisons for one value of a payload. A recursive
reference multiplies them with every level of the payload. A payload that would cost too much is not checked:
the function decides.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from duetime.errors import InvalidField
from duetime.limits import (
    PATTERN_BYTES_MAX,
    PATTERN_COST,
    SCHEMA_COST_MAX,
    SCHEMA_COST_TOLD_MAX,
    SCHEMA_DEPTH_MAX,
    SCHEMA_NODES_MAX,
)

try:
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError
except ModuleNotFoundError:  # without it, payloads are not checked
    Draft202012Validator = None  # type: ignore[assignment, misc]

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
# Keywords that refer to other documents, or define names for references.
_NAMES: Final = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary"})
# Keywords that contain schemas: as a value, in a list, or by name.
_ONE: Final = frozenset(
    {
        "not", "if", "then", "else", "items", "additionalProperties", "contains", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties", "contentSchema", "additionalItems",
    }
)  # fmt: skip
_LIST: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
_APART: Final = frozenset({"$defs", "definitions"})
"""Keywords with schemas that are used only through references."""


class Unusable(Exception):
    """The schema cannot be used: it is invalid, or could cost too much."""


class _Cost(Struct, frozen=True):
    """The cost of checking one value of a payload."""

    nodes: int
    """Comparisons."""
    patterns: int
    branches: int
    """The factor by which recursive references multiply the comparisons at each level of the payload."""
    hops: int
    """The maximum number of such references from one level to the next."""
    loops: int
    """The number of reference cycles that share no node."""


class _Place:
    """One node of the document, without the nodes to which it refers."""

    def __init__(self) -> None:
        self.nodes = 0
        self.patterns = 0
        self.refs: list[tuple[str, bool]] = []
        """The nodes to which it refers, and whether they check the same value (not a part of it)."""


class CompiledSchema:
    """A compiled schema."""

    def __init__(self, text: str) -> None:
        """Raises `InvalidField` for a schema that refers to other documents; `Unusable`, or an error of the
        validator, for other problems."""
        schema = msgspec.json.decode(text)
        document = _Document(schema)
        self._cost = document.cost()
        self._validator = Draft202012Validator(
            schema, retriever=load_nothing, pattern_options=RegexOptions(size_limit=PATTERN_BYTES_MAX)
        )

    def wrong(self, payload: bytes, value: Any) -> ValidationError | str | None:
        """The problem of a payload: an error with its path, or a text; None if it fits."""
        cost = self.cost(payload, value)
        if cost > SCHEMA_COST_MAX or self._validator.is_valid(value):
            return None
        if cost > SCHEMA_COST_TOLD_MAX:  # finding the reason takes a thousand times as long as the check
            return "it does not match the function's schema"
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return error
        return None

    def cost(self, payload: bytes, value: Any) -> int:
        """The maximum number of comparisons."""
        values = 1 + payload.count(b",") + payload.count(b"[") + payload.count(b"{")
        each = self._cost
        cost = (values * each.nodes + each.patterns * PATTERN_COST * len(payload)) * each.hops
        if each.loops > 1 or each.branches > 1:
            depth = _depth(value)
            cost *= each.branches ** min(64, depth * each.hops) * depth ** min(8, each.loops - 1)
        return cost


class _Document:
    """A schema as a graph of nodes that refer to each other."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._places: dict[str, _Place] = {}
        self._read("#")

    def cost(self) -> _Cost:
        """The cost of the whole document, or `Unusable`."""
        nodes: dict[str, int] = {}
        patterns: dict[str, int] = {}
        branches = hops = 1
        loops = 0
        for group in _groups({name: [to for to, _ in place.refs] for name, place in self._places.items()}):
            members = set(group)  # the other nodes to which they refer came before them
            back = 0
            for name in group:
                place = self._places[name]
                others = [to for to, _ in place.refs if to not in members]
                nodes[name] = place.nodes + sum(nodes[to] for to in others)
                patterns[name] = place.patterns + sum(patterns[to] for to in others)
                back = max(back, len(place.refs) - len(others))
            if back:
                self._check_loop(group)
                loops += 1
                branches, hops = max(branches, back), max(hops, len(group))
        most = max(nodes.values())
        if most > SCHEMA_NODES_MAX:
            raise Unusable(f"{most} comparisons for one value; {SCHEMA_NODES_MAX} are allowed")
        return _Cost(most, max(patterns.values()), branches, hops, loops)

    def _check_loop(self, group: list[str]) -> None:
        """Refuse reference cycles that always check the same value: they would not end."""
        members = set(group)
        same = {
            name: [to for to, same in self._places[name].refs if same and to in members] for name in group
        }
        for loop in _groups(same):
            if len(loop) > 1 or loop[0] in same[loop[0]]:
                raise Unusable("references that lead nowhere")

    def _read(self, name: str) -> None:
        """Read a node and all nodes to which it refers."""
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in self._places:
                continue
            place = self._places[name] = _Place()
            self._walk(place, self._at(name), same=True, depth=0)
            waiting += [to for to, _ in place.refs]

    def _walk(self, place: _Place, schema: Any, *, same: bool, depth: int) -> None:
        if depth > SCHEMA_DEPTH_MAX:
            raise Unusable(f"it is nested deeper than {SCHEMA_DEPTH_MAX}")
        place.nodes += 1
        if not isinstance(schema, dict):
            return
        for keyword, value in schema.items():
            if keyword in _NAMES or (keyword == "$schema" and value not in (_DRAFT, _DRAFT + "#")):
                raise InvalidField(f"A function's schema has {keyword}, which is not allowed.", hint=_HINT)
            if keyword == "$ref":
                place.refs.append((_local(value), same))
            place.patterns += keyword == "pattern"
            if keyword == "patternProperties" and isinstance(value, dict):
                place.patterns += len(value)
            inside = same and keyword in _SAME
            if keyword in _APART:
                if isinstance(value, dict):  # checked for forbidden keywords here, counted where it is used
                    for each in value.values():
                        self._walk(_Place(), each, same=False, depth=depth + 1)
                continue
            parts = list(_parts(keyword, value))
            for each in parts:
                self._walk(place, each, same=inside, depth=depth + 1)
            if not parts:
                place.nodes += _count(value, depth)

    def _at(self, name: str) -> Any:
        found = self._schema
        for step in name.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(step)] if isinstance(found, list) else found[step]
            except (KeyError, IndexError, ValueError, TypeError):
                raise Unusable(f"it refers to {name[:100]!r}, which is not there") from None
        return found


_HINT: Final = "References may only be to places in the same document: #/$defs/NAME."
# Keywords with schemas for the same value, not for a part of it.
_SAME: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)


def _parts(keyword: str, value: Any) -> Iterator[Any]:
    """The schemas that a keyword contains."""
    if keyword in _LIST and isinstance(value, list):
        yield from value
    elif keyword in _BY_NAME and isinstance(value, dict):
        yield from value.values()
    elif keyword in _ONE:
        yield value


def _local(value: Any) -> str:
    """The path in the document that a reference names."""
    if isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return unquote(value)
    raise InvalidField(
        f"A function's schema refers to {str(value)[:100]!r}, which is not in the schema itself.", hint=_HINT
    )


def _count(value: Any, depth: int) -> int:
    """The number of values: for example, each value of an enum is compared."""
    if depth > SCHEMA_DEPTH_MAX:
        raise Unusable(f"it is nested deeper than {SCHEMA_DEPTH_MAX}")
    if isinstance(value, dict):
        return 1 + sum(_count(each, depth + 1) for each in value.values())
    if isinstance(value, list):
        return 1 + sum(_count(each, depth + 1) for each in value)
    return 1


def _depth(value: Any) -> int:
    """The nesting depth of lists and objects."""
    level, deep = [value], 0
    while level:
        parts: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                parts += each.values()
            elif isinstance(each, list):
                parts += each
        level = parts
        deep += 1
    return deep


def _groups(edges: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components (Tarjan). The components to which one leads come before it."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root, first in edges.items():
        work: list[tuple[str, Iterator[str]]] = []
        if root not in order:
            work.append((root, iter(first)))
            order[root] = low[root] = len(order)
            stack.append(root)
            on_stack.add(root)
        while work:
            name, rest = work[-1]
            for to in rest:
                if to not in order:
                    order[to] = low[to] = len(order)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(edges[to])))
                    break
                if to in on_stack:
                    low[name] = min(low[name], order[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    place = stack.index(name)
                    found.append(stack[place:])
                    on_stack.difference_update(stack[place:])
                    del stack[place:]
    return found


def load_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is not loaded")


_lock = threading.Lock()
_kept: WeakValueDictionary[str, CompiledSchema] = WeakValueDictionary()


def rule(text: str) -> CompiledSchema | None:
    """The compiled schema, cached by its text; None if the validator is not installed."""
    if not text or Draft202012Validator is None:
        return None
    with _lock:
        kept = _kept.get(text)
    if kept is None:
        kept = CompiledSchema(text)
        with _lock:
            kept = _kept.setdefault(text, kept)
    return kept
