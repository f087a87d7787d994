"""The filter options of commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from duetime.cli.args import time_args
from duetime.cli.args.options import option as described
from duetime.cli.args.options import tags
from duetime.cli.args.parameters import Command, option, replaced
from duetime.client.http.requests import FilterFields
from duetime.clock import SystemClock
from duetime.timefmt import moment_of

WHICH = "Filters"

StatusOption = Annotated[
    list[str] | None,
    described("--status", "-s", shown="STATUS", said="Filter by status; may be repeated.", group=WHICH),
]
TierOption = Annotated[str | None, described("--tier", shown="TIER", said="Filter by tier.", group=WHICH)]
QueueOption = Annotated[
    str | None, described("--queue", shown="QUEUE", said="Filter by task queue.", group=WHICH)
]
TaskOption = Annotated[
    str | None, described("--task", shown="NAME", said="Filter by task name.", group=WHICH)
]
EntityOption = Annotated[
    str | None,
    described("--entity", shown="TYPE|TYPE/ID", said="Filter by entity type, or by one entity.", group=WHICH),
]
TagOption = Annotated[
    list[str] | None,
    described("--tag", shown="K=V", said="Filter by tag; may be repeated.", group=WHICH),
]
FromOption = Annotated[
    str | None, described("--from", shown="TIME", said="Due at or after this time.", group=WHICH)
]
ToOption = Annotated[str | None, described("--to", shown="TIME", said="Due before this time.", group=WHICH)]


_OPTIONS: Final = {
    "status": StatusOption,
    "tier": TierOption,
    "queue": QueueOption,
    "task": TaskOption,
    "entity": EntityOption,
    "tag": TagOption,
    "since": FromOption,
    "until": ToOption,
}


def with_filter(*without: str) -> Callable[[Command], Command]:
    """Gives a command the options of a filter, but these; it gets the filter as `filter`."""
    options = [option(name, kind) for name, kind in _OPTIONS.items() if name not in without]
    return lambda command: replaced(command, "filter", options, lambda values: made(**values))


def made(
    status: Sequence[str] | None = None,
    tier: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    entity: str | None = None,
    tag: Sequence[str] | None = None,
    since: str | None = None,
    until: str | None = None,
) -> FilterFields:
    """The filter of these options."""
    filter: FilterFields = {}
    if status:
        filter["status"] = ",".join(each.upper().replace("-", "_") for each in status)
    if tier is not None:
        filter["tier"] = tier
    if queue is not None:
        filter["queue"] = queue
    if task is not None:
        filter["task"] = task
    if entity is not None:
        filter["entity"] = entity
    if tag:
        filter["tags"] = tags(tag)
    if since is not None:
        filter["since"] = moment_of(time_args.moment(since, SystemClock().now_ms()))
    if until is not None:
        filter["until"] = moment_of(time_args.moment(until, SystemClock().now_ms()))
    return filter
