"""The functions that workers announce. They are shown to people, and payloads are checked against their
schemas.

The registry is in memory and keeps functions of disconnected workers; after a restart it is empty until
workers connect. A payload is checked only if all connected workers announce the same schema for a function:
while an old and a new version run side by side, one may accept a payload that the other would not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from duetime.api.functions import schemas
from duetime.api.functions.entity_messages import Messages
from duetime.api.functions.schemas import CompiledSchema
from duetime.errors import InvalidField
from duetime.limits import (
    FUNCTION_BYTES_MAX,
    FUNCTIONS_KEPT,
    FUNCTIONS_MAX,
    NAME_CHARS_MAX,
    SCHEMA_ERROR_CHARS_MAX,
    SIGNATURE_CHARS_MAX,
)
from duetime.protocol.intent import Item
from duetime.protocol.terms import Entity, Target, Task
from duetime.wire.function import Function, FunctionList

_logger = logging.getLogger("duetime.api")

Check = Callable[[bytes], None]
"""Raises if a payload does not fit."""
Key = tuple[str | None, str]
"""The entity type, for a message to an entity; and the name."""


class Announced(Struct, frozen=True):
    """The announcement of one function by one worker."""

    name: str
    queue: str | None
    entity: str | None
    signature: str
    schema: str
    rule: CompiledSchema | None = None
    """The compiled schema; None: payloads are not checked."""

    @property
    def key(self) -> Key:
        return self.entity, self.name

    def target(self) -> Target:
        """The target of its intents; for an entity type, with any id."""
        if self.entity is not None:
            return Entity(self.entity, "", self.name)
        return Task(self.name, self.queue or "")


class _Known:
    """One function: the announcements of the connected workers, or the last one."""

    def __init__(self, said: Announced) -> None:
        self.said = said
        self.by: dict[str, Announced] = {}
        self.rule: CompiledSchema | None = None

    def look(self) -> None:
        """The connected workers have changed: use the schema if all of them announce the same one."""
        one = next(iter(self.by.values()), self.said)
        agree = all(each.schema == one.schema for each in self.by.values())
        self.rule = one.rule if agree else None

    def check(self, payload: bytes) -> None:
        if self.rule is None:
            return
        try:
            arguments = msgspec.json.decode(payload) if payload else [[]]
            wrong = self.rule.wrong(payload, arguments)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            return  # a validator cannot check it: the function decides
        if wrong is not None:
            raise _refusal(self.said, wrong)


class FunctionRegistry:
    """All of them."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}
        self._messages = Messages()

    def join(self, worker: str, functions: Iterable[Announced], types: Iterable[str] = ()) -> None:
        """A worker has connected. It has these functions and serves these entity types."""
        functions = list(functions)
        listed = [(each.entity, each.name) for each in functions if each.entity is not None]
        self._messages.join(worker, listed, types)
        for said in functions:
            known = self._known.get(said.key)
            if known is None:
                self._make_room()
                known = self._known[said.key] = _Known(said)
            known.said = known.by[worker] = said
            known.look()

    def leave(self, worker: str) -> None:
        """A worker has disconnected. Its announcements are kept until another worker replaces them."""
        self._messages.leave(worker)
        for known in self._known.values():
            if known.by.pop(worker, None) is not None:
                known.look()

    def check(self, target: Target, payload: bytes) -> None:
        """Refuse a payload that its function cannot accept."""
        check = self.checker(target)
        if check is not None:
            check(payload)

    def check_item(self, target: Target, item: Item) -> None:
        """The same for a new intent. A payload whose first argument comes later is left to the function."""
        if item.ties is None or not item.ties.first:
            self.check(target, item.payload)

    def checker(self, target: Target) -> Check | None:
        """The check of payloads for this target; None: unknown."""
        if type(target) is Task:
            known = self._known.get((None, target.name))
        elif type(target) is Entity:
            refusal = self._messages.refusal(target)
            if refusal is not None:
                return _refusing(refusal)
            known = self._known.get((target.kind, target.message))
        else:
            return None
        return None if known is None or known.rule is None else known.check

    def shown(self) -> FunctionList:
        return FunctionList(
            functions=[
                Function(
                    name=known.said.name,
                    queue=known.said.queue,
                    entity=known.said.entity,
                    signature=known.said.signature,
                    parameters=None if known.rule is None else Raw(known.said.schema.encode()),
                    workers=sorted(known.by),
                )
                for _, known in sorted(self._known.items(), key=lambda item: (item[0][0] or "", item[0][1]))
            ]
        )

    def _make_room(self) -> None:
        """Drop functions if there are too many, first those without connected workers."""
        if len(self._known) < FUNCTIONS_KEPT:
            return
        gone = next((key for key, known in self._known.items() if not known.by), None)
        del self._known[gone if gone is not None else next(iter(self._known))]


def _refusing(refusal: InvalidField) -> Check:
    def refuse(payload: bytes) -> None:
        raise refusal

    return refuse


def checked(functions: Iterable[Announced]) -> list[Announced]:
    """The functions that a worker announces, checked against the limits."""
    found: list[Announced] = []
    for each in functions:
        if len(found) >= FUNCTIONS_MAX:
            raise InvalidField(f"A worker lists at most {FUNCTIONS_MAX} functions.")
        for name in (each.name, each.queue, each.entity):
            if name is not None and not 1 <= len(name) <= NAME_CHARS_MAX:
                raise InvalidField(f"The name of a function has 1 to {NAME_CHARS_MAX} characters.")
        schema = each.schema if len(each.schema) <= FUNCTION_BYTES_MAX else ""
        found.append(
            Announced(
                each.name,
                each.queue,
                each.entity,
                each.signature[:SIGNATURE_CHARS_MAX],
                schema,
                _rule(each.name, schema),
            )
        )
    return found


def _rule(function: str, schema: str) -> CompiledSchema | None:
    try:
        return schemas.rule(schema)
    except InvalidField:
        raise
    except Exception as error:
        _logger.warning("Payloads of %r are not checked, its schema cannot be used: %s", function, error)
        return None


def _refusal(function: Announced, error: Any) -> InvalidField:
    """The error for a payload, with its path in the body if it is known."""
    what = function.name if function.entity is None else f"{function.entity}.{function.name}"
    if isinstance(error, str):
        return InvalidField(
            f"The payload does not fit {what}{function.signature[:100]}: {error}.",
            hint="`duetime functions` lists the functions with their parameters.",
            path="$.payload",
        )
    words = str(error.message)
    node = msgspec.json.decode(function.schema)
    for step in error.schema_path:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            break
        if isinstance(node, dict) and "description" in node:
            words = node["description"]
    place = "$.payload" + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    )
    return InvalidField(
        f"The payload does not fit {what}{function.signature[:100]}: "
        f"{words[:SCHEMA_ERROR_CHARS_MAX]}, at {place}.",
        hint='A payload is [[by place], {"by": "name"}]; `duetime functions` lists the functions.',
        path=place,
    )
