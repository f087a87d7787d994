"""The tasks of the project: those in modules it has loaded. The name of a task loads nothing.

Names come with intents, from everybody who may submit one; importing what they name would run any module
that can be found. So the modules are loaded first, by the project's own settings: `tasks` of each installed
app, and those of the option `modules`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from django.utils.module_loading import autodiscover_modules

from duetime.contrib.django.compat import Task
from duetime.errors import NotAcked

# What our own kinds of failures are in the words of Python; anything else that is not known is NotAcked.
_KINDS = {
    "timeout": "builtins.TimeoutError",
    "rejected": "duetime.Reject",
    "retry-after": "duetime.RetryAfter",
    "result": "builtins.TypeError",
}
_UNKNOWN = f"{NotAcked.__module__}.{NotAcked.__qualname__}"


class Registry:
    """Finds tasks by their path."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = modules
        self._loaded = False

    def find(self, path: str) -> Any:
        """The task at this path of the project; None if there is none."""
        found = _loaded(path)
        if found is None and not self._loaded:
            self.load()
            found = _loaded(path)
        return found if _is_task(found) else None

    def load(self) -> None:
        """Load the modules of tasks. Not before Django is set up."""
        if not self._loaded:
            autodiscover_modules("tasks")
            for name in self._modules:
                import_module(name)
            self._loaded = True

    def queues(self) -> Iterable[str]:
        """The queues that loaded tasks name."""
        self.load()
        for module in list(sys.modules.values()):
            for found in list(vars(module).values()) if hasattr(module, "__dict__") else ():
                if _is_task(found):
                    yield found.queue_name


def exception_path(kind: str) -> str:
    """Where the class of an error is found: an exception that is loaded here, or one that says no more."""
    path = kind if "." in kind else _KINDS.get(kind, f"builtins.{kind}")
    found = _loaded(path)
    return path if issubclass(type(found), type) and issubclass(found, BaseException) else _UNKNOWN


def _is_task(found: Any) -> bool:
    """By its own type: isinstance asks a lazy object for its class, and by that makes it."""
    return issubclass(type(found), Task)


def _loaded(path: str) -> Any:
    """What a loaded module has under this name. Not by getattr, by which a module may load others."""
    module, _, name = path.rpartition(".")
    found = sys.modules.get(module)
    return None if found is None else vars(found).get(name)
