"""The interface of Celery on Duetime. A project moves by changing its imports.

from duetime.contrib.celery import Celery, chain, chord, group, shared_task

The submodules have Celery's names: `schedules`, `result`, `exceptions`, `signals`, `states`, `utils.log`.
What is missing is refused by name, with what to use instead.
"""

from __future__ import annotations

from duetime.contrib.celery.app import Celery, shared_task
from duetime.contrib.celery.canvas import Signature, chain, chord, group, maybe_signature, signature, subtask
from duetime.contrib.celery.result import AsyncResult, GroupResult
from duetime.contrib.celery.state import Proxy
from duetime.contrib.celery.state import current_app as _current_app
from duetime.contrib.celery.state import current_task as _current_task
from duetime.contrib.celery.task import Task
from duetime.contrib.celery.utils import uuid

current_app = Proxy(_current_app)
current_task = Proxy(_current_task)

__all__ = [
    "AsyncResult",
    "Celery",
    "GroupResult",
    "Signature",
    "Task",
    "chain",
    "chord",
    "current_app",
    "current_task",
    "group",
    "maybe_signature",
    "shared_task",
    "signature",
    "subtask",
    "uuid",
]
