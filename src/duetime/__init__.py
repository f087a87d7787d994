"""Duetime: a durable time and task engine. `App` is where to begin."""

from typing import TYPE_CHECKING, Any

from duetime.client.app.app import App
from duetime.client.app.call import Call, Dropped
from duetime.client.app.control import Context, Reject, RetryAfter, Snooze, SoftTimeout, current
from duetime.client.app.entity import EntityRef, EntityType
from duetime.client.app.flow import Bound, Flow
from duetime.client.app.groups import Chain, Group
from duetime.client.app.handle import Handle
from duetime.client.app.middleware import Middleware, NewCall, Run
from duetime.client.app.plan import Options
from duetime.client.app.policies import Retry, Unique
from duetime.client.app.task import Planned, Task
from duetime.client.execution.reports import LogHandler, progress
from duetime.errors import DuetimeError
from duetime.protocol.terms import Tier
from duetime.wire.event import Transition
from duetime.wire.history import Failure, Parent, Why
from duetime.wire.intent import Intent, Limit, Status
from duetime.wire.schedule import Schedule

if TYPE_CHECKING:
    from duetime.client.http.client import Client


def __getattr__(name: str) -> Any:
    if name == "Client":  # for programs that use a server
        from duetime.client.http.client import Client

        return Client
    if name == "__version__":  # rarely needed, and reading it takes some milliseconds
        from importlib.metadata import version

        return version("duetime")
    raise AttributeError(name)


__all__ = [
    "App",
    "Bound",
    "Call",
    "Chain",
    "Client",
    "Context",
    "Dropped",
    "DuetimeError",
    "EntityRef",
    "EntityType",
    "Failure",
    "Flow",
    "Group",
    "Handle",
    "Intent",
    "Limit",
    "LogHandler",
    "Middleware",
    "NewCall",
    "Options",
    "Parent",
    "Planned",
    "Reject",
    "Retry",
    "RetryAfter",
    "Run",
    "Schedule",
    "Snooze",
    "SoftTimeout",
    "Status",
    "Task",
    "Tier",
    "Transition",
    "Unique",
    "Why",
    "current",
    "progress",
]
