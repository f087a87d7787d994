"""The functions of an app: the handler of each delivery, and the shared threads and processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from duetime.client.app.middleware import Middlewares
from duetime.client.app.payload import Signature
from duetime.client.execution.handlers import BareHandler, FunctionHandler, ProcessHandler
from duetime.client.execution.processes import Processes
from duetime.client.execution.reports import Reports
from duetime.client.execution.run_policy import RunPolicy
from duetime.errors import InvalidField
from duetime.protocol.effect import Deliver
from duetime.protocol.terms import Entity, Task

if TYPE_CHECKING:
    from duetime.client.app.entity import EntityType


class Bounds(Protocol):
    """The resources for functions, from the configuration."""

    result_bytes_max: int
    threads: int
    processes: int
    tasks_per_child_max: int
    memory_per_child_bytes_max: int


class Functions:
    """The functions of an app."""

    def __init__(self) -> None:
        self.reports = Reports()
        self.middleware = Middlewares()
        self.tasks: dict[str, FunctionHandler] = {}
        self.queues: dict[str, str] = {}
        """The queue of each task."""
        self.entities: dict[str, EntityType] = {}
        self.bare: FunctionHandler | None = None
        self.bounds: Bounds
        self._threads: ThreadPoolExecutor | None = None
        self._processes: Processes | None = None

    def add(
        self,
        name: str,
        queue: str,
        function: Callable[..., object],
        signature: Signature,
        policy: RunPolicy,
        cpu_bound: bool,
    ) -> None:
        """A task."""
        self.tasks[name] = self._handler(function, signature, policy, cpu_bound)
        self.queues[name] = queue

    def set_bare(self, function: Callable[..., object]) -> None:
        """Set the handler of intents without a target."""
        pool = None if inspect.iscoroutinefunction(function) else self._pool
        self.bare = BareHandler(
            function,
            Signature(function, function.__qualname__),
            pool,
            RunPolicy(),
            self.bounds.result_bytes_max,
            self.bounds.threads,
            self.reports,
            self.middleware,
        )

    def find(self, delivery: Deliver) -> FunctionHandler | None:
        """The handler for a delivery."""
        target = delivery.terms.target
        if type(target) is Task:
            return self.tasks.get(target.name)
        if type(target) is Entity:
            return self._entity_handler(target)
        return self.bare

    def messages(self, kind: str) -> list[str]:
        """The messages that entities of a type accept."""
        entity = self.entities.get(kind)
        return sorted(entity.messages) if entity is not None else []

    def widen(self, threads: int) -> None:
        """Allow plain functions at least this many threads."""
        self.bounds.threads = max(threads, self.bounds.threads)
        for handler in self.tasks.values():
            if not isinstance(handler, ProcessHandler):
                handler.workers = self.bounds.threads

    def limit_children(self, tasks_max: int | None, memory_bytes_max: int | None) -> None:
        """Set when processes are replaced, before the first one is started. None: unchanged."""
        if tasks_max is not None:
            self.bounds.tasks_per_child_max = tasks_max
        if memory_bytes_max is not None:
            self.bounds.memory_per_child_bytes_max = memory_bytes_max

    def kill(self) -> None:
        """Kill the processes that run functions."""
        if self._processes is not None:
            self._processes.kill_all()

    def shutdown(self) -> None:
        for pool in (self._threads, self._processes):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        self._threads = self._processes = None

    def _entity_handler(self, target: Entity) -> FunctionHandler | None:
        entity = self.entities.get(target.kind)
        signature = entity.messages.get(target.message) if entity is not None else None
        if entity is None or signature is None:
            return None
        pool = None if inspect.iscoroutinefunction(getattr(entity.cls, target.message)) else self._pool
        method = entity.method(target.id, target.message)
        limit, threads = self.bounds.result_bytes_max, self.bounds.threads
        return FunctionHandler(
            method, signature, pool, entity.policy, limit, threads, self.reports, self.middleware
        )

    def _handler(
        self, function: Callable[..., object], signature: Signature, policy: RunPolicy, cpu_bound: bool
    ) -> FunctionHandler:
        limit, reports, middleware = self.bounds.result_bytes_max, self.reports, self.middleware
        if cpu_bound:
            if inspect.iscoroutinefunction(function):
                raise InvalidField("A cpu_bound task must be a plain function.", hint="Write it with `def`.")
            workers = self.bounds.processes
            if not workers:
                raise InvalidField("engine.processes is 0.", hint="Set it to at least 1 for cpu_bound tasks.")
            pools = self._pool_of_processes
            return ProcessHandler(function, signature, pools, policy, limit, workers, reports, middleware)
        pool = None if inspect.iscoroutinefunction(function) else self._pool
        threads = self.bounds.threads
        return FunctionHandler(function, signature, pool, policy, limit, threads, reports, middleware)

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.bounds.threads, "duetime-task")
        return self._threads

    def _pool_of_processes(self) -> Processes:
        if self._processes is None:
            bounds = self.bounds
            self._processes = Processes(
                bounds.processes, bounds.tasks_per_child_max, bounds.memory_per_child_bytes_max
            )
        return self._processes
