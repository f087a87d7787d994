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

from duetime.api.messages import Messages
from duetime.errors import InvalidField
from duetime.limits import FUNCTION_BYTES_MAX, FUNCTIONS_KEPT, FUNCTIONS_MAX, NAME_CHARS_MAX
from duetime.protocol.terms import Entity, Target, Task

try:
    from jsonschema_rs import Draft202012Validator
except ModuleNotFoundError:  # then nothing is checked
    Draft202012Validator = None  # type: ignore[assignment, misc]

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
        self.validator: Any = None
        self._schema = ""

    def look(self) -> None:
        """Somebody came or went: who is there decides, and only if all say the same."""
        schemas = {each.schema for each in self.by.values()} or {self.said.schema}
        schema = schemas.pop() if len(schemas) == 1 else ""
        if schema != self._schema:  # workers come and go, and mostly say the same
            self._schema, self.validator = schema, _compiled(schema)

    def check(self, payload: bytes) -> None:
        try:
            arguments = msgspec.json.decode(payload) if payload else [[]]
            if self.validator.is_valid(arguments):
                return
            error = next(self.validator.iter_errors(arguments))
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, StopIteration):
            return  # nothing that a validator can judge: the function decides
        raise _refusal(self.said, error)


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
        return None if known is None or known.validator is None else known.check

    def shown(self) -> FunctionsOut:
        return FunctionsOut(
            [
                FunctionOut(
                    name=known.said.name,
                    queue=known.said.queue,
                    entity=known.said.entity,
                    signature=known.said.signature,
                    parameters=None if known.validator is None else Raw(known.said.schema.encode()),
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
            Function(each.name, each.queue, each.entity, each.signature[:_SIGNATURE_CHARS_MAX], schema)
        )
    return found


def _compiled(schema: str) -> Any:
    if not schema or Draft202012Validator is None:
        return None
    try:
        return Draft202012Validator(msgspec.json.decode(schema))
    except Exception as error:
        _logger.warning("A worker's schema cannot be used, payloads are not checked by it: %s", error)
        return None


def _refusal(function: Function, error: Any) -> InvalidField:
    """What is wrong, and where in the body it is."""
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
    what = function.name if function.entity is None else f"{function.entity}.{function.name}"
    return InvalidField(
        f"The payload does not fit {what}{function.signature[:100]}: {words[:_ERROR_CHARS_MAX]}, at {place}.",
        hint='A payload is [[by place], {"by": "name"}]; `duetime functions` shows what each takes.',
        path=place,
    )
