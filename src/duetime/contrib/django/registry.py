"""Finds the project's tasks by name, in modules that are already loaded.

Names come with intents, from every caller that may submit one. Importing a module by such a name would let a
caller run any module on the path. So the modules are loaded in advance, according to the project's settings:
`tasks` of each installed app, and those of the option `modules`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from django.utils.module_loading import autodiscover_modules

from duetime.contrib.django.compat import Task
from duetime.errors import NotAcked

# The Python exceptions for Duetime's own kinds of failures. All other unknown kinds become NotAcked.
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

    def find(self, path: str) -> Task | None:
        """The task at this import path, or None."""
        found = _loaded(path)
        if found is None and not self._loaded:
            self.load()
            found = _loaded(path)
        return found if _is_task(found) else None

    def load(self) -> None:
        """Load the modules of tasks. Needs django.setup()."""
        if not self._loaded:
            autodiscover_modules("tasks")
            for name in self._modules:
                import_module(name)
            self._loaded = True

    def queues(self) -> Iterable[str]:
        """The queues of all loaded tasks."""
        self.load()
        for module in list(sys.modules.values()):
            for found in list(vars(module).values()) if hasattr(module, "__dict__") else ():
                if _is_task(found):
                    yield found.queue_name


def exception_path(kind: str) -> str:
    """The import path for a kind of error: its own if that exception is loaded, or a general one."""
    path = kind if "." in kind else _KINDS.get(kind, f"builtins.{kind}")
    found = _loaded(path)
    return path if issubclass(type(found), type) and issubclass(found, BaseException) else _UNKNOWN


def _is_task(found: object) -> bool:
    """Whether it is a task. Uses `type`, because `isinstance` would evaluate a lazy object."""
    return issubclass(type(found), Task)


def _loaded(path: str) -> Any:
    """The object at this path in a loaded module. Not with `getattr`, which may import other modules."""
    module, _, name = path.rpartition(".")
    found = sys.modules.get(module)
    return None if found is None else vars(found).get(name)
