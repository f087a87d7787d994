"""Running users' functions: payload in, outcome out. Every way a function may end has its outcome."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from duetime.client.control import Context, Reject, RetryAfter, Snooze, current_context
from duetime.client.payload import Signature, encode
from duetime.client.times import delay_ms
from duetime.errors import InvalidField
from duetime.protocol.bounds import ERROR_CHARS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Snoozed

# Asked about an error: None for the policy's delay, or one of the exceptions that say what to do.
Decision = Callable[[BaseException, Context], Snooze | Reject | RetryAfter | None]

_DONE = Done()
_NO_TAGS: dict[str, str] = {}


class FunctionHandler:
    """One function: where it runs, how its arguments come back, what its errors mean."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        pool: Callable[[], Executor] | None,
        decide: Decision | None,
        result_bytes_max: int,
        workers: int,
    ) -> None:
        """`pool` gives the executor the function runs in; None: it is a coroutine function on the loop."""
        self._function = function
        self._signature = signature
        self._pool = pool
        self._decide = decide
        self._workers = workers
        self._result_bytes_max = result_bytes_max

    @property
    def executor(self) -> Executor | None:
        return None if self._pool is None else self._pool()

    @property
    def workers(self) -> int:
        return self._workers

    async def run(self, delivery: Deliver) -> Outcome:
        try:
            token = current_context.set(context_of(delivery))
            try:
                args, kwargs = self._arguments(delivery)
                value = await self._function(*args, **kwargs)
            finally:
                current_context.reset(token)
        except Exception as error:
            return self.outcome(delivery, None, error)
        return _DONE if value is None else self._done(delivery, value)

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._run_in_thread, (delivery,)

    def outcome(self, delivery: Deliver, value: Any, error: BaseException | None) -> Outcome:
        if error is None:
            return _DONE if value is None else self._done(delivery, value)
        if self._decide is not None and not isinstance(error, Snooze | Reject | RetryAfter):
            try:
                error = self._decide(error, context_of(delivery)) or error
            except Exception as broken:
                error = broken
        try:
            return outcome_of(error)
        except Exception as broken:  # a delay that is none, an error that cannot say what it is
            return Failed(type(broken).__name__, f"{type(error).__name__} could not be read: {broken}")

    def _done(self, delivery: Deliver, value: Any) -> Outcome:
        try:
            result = encode(value, f"The result of {delivery.id}")
        except InvalidField as error:
            return Rejected("result", error.message)
        if len(result) > self._result_bytes_max:
            return Rejected(
                "result", f"the result has {len(result)} bytes; {self._result_bytes_max} are kept"
            )
        return Done(result)

    def _arguments(self, delivery: Deliver) -> tuple[list[Any], dict[str, Any]]:
        try:
            return self._signature.decode(delivery.payload)
        except Exception as error:
            raise Reject(f"the payload does not fit the function: {error}") from error

    def _run_in_thread(self, delivery: Deliver) -> Any:
        token = current_context.set(context_of(delivery))
        try:
            args, kwargs = self._arguments(delivery)
            return self._function(*args, **kwargs)
        finally:
            current_context.reset(token)


def _run_in_process(module: str, qualname: str, payload: bytes) -> Any:
    """Runs in another process: finds the function by its name; only names and bytes cross over."""
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    function = getattr(found, "function", found)  # the name may be bound to the task around it
    args, kwargs = Signature(function, qualname).decode(payload)
    value = function(*args, **kwargs)
    return None if value is None else encode(value, f"The result of {qualname}")


class ProcessHandler(FunctionHandler):
    """A function in another process: its result comes back as JSON."""

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        function = self._function
        return _run_in_process, (function.__module__, function.__qualname__, delivery.payload)

    def _done(self, delivery: Deliver, value: Any) -> Outcome:
        assert isinstance(value, bytes)
        if len(value) > self._result_bytes_max:
            return Rejected("result", f"the result has {len(value)} bytes; {self._result_bytes_max} are kept")
        return Done(value)


def context_of(delivery: Deliver) -> Context:
    terms = delivery.terms
    return Context(
        delivery.id,
        delivery.delivery,
        delivery.attempt,
        terms.redelivery.max_attempts,
        delivery.execute_at_ms,
        delivery.late_ms,
        terms.tags or _NO_TAGS,
        delivery.traceparent,
    )


def outcome_of(error: BaseException) -> Outcome:
    """What an exception means."""
    if isinstance(error, Snooze):
        return Snoozed(delay_ms(error.delay))
    text = str(error)[:ERROR_CHARS_MAX]
    if isinstance(error, Reject):
        return Rejected("rejected", text or "the function rejected it")
    if isinstance(error, RetryAfter):
        return Failed("retry-after", text, delay_ms=delay_ms(error.delay))
    if isinstance(error, BrokenProcessPool):
        return Lost("the process that ran it died")
    return Failed(type(error).__name__, text or type(error).__name__)
