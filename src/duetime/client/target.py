"""The App a worker is for, by its name: `myapp:app` is the variable `app` of the module `myapp`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from duetime.client.app import App
from duetime.errors import BadConfig


def load(target: str) -> App:
    """Import it; what is wrong with it is said plainly."""
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
            raise  # it is there, and what it needs is not: the traceback says where
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


def queues_of(app: App, wanted: list[str] | None) -> list[str]:
    """The queues to work on: those asked for, or all that the app has functions for."""
    known = app.queues()
    if not known:
        raise BadConfig("The app has no tasks.", hint="Register functions with @app.task.")
    if wanted is None:
        return known
    for queue in wanted:
        if queue not in known:
            raise BadConfig(
                f"No function of the app is in the queue {queue!r}.",
                hint=f"Its queues are: {', '.join(known)}.",
            )
    return list(dict.fromkeys(wanted))
