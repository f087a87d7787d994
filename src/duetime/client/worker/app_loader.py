"""Loads the App of a worker by name: `myapp:app` is the variable `app` of the module `myapp`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from duetime.client.app.app import App
from duetime.errors import BadConfig


def load(target: str) -> App:
    """Import the App. Raises an error with a hint if that fails."""
    module, colon, path = target.partition(":")
    hint = "Write module:variable, such as myapp:app or package.module:app."
    if not colon or not module or not path:
        raise BadConfig(f"{target!r} does not name an App.", hint=hint)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but one of its imports does not: the traceback shows which
        raise BadConfig(
            f"There is no module {error.name!r} in {here} or among the installed packages.", hint=hint
        ) from error
    except ValueError as error:  # a relative name
        raise BadConfig(f"{target!r} does not name an App: {error}.", hint=hint) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise BadConfig(f"The module {module!r} has no {path!r}.", hint=hint)
        found = getattr(found, name)
    if not isinstance(found, App):
        raise BadConfig(f"{target!r} is not an App but of type {type(found).__name__}.", hint=hint)
    return found


def sources_of(app: App, queues: list[str] | None, entities: list[str] | None) -> tuple[list[str], list[str]]:
    """The queues and entity types to serve: the requested ones, or all of the app."""
    all_queues, all_types = app.queues(), sorted(app.functions.entities)
    if not all_queues and not all_types:
        raise BadConfig("The app has no tasks.", hint="Register functions with @app.task.")
    if queues is None and entities is None:
        return all_queues, all_types
    return (
        list(dict.fromkeys(queues or []))
        if app.any_queue
        else _known(queues or [], all_queues, "No function of the app is in the queue", "queues"),
        _known(entities or [], all_types, "The app has no entity type", "entity types"),
    )


def _known(wanted: list[str], known: list[str], problem: str, what: str) -> list[str]:
    for name in wanted:
        if name not in known:
            there = f"Its {what} are: {', '.join(known)}." if known else f"It has no {what}."
            raise BadConfig(f"{problem} {name!r}.", hint=there)
    return list(dict.fromkeys(wanted))
