"""Schedules of an app: rules of functions, and all registered schedules.

Schedules are registered at startup: a new one is created, a changed one replaces the old one. A schedule that
is no longer in the program is not deleted, because another program may own it: it is reported in the log and
in `app.orphans`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from msgspec import Struct

from duetime.client.app.backend import Backend
from duetime.client.app.call import Call
from duetime.client.app.options import RuleFields
from duetime.client.app.policies import choice
from duetime.client.app.task import P, Planned, R, Task
from duetime.client.app.times import Delay, Moment, delay_ms, moment_ms
from duetime.errors import InvalidField
from duetime.limits import SCHEDULE_ID_CHARS_MAX
from duetime.protocol.schedule import Misfire, Overlap
from duetime.protocol.schedule import Schedule as StoredRule
from duetime.timefmt import moment_of
from duetime.wire.intent import Intent
from duetime.wire.schedule import Backfill, Schedule

if TYPE_CHECKING:
    from datetime import datetime

    from duetime.client.app.app import App

T = TypeVar("T")

# The owner of schedules that a program registers.
SOURCE = "app"
_logger = logging.getLogger("duetime")


class Recurrence(RuleFields, total=False):
    """The options of `@app.cron` and `@app.every`: a rule, and the arguments of the function."""

    args: Sequence[object]
    kwargs: Mapping[str, object]


class RuleDecorator(Protocol):
    """Decorates a task, or a function (which becomes a task), with a rule. Keeps the types."""

    @overload
    def __call__(self, function: Task[P, R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Any, /) -> Any: ...


class Rule(Struct, frozen=True, kw_only=True):
    """A rule, with its policies for overlapping and missed ticks."""

    id: str
    cron: str = ""
    every: Delay | None = None
    zone: str = "UTC"
    jitter: Delay = 0
    start: Moment | None = None
    end: Moment | None = None
    overlap: str = "ALLOW"
    misfire: str = "ONCE"
    catch_up: int = 1
    skip: Sequence[str | date] = ()

    def schedule(
        self, task: Planned[..., Any], args: Sequence[object], kwargs: Mapping[str, object], source: str
    ) -> StoredRule:
        """The schedule of a function with these arguments, by this rule."""
        return StoredRule(
            id=self.id,
            terms=task.terms(args, kwargs),
            payload=task.payload(args, kwargs),
            cron=self.cron,
            every_ms=0 if self.every is None else delay_ms(self.every),
            zone=self.zone,
            jitter_ms=delay_ms(self.jitter),
            start_ms=0 if self.start is None else moment_ms(self.start),
            end_ms=0 if self.end is None else moment_ms(self.end),
            overlap=choice(Overlap, self.overlap, "overlap"),
            misfire=choice(Misfire, self.misfire, "misfire"),
            catch_up=self.catch_up,
            source=source,
            skip=tuple(dict.fromkeys(str(each) for each in self.skip)),
        )


class AppSchedules:
    """`app.schedules`: all registered schedules, of this program and of others."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._rules: dict[str, tuple[Rule, Planned[..., Any], Sequence[object], Mapping[str, object]]] = {}
        self.orphans: tuple[str, ...] = ()
        """Schedules that a program registered and that are no longer in it, since the last start."""

    def decorator(self, fields: dict[str, Any]) -> RuleDecorator:
        """A decorator that registers a schedule for its function when the app starts."""
        args, kwargs = fields.pop("args", ()), fields.pop("kwargs", None) or {}

        def register(function: Any, /) -> Any:
            task = function if isinstance(function, Task) else self._app.task(function)
            self.add(task, args, kwargs, **fields)
            return task

        return register

    def add(
        self,
        task: Planned[..., Any],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        **fields: Unpack[RuleFields],
    ) -> None:
        """Register a schedule for a function when the app starts."""
        rule = _rule({"id": id_of(task.name), **fields})
        rule.schedule(task, args, kwargs, SOURCE)  # an error is raised where the rule is written
        if rule.id in self._rules:
            raise InvalidField(f"Two schedules have the id {rule.id!r}.", hint="Give one of them an id.")
        self._rules[rule.id] = (rule, task, args, kwargs)

    async def register(self, delete_orphans: bool) -> None:
        """Register the schedules of the program; report or delete those that are no longer in it."""
        backend, remote = self._app.backend, self._app.remote
        for rule, task, args, kwargs in self._rules.values():
            await backend.put_schedule(rule.schedule(task, args, kwargs, self.source))
        if remote and self.source == SOURCE:
            # Other programs without a name may have registered them: they are only reported.
            kept = await backend.schedules()
            self.orphans = tuple(
                each.id for each in kept if each.source == SOURCE and each.id not in self._rules
            )
        else:
            found = await backend.own_schedules(self.source, list(self._rules), delete_orphans)
            self.orphans = () if delete_orphans else tuple(found)
            if delete_orphans and found:
                _logger.warning("Deleted the schedules %s: the program does not have them.", ", ".join(found))
        others = remote and self._app.name is None
        doubt = ", or belongs to another program: see App(name=...)" if others else ""
        for id in self.orphans:
            _logger.warning(
                "The schedule %r is no longer in the program but still exists%s; "
                "delete it with app.schedules.delete.",
                id,
                doubt,
            )

    @property
    def source(self) -> str:
        """The source of the schedules that this program registers."""
        return SOURCE if self._app.name is None else f"{SOURCE}:{self._app.name}"

    def check_named(self) -> None:
        """Whether this program may delete its orphans."""
        if self._app.remote and self._app.name is None:
            raise InvalidField(
                "Only a program with a name can delete its orphans on a server: others may own them.",
                hint='Write App(url, name="shop").',
            )

    def put(
        self,
        task: Task[..., Any],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **rule: Unpack[RuleFields],
    ) -> Call[Schedule]:
        """Create a schedule for a function (`cron` or `every`), or change its rule. See `Rule`."""
        schedule = _rule({"id": id_of(task.name), **rule}).schedule(task, args, kwargs or {}, "")
        return self._call(lambda backend: backend.put_schedule(schedule))

    def list(self) -> Call[Sequence[Schedule]]:
        """All schedules, by id."""
        return self._call(lambda backend: backend.schedules())

    def get(self, id: str) -> Call[Schedule]:
        return self._call(lambda backend: backend.schedule(id))

    def pause(self, id: str) -> Call[Schedule]:
        """Pause it: no ticks until it is resumed."""
        return self._call(lambda backend: backend.pause_schedule(id))

    def resume(self, id: str) -> Call[Schedule]:
        """Resume it. Ticks of the pause are skipped."""
        return self._call(lambda backend: backend.resume_schedule(id))

    def trigger(self, id: str) -> Call[Intent]:
        """Create an extra intent of it now."""
        return self._call(lambda backend: backend.trigger_schedule(id))

    def backfill(self, id: str, since: Moment, until: Moment) -> Call[Backfill]:
        """Create the intents of past ticks that have none, from `since` up to `until`: at most 1,000.

        They have the ids of the ticks, so the same call again creates nothing while they are kept.
        """
        from_ms, to_ms = moment_ms(since), moment_ms(until)
        return self._call(lambda backend: backend.backfill(id, from_ms, to_ms))

    def delete_orphans(self) -> Call[Sequence[str]]:
        """Delete the schedules that this program registered and no longer has. Returns their ids."""

        async def deleted(backend: Backend) -> Sequence[str]:
            self.check_named()
            gone = await backend.own_schedules(self.source, list(self._rules), True)
            self.orphans = ()
            return gone

        return self._call(deleted)

    def next(self, id: str, count: int = 5) -> Call[Sequence[datetime]]:
        """The next ticks."""

        async def moments(backend: Backend) -> Sequence[datetime]:
            return [moment_of(time_ms) for time_ms in await backend.next_ticks(id, count)]

        return self._call(moments)

    def delete(self, id: str) -> Call[Schedule]:
        """Delete it. Its existing intents are kept."""
        return self._call(lambda backend: backend.drop_schedule(id))

    def _call(self, ask: Callable[[Backend], Coroutine[Any, Any, T]]) -> Call[T]:
        async def asked() -> T:
            return await ask(self._app.backend)

        return self._app.call(asked())


def id_of(name: str) -> str:
    """The id of a schedule, from the name of its function."""
    return re.sub(r"[^A-Za-z0-9_.:-]+", "-", name)[-SCHEDULE_ID_CHARS_MAX:]


def _rule(fields: dict[str, Any]) -> Rule:
    unknown = fields.keys() - set(Rule.__struct_fields__)
    if unknown:
        names = ", ".join(Rule.__struct_fields__)
        raise InvalidField(f"There is no option {sorted(unknown)[0]!r}.", hint=f"Options are: {names}.")
    if bool(fields.get("cron")) == (fields.get("every") is not None):
        raise InvalidField("A schedule has exactly one of cron and every.")
    return Rule(**fields)
