"""Parameters that many commands share: one parameter of the function becomes several of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Command = Callable[..., None]


def option(name: str, annotation: object, default: object = None) -> inspect.Parameter:
    """A parameter with an option: `annotation` is the type with its `typer.Option`."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def replaced(
    command: Command,
    name: str,
    parameters: Iterable[inspect.Parameter],
    make: Callable[[Mapping[str, Any]], object],
) -> Command:
    """The command with these parameters instead of the named one, which is made from their values."""
    own = inspect.signature(command, eval_str=True)
    new = list(parameters)
    names = [each.name for each in new]
    shown: list[inspect.Parameter] = []
    for each in own.parameters.values():
        shown += new if each.name == name else [each.replace(kind=inspect.Parameter.KEYWORD_ONLY)]

    def run(**arguments: object) -> None:
        command(**{name: make({each: arguments.pop(each) for each in names})}, **arguments)

    run.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {each.name: each.annotation for each in shown}
    run.__doc__, run.__name__, run.__module__ = command.__doc__, command.__name__, command.__module__
    return run
