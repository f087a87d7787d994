"""Duetime: a durable time and task engine. `App` is where to begin."""

from typing import TYPE_CHECKING, Any

from duetime.client.app.app import App
from duetime.client.app.call import Call
from duetime.client.app.control import Context, Reject, RetryAfter, Snooze, current
from duetime.client.app.entity import EntityRef, EntityType
from duetime.client.app.groups import Chain, Group
from duetime.client.app.handle import Handle, Parent
from duetime.client.app.plan import Options, Retry, Unique
from duetime.client.app.task import Bound, Planned, Task
from duetime.client.execution.reports import LogHandler, progress
from duetime.client.http.models import Limit
from duetime.errors import DuetimeError
from duetime.protocol.effect import Change
from duetime.protocol.intent import Status
from duetime.protocol.terms import Tier
from duetime.protocol.view import View, Why

if TYPE_CHECKING:
    from duetime.client.http.client import Client


def __getattr__(name: str) -> Any:
    if name == "Client":  # for those who talk to a server
        from duetime.client.http.client import Client

        return Client
    if name == "__version__":  # asked rarely, and finding it out costs some milliseconds
        from importlib.metadata import version

        return version("duetime")
    raise AttributeError(name)


__all__ = [
    "App",
    "Bound",
    "Call",
    "Chain",
    "Change",
    "Client",
    "Context",
    "DuetimeError",
    "EntityRef",
    "EntityType",
    "Group",
    "Handle",
    "Limit",
    "LogHandler",
    "Options",
    "Parent",
    "Planned",
    "Reject",
    "Retry",
    "RetryAfter",
    "Snooze",
    "Status",
    "Task",
    "Tier",
    "Unique",
    "View",
    "Why",
    "current",
    "progress",
]
