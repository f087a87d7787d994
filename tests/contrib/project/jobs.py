"""Its tasks."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group

from duetime import Reject

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


@task
def add(a: int, b: int) -> int:
    return a + b


@task(queue_name="mail", priority=10)
async def greet(name: str, *, loudly: bool = False) -> str:
    return f"hello {name}{'!' if loudly else ''}"


@task(takes_context=True)
def found(context: Any, name: str) -> list[Any]:
    """What a worker sees of the database, and of itself."""
    return [Group.objects.filter(name=name).count(), context.attempt, context.task_result.id]


@task
def broken() -> None:
    raise Reject("never works")


@task
def wrong() -> None:
    raise ValueError("it is wrong")


@task
def leaves() -> None:
    raise SystemExit("This task leaves")


@task
async def leaves_the_loop() -> None:
    raise SystemExit("This task leaves, too")


@task
def strange() -> object:
    return object()


@task(takes_context=True)
def enqueued(context: Any) -> str:
    """When it was enqueued, as a running task sees it."""
    return str(context.task_result.enqueued_at.isoformat())
