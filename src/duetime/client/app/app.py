"""The App: users register functions on it and schedule intents through it.

Async and plain programs use the same implementation: everything is a coroutine on one event loop. `async with
app` uses the caller's event loop; `with app` starts one in a separate thread. Calls return a `Call`, to be
awaited or waited for.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from duetime.client.app.backend import Backend
from duetime.client.app.background import Background
from duetime.client.app.call import Call, check_process
from duetime.client.app.control import Context, current
from duetime.client.app.dead_letters import AppDeadLetters, many
from duetime.client.app.entity import EntityType
from duetime.client.app.filters import filter_of
from duetime.client.app.flow import AnyFlow, Bound, Flow, OpenBound
from duetime.client.app.groups import Chain, Group, Groups
from duetime.client.app.habits import APPS, missing
from duetime.client.app.handle import Handle
from duetime.client.app.ids import Ids
from duetime.client.app.listeners import FAILURES, Listener, Listeners
from duetime.client.app.middleware import Middleware, Middlewares, added
from duetime.client.app.options import OptionFields
from duetime.client.app.payload import Signature, encode
from duetime.client.app.plan import Options, Plan, make_terms
from duetime.client.app.recurring import AppSchedules, Recurrence, RuleDecorator
from duetime.client.app.task import P, R, Task
from duetime.client.app.times import Delay, Moment
from duetime.client.execution.functions import Functions
from duetime.client.execution.run_policy import Decision, ErrorClasses, run_policy
from duetime.client.http.address import meant_url
from duetime.client.http.requests import FilterFields
from duetime.client.remote.replies import id_of
from duetime.errors import BadConfig, Closed, InvalidField, UnknownTask
from duetime.limits import PROGRAM_CHARS_MAX
from duetime.protocol.command import Cancel, Command, FireNow, Patch, Pause, Resize, Resume, Revive, SetLane
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Item
from duetime.protocol.terms import Bare, Entity, Terms
from duetime.protocol.terms import Task as TaskTarget
from duetime.protocol.view import Overview
from duetime.wire.event import Transition
from duetime.wire.history import Parent
from duetime.wire.intent import Intent, Status

if TYPE_CHECKING:
    from duetime.clock import Clock
    from duetime.config import Config

T = TypeVar("T")
# A URL with a mistake at its beginning, such as http:/host or //host. It would be taken for a folder.
_ALMOST_URL = re.compile(r"(https?|grpc|unix)(:(?!//)|//)|//", re.IGNORECASE)
L = TypeVar("L", bound=Listener)
DefaultHandler = Callable[[Any, Context], Any]
# The commands that callers may use; the others are internal.
ASKABLE = (Cancel, FireNow, Patch, Pause, Resize, Resume, Revive, SetLane)


class _TaskDecorator(Protocol):
    """`@app.task(...)` with options: keeps the types of the decorated function."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Any, /) -> Any: ...


