"""The functions that workers have, as they say themselves: shown to people, and payloads are checked by them.

Kept in memory, also when a worker leaves; a restart forgets it until workers come again. A payload is checked
only where everybody who is connected says the same of a function: while an old and a new version of it run
side by side, either may take what the other would not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from duetime.api.functions import schemas
from duetime.api.functions.entity_messages import Messages
from duetime.api.functions.schemas import Rule
from duetime.errors import InvalidField
from duetime.limits import FUNCTION_BYTES_MAX, FUNCTIONS_KEPT, FUNCTIONS_MAX, NAME_CHARS_MAX
from duetime.protocol.terms import Entity, Target, Task

_SIGNATURE_CHARS_MAX = 500
_ERROR_CHARS_MAX = 300
_logger = logging.getLogger("duetime.api")

Check = Callable[[bytes], None]
"""Raises for a payload that does not fit."""
Key = tuple[str | None, str]
"""The type of the entity, if it is a message to one; and the name."""


class Function(Struct, frozen=True):
    """What one worker says of one of its functions."""

    name: str
    queue: str | None
    entity: str | None
    signature: str
    schema: str
    rule: Rule | None = None
    """What payloads are checked by; None: nothing."""

    @property
    def key(self) -> Key:
        return self.entity, self.name

    def target(self) -> Target:
        """Where intents for it go; an entity's id stands for all of them."""
        if self.entity is not None:
            return Entity(self.entity, "", self.name)
        return Task(self.name, self.queue or "")


class FunctionOut(Struct, frozen=True, rename="camel"):
    """A function as shown."""

    name: str
    queue: str | None
    entity: str | None
    signature: str
    parameters: Raw | None
    """The JSON Schema of its payload; null: nothing is known, or workers say different things."""
    workers: list[str]
    """Who has it now."""


class FunctionsOut(Struct, frozen=True, rename="camel"):
    """The functions of all workers, by name."""

    functions: list[FunctionOut]


class _Known:
    """One function: what those who are connected say of it, or who was last."""

    def __init__(self, said: Function) -> None:
        self.said = said
        self.by: dict[str, Function] = {}
        self.rule: Rule | None = None

    def look(self) -> None:
        """Somebody came or went: who is there decides, and only if all say the same."""
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
            return  # nothing that a validator can judge: the function decides
        if wrong is not None:
            raise _refusal(self.said, wrong)


class Functions:
    """All of them."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}
        self._messages = Messages()

    def join(self, worker: str, functions: Iterable[Function], types: Iterable[str] = ()) -> None:
        """A worker is connected, has these, and asks for messages of these types of entities."""
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
        """It is gone; what it said is remembered as long as nobody else says otherwise."""
        self._messages.leave(worker)
        for known in self._known.values():
            if known.by.pop(worker, None) is not None:
                known.look()

    def check(self, target: Target, payload: bytes) -> None:
        """Refuse what the function this is for could not take."""
        check = self.checker(target)
        if check is not None:
            check(payload)

    def checker(self, target: Target) -> Check | None:
        """What refuses payloads for this target; None: nothing is known."""
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

    def shown(self) -> FunctionsOut:
        return FunctionsOut(
            [
                FunctionOut(
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
        """Those whose workers all left go first."""
        if len(self._known) < FUNCTIONS_KEPT:
            return
        gone = next((key for key, known in self._known.items() if not known.by), None)
        del self._known[gone if gone is not None else next(iter(self._known))]


def _refusing(refusal: InvalidField) -> Check:
    def refuse(payload: bytes) -> None:
        raise refusal

    return refuse


def checked(functions: Iterable[Function]) -> list[Function]:
    """What a worker says of its functions, within bounds."""
    found: list[Function] = []
    for each in functions:
        if len(found) >= FUNCTIONS_MAX:
            raise InvalidField(f"A worker lists at most {FUNCTIONS_MAX} functions.")
        for name in (each.name, each.queue, each.entity):
            if name is not None and not 1 <= len(name) <= NAME_CHARS_MAX:
                raise InvalidField(f"The name of a function has 1 to {NAME_CHARS_MAX} characters.")
        schema = each.schema if len(each.schema) <= FUNCTION_BYTES_MAX else ""
        found.append(
            Function(
                each.name,
                each.queue,
                each.entity,
                each.signature[:_SIGNATURE_CHARS_MAX],
                schema,
                _rule(each.name, schema),
            )
        )
    return found


def _rule(function: str, schema: str) -> Rule | None:
    try:
        return schemas.rule(schema)
    except InvalidField:
        raise
    except Exception as error:
        _logger.warning("Payloads of %r are not checked, its schema cannot be used: %s", function, error)
        return None


def _refusal(function: Function, error: Any) -> InvalidField:
    """What is wrong, and where in the body it is, if that is known."""
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
        f"The payload does not fit {what}{function.signature[:100]}: {words[:_ERROR_CHARS_MAX]}, at {place}.",
        hint='A payload is [[by place], {"by": "name"}]; `duetime functions` lists the functions.',
        path=place,
    )
