"""`Celery`: an App of Duetime with the interface of a Celery app.

Tasks are registered with the engine when the app is finalized (at its first use, or when a worker loads it),
so that settings which are written after the decorators count. The app starts itself in a thread of its own at
the first call.
"""

from __future__ import annotations

import asyncio
import atexit
import fnmatch
import importlib
import importlib.util
import logging
import os
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from duetime import config
from duetime.client.app.app import App
from duetime.client.app.payload import Signature as Arguments
from duetime.client.app.plan import Options
from duetime.client.app.policies import Retry
from duetime.client.app.recurring import id_of as schedule_id
from duetime.client.app.task import Planned
from duetime.clock import SystemClock
from duetime.contrib.celery import signals
from duetime.contrib.celery import task as tasks
from duetime.contrib.celery.canvas import Signature, chain, chord, group, maybe_signature, signature
from duetime.contrib.celery.conf import Settings, from_environment
from duetime.contrib.celery.control import Control
from duetime.contrib.celery.exceptions import NotRegistered, refuse
from duetime.contrib.celery.result import AsyncResult, GroupResult
from duetime.contrib.celery.schedules import rule_of
from duetime.contrib.celery.state import apps, current_task, set_current_app
from duetime.contrib.celery.task import Task as CeleryTask
from duetime.contrib.celery.values import pack
from duetime.limits import ATTEMPTS_MAX, CELERY_PRIORITY_S
from duetime.protocol.terms import Task as TaskTarget
from duetime.timefmt import moment_of
from duetime.wire.intent import Limit
from duetime.wiring import MEMORY

_logger = logging.getLogger("duetime.celery")

# After a lost worker, the task runs again; the task itself decides about its retries.
_RETRY = Retry(max_attempts=ATTEMPTS_MAX, initial_delay="1s")
_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/([smh]))?")

_shared: list[tuple[Callable[..., Any], Mapping[str, Any], str]] = []

# Options of one call, for `apply_async`.
_CALL_OPTIONS = frozenset({
    "task_id", "countdown", "eta", "expires", "queue", "priority", "headers", "link", "link_error",
    "routing_key", "ignore_result", "serializer", "retry", "retry_policy", "time_limit", "add_to_parent",
    "root_id", "parent_id", "argsrepr", "kwargsrepr",
})  # fmt: skip
_REFUSED_CALL_OPTIONS = {
    "exchange": "Use queue=.",
    "connection": "Omit it: the app has its connection.",
    "producer": "Omit it: the app has its connection.",
    "soft_time_limit": "Use soft_time_limit= of the task.",
    "compression": "Omit it.",
    "shadow": "Give the task a name.",
    "chord": "Use chord(header, body).",
    "group_id": "Use group(...).",
    "reply_to": "Omit it.",
    "stamped_headers": "Use headers=.",
    "replaced_task_nesting": "Omit it.",
}


def anything(*args: Any, **kwargs: Any) -> Any:
    """Accepts any arguments: they are checked with the function of the task."""


class Registry(dict[str, CeleryTask]):
    """`app.tasks`: the tasks by name."""

    def __missing__(self, name: str) -> CeleryTask:
        raise NotRegistered(name)