class App:
    """Durable work in a data folder, in `":memory:"`, or on a server (`"http://localhost:7928"`).

    With a server, this process only schedules and reads; workers run the functions. See the guide.
    """

    any_queue = False
    """Whether a worker may serve queues without functions."""

    def __init__(
        self,
        where: str | os.PathLike[str] = "duetime-data",
        *,
        token: str | None = None,
        config: Config | None = None,
        clock: Clock | None = None,
        metrics: bool = False,
        name: str | None = None,
        delete_orphans: bool = False,
    ) -> None:
        """`token`: the token for a server (default: DUETIME_TOKEN).

        `metrics`: count for `metrics()`; this takes CPU. A server always counts.
        `name`: the name of the program; a server knows its schedules by it.
        `delete_orphans`: at startup, delete schedules that it registered and no longer has."""
        if name is not None and not (1 <= len(name) <= PROGRAM_CHARS_MAX and name.isprintable()):
            raise InvalidField(f"name={name!r} must have 1 to {PROGRAM_CHARS_MAX} characters.")
        self._counts = metrics
        self.name = name
        self._delete_orphans = delete_orphans
        self._observers: list[tuple[Callable[[Transition], None], tuple[Status, ...]]] = []
        self.listeners = Listeners()
        self.schedules = AppSchedules(self)
        self.dead_letters = AppDeadLetters(self)
        self._groups = Groups(self)
        self.functions = Functions()
        self.functions.reports.parents = lambda id: self.handle(id).parents()
        self.rewire(where, token=token, config=config, clock=clock)
        self._ids = Ids()
        self.new_id = self._ids.new
        self._loop: asyncio.AbstractEventLoop | None = None
        self._backend: Backend | None = None
        self._pid = os.getpid()
        self._background: Background | None = None

    def rewire(
        self,
        where: str | os.PathLike[str],
        *,
        token: str | None = None,
        config: Config | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Use another folder, `":memory:"` or server, with the same functions. For tests, mainly."""
        from duetime import (
            wiring,
        )  # imported when an app is created, so that importing this module loads no engine

        if getattr(self, "_loop", None) is not None:
            raise InvalidField("A started app cannot change its address.", hint="Stop the app first.")
        if isinstance(where, str):
            _check_place(where)
        self.where = os.fspath(where)
        self.config = config
        """The configuration as given; None: the defaults."""
        self._wired = wiring.wire(self.where, self.functions, config, clock, token, self._counts)
        self.functions.bounds = self._wired
        self.default_tier = self._wired.default_tier
        self.payload_bytes_max = self._wired.payload_bytes_max

    if not TYPE_CHECKING:  # a type checker finds a wrong name itself
        __getattr__ = missing("An App", APPS)

    # Registering.

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        cpu_bound: bool = False,
        on_error: Decision | None = None,
        retry_on: ErrorClasses | None = None,
        give_up_on: ErrorClasses | None = None,
        soft_timeout: Delay | None = None,
        **options: Unpack[OptionFields],
    ) -> _TaskDecorator: ...
    def task(  # type: ignore[misc]  # mypy does not match **options of an overload
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        cpu_bound: bool = False,
        on_error: Decision | None = None,
        retry_on: ErrorClasses | None = None,
        give_up_on: ErrorClasses | None = None,
        soft_timeout: Delay | None = None,
        **options: Unpack[OptionFields],
    ) -> Any:
        """Register a task: `async def` on the event loop, `def` in a thread, `cpu_bound` in a process."""
        defaults = Options().merged(**options)
        # Errors are raised where the options are written.
        terms = make_terms(TaskTarget(name or "task", queue), defaults, self.default_tier)
        policy = run_policy(on_error, retry_on, give_up_on, soft_timeout, terms.timeout_ms)
        if function is not None and not inspect.isroutine(function):
            raise InvalidField(f"{function!r} is not a function.", hint="Write @app.task(name=...).")

        def register(function: Callable[..., object]) -> Task[..., Any]:
            title = name or f"{_module_of(function)}.{function.__qualname__}"
            if title in self.functions.tasks:
                raise InvalidField(f"Two functions are named {title!r}.", hint="Give one of them a name.")
            signature = Signature(function, title)
            task: Task[..., Any] = Task(self, function, TaskTarget(title, queue), signature, defaults, title)
            self.functions.add(title, queue, function, signature, policy, cpu_bound)
            return task

        return register if function is None else register(function)

    @overload
    def entity(
        self,
        cls: type,
        /,
        *,
        name: str | None = None,
        on_error: Decision | None = None,
        retry_on: ErrorClasses | None = None,
        give_up_on: ErrorClasses | None = None,
        soft_timeout: Delay | None = None,
        **options: Unpack[OptionFields],
    ) -> EntityType: ...
    @overload
    def entity(
        self,
        *,
        name: str | None = None,
        on_error: Decision | None = None,
        retry_on: ErrorClasses | None = None,
        give_up_on: ErrorClasses | None = None,
        soft_timeout: Delay | None = None,
        **options: Unpack[OptionFields],
    ) -> Callable[[type], EntityType]: ...
    def entity(  # type: ignore[misc]  # mypy does not match **options of an overload
        self,
        cls: Any = None,
        /,
        *,
        name: str | None = None,
        on_error: Decision | None = None,
        retry_on: ErrorClasses | None = None,
        give_up_on: ErrorClasses | None = None,
        soft_timeout: Delay | None = None,
        **options: Unpack[OptionFields],
    ) -> Any:
        """Register a class as an entity type. An instance is created with the id for each message."""
        defaults = Options().merged(**options)
        terms = make_terms(Entity(name or "entity", "id", "message"), defaults, self.default_tier)
        policy = run_policy(on_error, retry_on, give_up_on, soft_timeout, terms.timeout_ms)

        def register(cls: type) -> EntityType:
            title = name or cls.__name__
            if title in self.functions.entities:
                raise InvalidField(f"Two entity types are named {title!r}.", hint="Give one of them a name.")
            entity = self.functions.entities[title] = EntityType(self, cls, title, defaults, policy)
            return entity

        return register if cls is None else register(cls)

    def default(self, function: DefaultHandler) -> DefaultHandler:
        """Register the handler of bare intents. It is called with the payload and the context."""
        self.functions.set_bare(function)
        return function

    def observe(self, observer: Callable[[Transition], None]) -> Callable[[Transition], None]:
        """Call a function for every transition. It must be fast: it runs between two batches."""
        self._observe(observer, ())
        return observer

    def on_failure(self, function: L) -> L:
        """Call a function with the transition after every failed attempt, whether a retry follows or not.

        It may be a coroutine function or a plain one, and it may be slow. With a server, every process that
        has started the app calls it.
        """
        if self.listeners.on_failure(function):
            self._observe(self.listeners.see_failures, FAILURES)
        return function

    def on_dead_letter(self, function: L) -> L:
        """Call a function with the transition of every intent that becomes a dead letter, as above."""
        if self.listeners.on_dead_letter(function):
            self._observe(self.listeners.see_dead_letters, (Status.DEAD_LETTERED,))
        return function

    def _observe(self, observer: Callable[[Transition], None], statuses: tuple[Status, ...]) -> None:
        self._observers.append((observer, statuses))
        if self._loop is not None:
            self.backend.observe(observer, statuses)

    def add_middleware(self, *middleware: Middleware) -> None:
        """Add code around every scheduled call and every run of a function, after what was added before."""
        for each in middleware:
            self.middleware.add(each)

    def cron(self, rule: str, **options: Unpack[Recurrence]) -> RuleDecorator:
        """Run a task by a cron rule: `@app.cron("0 9 * * MON-FRI", zone="Europe/Paris")`."""
        return self.schedules.decorator({**options, "cron": rule})

    def every(self, delay: Delay, **options: Unpack[Recurrence]) -> RuleDecorator:
        """Run a task at an interval: `@app.every("5m")`, counted from `start` or from 1970."""
        return self.schedules.decorator({**options, "every": delay})

    # Scheduling of chains, groups and bare intents. Tasks have their own methods.

    @overload
    def chain(self, flow: Flow[R], /, *, on_failure: AnyFlow | None = None) -> Call[Chain[R]]: ...
    @overload
    def chain(
        self, *steps: AnyFlow | Sequence[AnyFlow], on_failure: AnyFlow | None = None
    ) -> Call[Chain[Any]]: ...
    def chain(self, *steps: Any, on_failure: AnyFlow | None = None) -> Call[Chain[Any]]:
        """Run calls one by one, each after the one before succeeded: `app.chain(a.bind(1), b.bind())`.

        A call without its first argument gets the result of the step before. A list of calls is a group. If a
        step fails, `on_failure` runs.
        """
        return self._groups.chain(steps, on_failure)

    def group(
        self,
        members: Iterable[Flow[Any]],
        then: Bound[R] | OpenBound[..., R],
        *,
        on: str = "SUCCESS",
        id: str | None = None,
        on_failure: AnyFlow | None = None,
    ) -> Call[Group[R]]:
        """Run all members, and `then` once after all have succeeded; with `on="END"`, after all have ended.

        Members are calls or flows. If `then` lacks its first argument, it gets the list of results. With your
        own `id` the call can be repeated: existing members are not created again.
        """
        return self._groups.group(members, then, on, id, on_failure)

    def parents(self) -> Call[list[Parent]]:
        """In a running function: its dependencies or the group's members with their results, in order."""
        return self.handle(current().intent_id).parents()

    def schedule(self, payload: object = None, **options: Unpack[OptionFields]) -> Call[Handle[Any]]:
        """Schedule a bare intent: the default handler gets the payload when it is due."""
        return self.call(self._schedule_bare(payload, Options().merged(**options)))

    def handle(self, id: str) -> Handle[Any]:
        """A handle for the intent with this id."""
        return Handle(self, id)

    def find(
        self,
        status: str | Iterable[str] | None = None,
        queue: str | None = None,
        limit: int = 100,
        before: str | None = None,
        *,
        task: str | None = None,
        entity: str | None = None,
        tags: Mapping[str, str] | None = None,
        tier: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> Call[list[Intent]]:
        """Intents that match all filters, newest first. `since` and `until` limit the time of execution.

        For the next page, `before` is the id of the last one. An empty page means that there are no more.
        """
        filter = filter_of(
            {
                "status": status, "queue": queue, "task": task, "entity": entity, "tags": tags, "tier": tier,
                "since": since, "until": until,
            }
        )  # fmt: skip
        if limit < 1:
            raise InvalidField(f"limit={limit!r} must be at least 1.")
        return self.call(self._page(filter, before, limit))

    def cancel(self, **filter: Unpack[FilterFields]) -> Call[int]:
        """Cancel all intents that match the filter and have not ended, even while they run; returns how many.

        `app.cancel(tags={"order": "7"})`. For one intent, use its handle.
        """
        return self.call(many(self, "cancel", filter_of(filter)))

    @property
    def orphans(self) -> tuple[str, ...]:
        """Schedules that a program registered and that are no longer in it, since the last start."""
        return self.schedules.orphans

    def overview(self) -> Call[Overview]:
        """Figures of the engine."""
        return self.call(self._overview())

    def metrics(self) -> Call[dict[str, Any]]:
        """The metrics, by name: those of the reference, as plain values. Needs `App(..., metrics=True)`, or a
        server."""
        return self.call(self._metrics())

    def ask(self, command: Command) -> Call[Any]:
        """Run a command of the protocol: pause, resume, resize, patch ..."""
        if not isinstance(command, ASKABLE):
            names = ", ".join(kind.__name__ for kind in ASKABLE)
            raise InvalidField(
                f"{type(command).__name__} is an internal command.", hint=f"Use one of {names}."
            )
        return self.call(self._ask(command))

    # Lifecycle.

    async def start(self) -> App:
        """Open the folder, recover, and start. Functions must be registered before.

        An app on a server starts even if the server is down: calls raise `Unreachable` until it is up.
        """
        if self._loop is not None:
            raise InvalidField("The app is already started.", hint="Start the app once and share it.")
        if self._delete_orphans:
            self.schedules.check_named()
        self._loop, self._pid = asyncio.get_running_loop(), os.getpid()
        try:
            # Created now, so that a program that only imports an app touches no folder.
            self._backend = self._wired.make_backend()
            for observer, statuses in self._observers:
                self.backend.observe(observer, statuses)
            await self.backend.start()
            self._wired.listen(self.backend)
            try:
                await self.backend.reach(partial(self.schedules.register, self._delete_orphans))
            except BaseException:
                await self.backend.close(0)
                raise
        except BaseException:
            self._loop = None
            raise
        return self

    async def stop(self, drain_ms: int | None = None) -> None:
        """Finish running functions within the time limit, write everything to disk, release the folder."""
        if self._loop is None:
            return
        try:
            await self.backend.close(drain_ms)
        except asyncio.CancelledError:
            raise  # it continues; a second call waits for it
        except BaseException:
            await self._ended()
            raise
        await self._ended()

    async def _ended(self) -> None:
        self._loop = None
        self.functions.shutdown()
        await self.listeners.stop()

    async def __aenter__(self) -> App:
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __enter__(self) -> App:
        if self._loop is not None:
            raise InvalidField("The app is already started.", hint="Start the app once and share it.")
        background = Background("duetime")
        background.start(self.start)
        self._background = background
        return self

    def __exit__(self, *exc: object) -> None:
        background, self._background = self._background, None
        if background is not None and self._pid == os.getpid():
            background.stop(self.stop())

    # For other modules of the client.

    @property
    def remote(self) -> bool:
        """Whether a server stores the intents, and its workers run the functions."""
        return self._wired.remote

    @property
    def backend(self) -> Backend:
        """The backend, after the first start: an engine in this process, or a server."""
        if self._backend is None:
            raise Closed("The app is not started.")
        return self._backend

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the started app."""
        return self._loop

    @property
    def middleware(self) -> Middlewares:
        """The middleware of the app."""
        return self.functions.middleware

    def queues(self) -> list[str]:
        """The queues of the functions."""
        return sorted(set(self.functions.queues.values()))

    def call(self, coroutine: Coroutine[Any, Any, T]) -> Call[T]:
        return Call(coroutine, self._running_loop)

    async def submit_many(self, terms: Terms, items: Iterable[Item]) -> list[str]:
        replies = await self.backend.submit((terms,), items, terms.ack)
        return [id_of(reply) for reply in replies]

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise Closed("The app is not started.")
        check_process(self._pid)
        return self._loop

    async def _schedule_bare(self, payload: object, options: Options) -> Handle[Any]:
        if self.functions.bare is None and not self._wired.remote:  # a server reports it itself
            raise UnknownTask("There is no default handler.", hint="Register one with @app.default.")
        terms = make_terms(Bare(), options, self.default_tier)
        plan = Plan(terms, options, self.payload_bytes_max)
        now_ms = self.backend.now_ms()
        fresh = options.id is None
        id = options.id or self.new_id(now_ms)
        if not self.middleware.schedules:
            body = b"" if payload is None else encode(payload, "The payload")
            item = plan.item(id, fresh, now_ms, body)
            return Handle(self, id_of(await self.backend.submit_one(terms, item, terms.ack)))
        call = plan.new_call(id, now_ms, (payload,), {})
        async with self.middleware.around_schedule([call]):
            (payload,) = call.args
            body = b"" if payload is None else encode(payload, "The payload")
            item = plan.item(id, fresh, now_ms, body, added(call))
            call.intent_id = id_of(await self.backend.submit_one(terms, item, terms.ack))
        return Handle(self, call.intent_id)

    async def _page(self, filter: Filter, before: str | None, limit: int) -> list[Intent]:
        return await self.backend.page(filter, before, limit)

    async def _overview(self) -> Overview:
        return await self.backend.overview()

    async def _metrics(self) -> dict[str, Any]:
        return await self._wired.metrics(self.backend)

    async def _ask(self, command: Command) -> object:
        return await self.backend.ask(command)


def _check_place(where: str) -> None:
    """Refuse a text that is probably meant as the URL of a server, or as nothing at all."""
    if not where.strip():
        raise BadConfig("The app has no address.", hint='Give a folder, ":memory:" or the URL of a server.')
    meant = "http://localhost:7928" if _ALMOST_URL.match(where) else meant_url(where)
    if meant is not None:
        raise BadConfig(
            f"{where!r} is neither the URL of a server nor clearly a folder.",
            hint=f"For a server, write {meant}; for a folder of this name, write ./{where}.",
        )


def _module_of(function: Callable[..., object]) -> str:
    """The module of the function, by the name for imports, even if it runs as a script."""
    module = function.__module__
    if module != "__main__":
        return module
    file = getattr(sys.modules["__main__"], "__file__", None)
    return Path(file).stem if file else module
