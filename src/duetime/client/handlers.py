"""Running users' functions: payload in, outcome out. Every way a function may end has its outcome."""

from __future__ import annotations

import contextvars
import importlib
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import msgspec

from duetime.client.control import Context, Reject, RetryAfter, Snooze, current_context
from duetime.client.payload import Signature, encode
from duetime.client.times import delay_ms
from duetime.errors import InvalidField
from duetime.protocol.bounds import ERROR_CHARS_MAX, RETRY_DELAY_MS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Snoozed

# Asked about an error: None for the policy's delay, or one of the exceptions that say what to do.
Decision = Callable[[BaseException, Context], Snooze | Reject | RetryAfter | None]

_DONE = Done()
_logger = logging.getLogger("duetime")
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
        outcome = self._outcome_of(delivery, error)
        if not isinstance(outcome, Snoozed):
            last = delivery.attempt >= delivery.terms.redelivery.max_attempts
            # What the function says itself is worth a line; what it did not foresee, a traceback.
            said = (
                outcome.message
                if isinstance(error, Reject | RetryAfter) and isinstance(outcome, Rejected | Failed)
                else None
            )
            _logger.log(
                logging.ERROR if last or isinstance(outcome, Rejected) else logging.WARNING,
                "Intent %s failed, attempt %d of %d%s",
                delivery.id,
                delivery.attempt,
                delivery.terms.redelivery.max_attempts,
                "." if said is None else f": {said}",
                exc_info=error if said is None else None,
            )
        return outcome

    def _outcome_of(self, delivery: Deliver, error: BaseException) -> Outcome:
        if self._decide is not None and not isinstance(error, Snooze | Reject | RetryAfter):
            try:
                error = self._decide(error, context_of(delivery)) or error
            except BaseException as broken:
                error = broken
        try:
            return outcome_of(error)
        except Exception as broken:  # a delay that is none, an error that cannot say what it is
            return Failed(type(broken).__name__, clean(f"{type(error).__name__} could not be read: {broken}"))

    def _done(self, delivery: Deliver, value: Any) -> Outcome:
        try:
            result = encode(value, f"The result of {delivery.id}")
        except InvalidField as error:
            return Rejected("result", clean(error.message))
        except Exception as error:  # a value whose own way to JSON fails
            return Rejected("result", clean(f"the result cannot be stored: {error!r}"))
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
        # In a context of its own: what it leaves there is not for the next one in this thread.
        return contextvars.Context().run(self._call, delivery)

    def _call(self, delivery: Deliver) -> Any:
        current_context.set(context_of(delivery))
        args, kwargs = self._arguments(delivery)
        return self._function(*args, **kwargs)


def _run_in_process(module: str, qualname: str, payload: bytes) -> bytes:
    """Runs in another process: finds the function by its name. Only names and bytes cross over, both ways."""
    try:
        found: Any = importlib.import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
        function = getattr(found, "function", found)  # the name may be bound to the task around it
        args, kwargs = Signature(function, qualname).decode(payload)
        value = function(*args, **kwargs)
        outcome: Outcome = Done(None if value is None else encode(value, f"The result of {qualname}"))
    except Exception as error:
        outcome = outcome_of(error)
    return msgspec.msgpack.encode(outcome)


class ProcessHandler(FunctionHandler):
    """A function in another process: its outcome comes back as data."""

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        function = self._function
        return _run_in_process, (function.__module__, function.__qualname__, delivery.payload)

    def _done(self, delivery: Deliver, value: Any) -> Outcome:
        outcome: Outcome = msgspec.msgpack.decode(value, type=Outcome)
        if isinstance(outcome, Failed) and outcome.delay_ms < 0:
            # The exception itself stayed in its process; the decision gets its name and its words.
            return self.outcome(delivery, None, RuntimeError(f"{outcome.kind}: {outcome.message}"))
        if isinstance(outcome, Done) and outcome.result and len(outcome.result) > self._result_bytes_max:
            size = len(outcome.result)
            return Rejected("result", f"the result has {size} bytes; {self._result_bytes_max} are kept")
        return outcome


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
        return Snoozed(min(delay_ms(error.delay), RETRY_DELAY_MS_MAX))
    text = clean(str(error))
    if isinstance(error, Reject):
        return Rejected("rejected", text or "the function rejected it")
    if isinstance(error, RetryAfter):
        return Failed("retry-after", text, delay_ms=min(delay_ms(error.delay), RETRY_DELAY_MS_MAX))
    if isinstance(error, BrokenProcessPool):
        return Lost("the process that ran it died")
    kind = clean(type(error).__name__)
    return Failed(kind, text or kind)


def clean(text: str) -> str:
    """Words that can be stored: of bounded length, and without what is not text."""
    return text[:ERROR_CHARS_MAX].encode("utf-8", "backslashreplace").decode()[:ERROR_CHARS_MAX]