class Celery(App):
    """A Celery app on Duetime. `duetime worker module:app` serves it."""

    any_queue = True

    def __init__(
        self,
        main: str | None = None,
        *,
        broker: str | None = None,
        backend: str | None = None,
        include: Sequence[str] | str | None = None,
        config_source: Any = None,
        namespace: str | None = None,
        changes: Mapping[str, Any] | None = None,
        set_as_current: bool = True,
        task_cls: type[CeleryTask] | None = None,
        **kwargs: Any,
    ) -> None:
        """`broker`: a server of Duetime (`http://...`), a folder, or `memory://`. The address of another
        broker is replaced by DUETIME_URL (default: http://localhost:7928)."""
        for name, value in kwargs.items():
            if value is not None and name not in ("autofinalize", "strict_typing"):
                raise refuse(f"Celery({name}=)", "Omit it.")
        self.main = main
        self.task_class: type[CeleryTask] = task_cls if task_cls is not None else CeleryTask
        self.conf = Settings(self._configure)
        self.control = Control(self)
        self.on_configure = signals.Signal("on_configure")
        self.on_after_configure = signals.Signal("on_after_configure")
        self.on_after_finalize = signals.Signal("on_after_finalize")
        self.finalized = False
        self._source: tuple[Any, str | None] | None = None
        self._tasks = Registry()
        self._waiting: list[CeleryTask] = []
        self._planned: dict[tuple[str, str], Planned[..., Any]] = {}
        self._discoveries: list[tuple[Any, str | None]] = []
        self._rewired = True
        self._finalizing = threading.RLock()
        self._connecting = threading.Lock()
        super().__init__(MEMORY)
        self._rewired = False
        given = {"broker_url": broker, "result_backend": backend, **(changes or {})}
        self.conf.update({name: value for name, value in given.items() if value is not None})
        if include:
            self.conf.include = [include] if isinstance(include, str) else list(include)
        if config_source is not None:
            self.config_from_object(config_source, namespace=namespace)
        if set_as_current:
            set_current_app(self)

    def __repr__(self) -> str:
        return f"<Celery {self.main or '__main__'}>"

    # Configuration.

    def config_from_object(
        self, obj: Any, silent: bool = False, force: bool = False, namespace: str | None = None
    ) -> None:
        """Read the settings from a module or an object, at the first use."""
        self._source = (obj, namespace)
        self.conf.__dict__["_configured"] = self._configure
        if force:
            self._configure()

    def config_from_envvar(self, variable_name: str, silent: bool = False, force: bool = False) -> bool:
        name = from_environment(variable_name, silent)
        if name:
            self.config_from_object(name, force=force)
        return bool(name)

    def autodiscover_tasks(
        self, packages: Any = None, related_name: str | None = "tasks", force: bool = False
    ) -> None:
        """Import `tasks` of these packages, or of the installed apps of Django, at the first use."""
        self._discoveries.append((packages, related_name))
        if force or self.finalized:
            self._discover()

    def set_current(self) -> None:
        set_current_app(self)

    set_default = set_current

    def now(self) -> datetime:
        now_ms = SystemClock().now_ms() if self._loop is None else self.backend.now_ms()
        return moment_of(now_ms).astimezone(self.timezone)

    @property
    def timezone(self) -> Any:
        return ZoneInfo(self.conf.timezone) if self.conf.timezone else UTC

    def aware(self, moment: datetime) -> datetime:
        """A time with a zone. A time without one is in UTC, or with `enable_utc=False` in the app's zone."""
        if moment.tzinfo is not None:
            return moment
        return moment.replace(tzinfo=UTC if self.conf.enable_utc else self.timezone)

    def _configure(self) -> None:
        source, self._source = self._source, None
        self.conf.__dict__.pop("_configured", None)
        if source is not None:
            self.on_configure.send(self)
            own = dict(self.conf.__dict__["_values"])
            self.conf.load(*source)
            self.conf.update(own)  # what the program wrote itself counts
        self.on_after_configure.send(self, source=self.conf)

    # Tasks.

    def task(self, *args: Any, **options: Any) -> Any:  # Celery's decorator
        """Register a function as a task: `@app.task`, `@app.task(bind=True, max_retries=5)`."""
        if len(args) > 1 or (args and not callable(args[0])):
            raise TypeError("@task() takes exactly one argument: the function.")

        def register(function: Callable[..., Any]) -> CeleryTask:
            name = options.get("name") or self.gen_task_name(function.__name__, function.__module__)
            if name in self._tasks:
                return self._tasks[name]
            return self._register(tasks.make(function, name, self, options))

        return register(args[0]) if args else register

    def register_task(self, task: Any, **options: Any) -> CeleryTask:
        """Register an instance (or a class) of Task with a `run` method."""
        made: CeleryTask = task() if isinstance(task, type) else task
        made.name = made.name or self.gen_task_name(type(made).__name__, type(made).__module__)
        made._app = self
        return self._tasks[made.name] if made.name in self._tasks else self._register(made)

    def gen_task_name(self, name: str, module: str) -> str:
        return f"{self.main if module == '__main__' and self.main else module}.{name}"

    @property
    def tasks(self) -> Registry:
        """All tasks, by name."""
        self.finalize()
        return self._tasks

    @property
    def Task(self) -> type[CeleryTask]:  # Celery's name
        return self.task_class

    def finalize(self, auto: bool = False) -> None:
        """Read the settings, import the modules of tasks, and register all tasks and schedules."""
        with self._finalizing:
            if self.finalized:
                return
            self.finalized = True
            try:
                self._finalize()
            except BaseException:
                self.finalized = False
                raise

    def _finalize(self) -> None:
        _ = self.conf.timezone  # reads the settings
        for name in (*self.conf.include, *self.conf.imports):
            importlib.import_module(name)
        self._discover()
        for function, options, name in _shared:
            self.adopt(function, options, name)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._plan(each)
        self.on_after_finalize.send(self)
        for name, entry in self.conf.beat_schedule.items():
            self._schedule_entry(name, entry)
        self.conf.report()
        self._find_place()

    def adopt(self, function: Callable[..., Any], options: Mapping[str, Any], name: str) -> None:
        """Register a shared task, unless the app has one of this name."""
        if name not in self._tasks:
            self._register(tasks.make(function, name, self, options))

    def _register(self, task: CeleryTask) -> CeleryTask:
        self._tasks[task.name] = task
        task.on_bound(self)
        if self.finalized:
            self._plan(task)
        else:
            self._waiting.append(task)
        return task

    def _plan(self, task: CeleryTask) -> None:
        """Register a task with the engine."""

        def run(*args: Any, **kwargs: Any) -> Any:
            return tasks.run_intent(task, args, kwargs)

        run.__name__ = run.__qualname__ = task.name.rpartition(".")[2]
        queue = task.queue or self._route(task.name) or self.conf.task_default_queue
        soft = task.soft_time_limit
        soft = soft if soft is not None else self.conf.task_soft_time_limit
        App.task(self, name=task.name, queue=queue, soft_timeout=soft, **self._options(task))(run)

    def _options(self, task: CeleryTask) -> Any:
        conf = self.conf
        options: dict[str, Any] = {"retry": _RETRY}
        limit = task.time_limit if task.time_limit is not None else conf.task_time_limit
        if limit is not None:
            options["timeout"] = limit
        priority = task.priority if task.priority is not None else conf.task_default_priority
        if priority:
            options["priority"] = CELERY_PRIORITY_S * priority
        rate = task.rate_limit if task.rate_limit is not None else conf.task_default_rate_limit
        if rate:
            options["limits"] = [Limit(key=f"celery:{task.name}", rate=_rate(rate))]
        kept = task.result_expires if task.result_expires is not None else conf.result_expires
        if kept:
            options["result_ttl"] = kept
        return options

    def ignores_result(self, task: CeleryTask) -> bool:
        return bool(self.conf.task_ignore_result if task.ignore_result is None else task.ignore_result)

    def _route(self, name: str) -> str | None:
        """The queue of a task by `task_routes`."""
        routes = self.conf.task_routes
        for route in routes if isinstance(routes, list | tuple) else [routes]:
            if callable(route) or isinstance(route, str):
                raise refuse("task_routes with a function", "Write a dict of names and queues.")
            for pattern, target in dict(route or {}).items():
                if fnmatch.fnmatchcase(name, pattern):
                    found = target if isinstance(target, str) else target.get("queue")
                    if found is None:
                        raise refuse(f"The route {target!r}", "Write {'queue': name}.")
                    return str(found)
        return None

    def _discover(self) -> None:
        discoveries, self._discoveries = self._discoveries, []
        for packages, related in discoveries:
            names = packages() if callable(packages) else packages
            if names is None:
                from django.apps import apps  # installed apps of the project, as Celery looks for them

                names = [each.name for each in apps.get_app_configs()]
            for package in names:
                name = f"{package}.{related}" if related else package
                importlib.import_module(package)
                if importlib.util.find_spec(name) is not None:
                    importlib.import_module(name)

    # Schedules.

    def add_periodic_task(
        self,
        schedule: Any,
        sig: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> str:
        """Add an entry to `beat_schedule`. Call it in `on_after_configure` or `on_after_finalize`."""
        if self._loop is not None:
            raise refuse("add_periodic_task after the start", "Use app.schedules.put(...).")
        found = maybe_signature(sig, self)
        key = name or repr(found)
        self.conf.beat_schedule[key] = {
            "task": found.task,
            "schedule": schedule,
            "args": (*found.args, *args),
            "kwargs": {**found.kwargs, **(kwargs or {})},
            "options": {**found.options, **options},
        }
        return key

    def _schedule_entry(self, name: str, entry: Mapping[str, Any]) -> None:
        unknown = entry.keys() - {"task", "schedule", "args", "kwargs", "options", "relative"}
        if unknown or entry.get("relative"):
            what = sorted(unknown)[0] if unknown else "relative"
            raise refuse(f"{what!r} in the entry {name!r} of beat_schedule", "Omit it.")
        planned = self.planned(entry["task"], entry.get("options") or {}, blocked=True)
        args, kwargs = self.packed(entry["task"], tuple(entry.get("args") or ()), entry.get("kwargs") or {})
        zone = self.conf.timezone or "UTC"
        self.schedules.add(
            planned, args, kwargs, id=schedule_id(name), zone=zone, **rule_of(entry["schedule"])
        )

    # Sending.

    def send_task(
        self,
        name: str,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Send a task by its name. Its function may be in another program."""
        return Signature(name, args, kwargs, options, app=self).apply_async()

    def send(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Any:
        """Send one task."""
        self.connect()
        options = self._published(name, args, kwargs, options)
        planned = self.planned(name, options)
        packed, named = self.packed(name, args, kwargs, checked=False)
        return AsyncResult(planned.schedule(*packed, **named).wait().id, app=self)

    def _published(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The signals of sending. Receivers may add headers."""
        if not signals.before_task_publish.has_listeners() and not signals.after_task_publish.has_listeners():
            return options
        own = {"id": options.get("task_id") or self.new_id(self.backend.now_ms()), "task": name, "lang": "py"}
        headers: dict[str, Any] = {**(options.get("headers") or {}), **own}
        told: dict[str, Any] = {
            "body": (args, kwargs, {}),
            "exchange": "",
            "routing_key": options.get("queue") or "",
            "headers": headers,
        }
        signals.before_task_publish.send(name, **told, properties={}, declare=[], retry_policy={})
        added = {key: str(value) for key, value in headers.items() if key not in own}
        signals.after_task_publish.send(name, **told)
        return {**options, "task_id": own["id"], "headers": added}

    def planned(
        self,
        name: str,
        options: Mapping[str, Any],
        after: list[str] | None = None,
        blocked: bool = False,
        always: bool = False,
    ) -> Planned[..., Any]:
        """A task with the options of a call. `blocked`: it is released later, so its times are relative."""
        for option, value in options.items():
            if option not in _CALL_OPTIONS and value is not None:
                hint = _REFUSED_CALL_OPTIONS.get(
                    option, "Options are: " + ", ".join(sorted(_CALL_OPTIONS)) + "."
                )
                raise refuse(f"apply_async({option}=)", hint)
        if options.get("serializer") not in (None, "json"):
            raise refuse(f"serializer={options['serializer']!r}", "Arguments are JSON.")
        found = self._at_queue(name, options.get("queue") or options.get("routing_key"))
        said: dict[str, Any] = {}
        if options.get("task_id"):
            said["id"] = options["task_id"]
        if options.get("eta") is not None:
            said["at"] = self.aware(_moment(options["eta"]))
        elif options.get("countdown") and not blocked:
            said["delay"] = max(0, options["countdown"])
        if options.get("priority") is not None:
            said["priority"] = CELERY_PRIORITY_S * options["priority"]
        if options.get("time_limit") is not None:
            said["timeout"] = options["time_limit"]
        if options.get("headers"):
            said["headers"] = {key: str(value) for key, value in options["headers"].items()}
        said |= self._expiry(name, options.get("expires"), blocked)
        if after:
            said["after"] = after
        if always:
            said["after_on"] = "END"
        return found.options(**said) if said else found

    def _expiry(self, name: str, expires: Any, blocked: bool) -> dict[str, Any]:
        if expires is None and name in self._tasks:
            expires = self._tasks[name].expires
        if expires is None:
            return {}
        if isinstance(expires, datetime | str):
            return {"deadline": self.aware(_moment(expires))}
        seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
        if blocked:
            return {"expires": seconds}
        return {"deadline": self.backend.now_ms() / 1000 + seconds}

    def _at_queue(self, name: str, queue: str | None) -> Planned[..., Any]:
        self.finalize()
        wanted = queue or self.functions.queues.get(name) or self._route(name) or self.conf.task_default_queue
        found = self._planned.get((name, wanted))
        if found is None:
            defaults = Options().merged(**self._options(self._tasks.get(name) or CeleryTask()))
            target = TaskTarget(name, wanted)
            found = self._planned[name, wanted] = Planned(
                self, target, Arguments(anything, name), defaults, name
            )
        return found

    def packed(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], checked: bool = True
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as JSON data, checked with the function if it is known."""
        if checked and name in self._tasks:
            self._tasks[name].check(args, kwargs)
        return pack(list(args)), pack(dict(kwargs))

    # Results and signatures.

    def AsyncResult(self, task_id: str, **kwargs: Any) -> AsyncResult:  # Celery's name
        return AsyncResult(task_id, app=self)

    def GroupResult(self, id: str | None = None, results: Any = None, **kwargs: Any) -> GroupResult:
        return GroupResult(id, results, app=self)

    def signature(self, *args: Any, **kwargs: Any) -> Any:
        return signature(*args, app=self, **kwargs)

    def canvas(self) -> dict[str, Any]:
        return {"chain": chain, "group": group, "chord": chord}

    @property
    def current_task(self) -> CeleryTask | None:
        return current_task()

    # Lifecycle.

    def rewire(self, where: str | os.PathLike[str], **kwargs: Any) -> None:
        super().rewire(where, **kwargs)
        self._rewired = True

    def start(self, argv: object = None) -> Coroutine[Any, Any, App]:
        """Start the app on the running event loop. Celery's command line is refused."""
        if threading.current_thread() is threading.main_thread() and asyncio._get_running_loop() is None:
            raise refuse("app.start()", "Run `duetime worker module:app`.")
        return self._start()

    async def _start(self) -> App:
        self.finalize()
        return await super().start()

    def worker_main(self, argv: object = None) -> None:
        raise refuse("app.worker_main()", "Run `duetime worker module:app`.")

    def connect(self) -> None:
        """Start the app in a thread of its own, once in each process, unless it is started."""
        if self._loop is not None and self._pid == os.getpid():
            return
        with self._connecting:
            if self._loop is not None and self._pid == os.getpid():
                return
            if self._loop is not None:  # a fork: the thread of the parent does not run here
                self._loop = self._background = self._backend = None
            self.finalize()
            self.__enter__()
            atexit.register(self.close)

    def close(self) -> None:
        """Stop the app, if it started itself."""
        atexit.unregister(self.close)
        self.__exit__()

    def queues(self) -> list[str]:
        """The queues of the tasks and of the settings."""
        self.finalize()
        named = {self.conf.task_default_queue}
        for queue in self.conf.task_queues or ():
            named.add(queue if isinstance(queue, str) else queue.name)
        return sorted({*super().queues(), *named})

    def _find_place(self) -> None:
        if not self._rewired:
            where = _address(self.conf.broker_url)
            super().rewire(where)


def _address(broker: Any) -> str:
    """Where the app works: a server, a folder, or memory."""
    if broker is None:
        return config.client_url()
    text = str(broker)
    if text.startswith("memory://"):
        return MEMORY
    if "://" not in text or text.startswith(("http://", "https://")):
        return text
    found = config.client_url()
    _logger.warning("The broker %s:// is replaced by the Duetime server %s.", text.partition("://")[0], found)
    return found


def _moment(given: Any) -> datetime:
    return datetime.fromisoformat(given) if isinstance(given, str) else given


def _rate(given: str | float) -> str:
    """`10/m` as Duetime writes it; a number is per second."""
    found = _RATE.fullmatch(str(given))
    if found is None:
        raise ValueError(f"rate_limit={given!r} is not a rate. Write '10/m'.")
    count = float(found[1])
    if count != int(count):
        raise ValueError(f"rate_limit={given!r} must be a whole number. Use a longer period, such as '30/m'.")
    return f"{int(count)}/{found[2] or 's'}"


def shared_task(*args: Any, **options: Any) -> Any:
    """A task of every app: `@shared_task`, `@shared_task(bind=True)`."""

    def register(function: Callable[..., Any]) -> CeleryTask:
        name = options.get("name") or f"{function.__module__}.{function.__name__}"
        shared = tasks.make(function, name, None, options)
        _shared.append((function, options, name))
        for app in apps:
            if app.finalized:
                app.adopt(function, options, name)
        return shared

    return register(args[0]) if args and callable(args[0]) else register
