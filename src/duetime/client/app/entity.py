"""Entities: classes with methods as messages, which run one at a time and in order for each id."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from duetime.client.app.call import Call
from duetime.client.app.handle import Handle
from duetime.client.app.options import OptionFields
from duetime.client.app.payload import Signature
from duetime.client.app.plan import Options
from duetime.client.app.task import Planned
from duetime.client.app.templates import Templates
from duetime.errors import InvalidField, UnknownTask
from duetime.protocol.terms import Entity

if TYPE_CHECKING:
    from duetime.client.app.app import App
    from duetime.client.execution.run_policy import RunPolicy


class EntityType:
    """An entity type. `accounts("42").tell("deposit", 500)` runs `Account("42").deposit(500)`."""

    def __init__(self, app: App, cls: type, name: str, options: Options, policy: RunPolicy) -> None:
        self._app = app
        self.policy = policy
        self._options = options
        self.name = name
        self.cls = cls
        self.messages = {
            message: Signature(_unbound(method), f"{name}.{message}")
            for message, method in inspect.getmembers(cls, inspect.isfunction)
            if not message.startswith("_")
        }
        self._templates = {
            message: Templates.of(options, signature, f"{name}.{message}")
            for message, signature in self.messages.items()
        }

    def __call__(self, id: str) -> EntityRef:
        """The entity with this id."""
        if not isinstance(id, str):
            raise InvalidField(f"The id {id!r} of {self.name} is not text.", hint="Use str(id).")
        return EntityRef(self, id)

    def method(self, id: str, message: str) -> Callable[..., object]:
        """The handler of one message. It creates the entity for each call, which may fail."""

        def call(*args: object, **kwargs: object) -> object:
            return getattr(self.cls(id), message)(*args, **kwargs)

        return call

    def planned(self, id: str, message: str) -> Planned[..., Any]:
        signature = self.messages.get(message)
        if signature is None:
            known = ", ".join(sorted(self.messages))
            raise UnknownTask(f"{self.name} has no message {message!r}.", hint=f"Its messages are: {known}.")
        target = Entity(self.name, id, message)
        name, templates = f"{self.name}.{message}", self._templates[message]
        return Planned(self._app, target, signature, self._options, name, templates=templates)


class EntityRef:
    """One entity, by id."""

    def __init__(self, type: EntityType, id: str) -> None:
        self._type = type
        self.id = id

    def tell(self, message: str, *args: object, **kwargs: object) -> Call[Handle[Any]]:
        """Send a message. It runs after all messages that were accepted before it."""
        return self._type.planned(self.id, message).schedule(*args, **kwargs)

    def message(self, message: str, **options: Unpack[OptionFields]) -> Planned[..., Any]:
        """A message with options (delay, key, deadline ...), to be scheduled."""
        return self._type.planned(self.id, message).options(**options)


def _unbound(method: Callable[..., object]) -> Callable[..., object]:
    """The parameters of the method, without `self`."""

    def shown() -> None: ...

    signature = inspect.signature(method)
    shown.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    shown.__annotations__ = dict(getattr(method, "__annotations__", {}))
    shown.__module__ = method.__module__
    return shown
