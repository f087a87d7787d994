"""Runs users' functions: takes a payload, returns an outcome. Every end of a function has an outcome."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

import msgspec

from duetime.client.app.control import Context, Reject, RetryAfter, Snooze, current_context
from duetime.client.app.middleware import Middlewares, Run, on_loop
from duetime.client.app.payload import Signature, decode, encode
from duetime.client.app.times import delay_ms
from duetime.client.execution.processes import Ticker, tell
from duetime.client.execution.reports import Reports, Running, Word, keep_logs
from duetime.client.execution.run_policy import ProcessError, RunPolicy, class_names
from duetime.client.execution.soft_timeout import ThreadLimit, in_coroutine, in_process
from duetime.errors import InvalidField
from duetime.protocol.bounds import ERROR_CHARS_MAX, RETRY_DELAY_MS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Snoozed
from duetime.protocol.terms import Task, title_of
from duetime.safe_text import log_to_stderr

T = TypeVar("T")

_DONE = Done()
# Failed attempts have a logger of their own, so that a program can treat them apart.
RUNS_LOGGER = "duetime.runs"
_logger = logging.getLogger(RUNS_LOGGER)
_NOTHING: dict[str, str] = {}


class FunctionHandler:
    """One function: runs it, decodes its arguments, converts its errors."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        pool: Callable[[], Executor] | None,
        policy: RunPolicy,
        result_bytes_max: int,
        workers: int,
        reports: Reports,
        middleware: Middlewares,
    ) -> None:
        """`pool` returns the executor of the function; None for a coroutine function."""
        soft_ms = policy.soft_timeout_ms
        self._function = in_coroutine(function, soft_ms) if pool is None and soft_ms else function
        self.signature = signature
        self._pool = pool
        self._policy = policy
        self.workers = workers
        """The number of concurrent calls of its executor."""
        self._result_bytes_max = result_bytes_max
        self._reports = reports
        self._middleware = middleware

    @property
    def executor(self) -> Executor | None:
        return None if self._pool is None else self._pool()

    async def run(self, delivery: Deliver) -> Outcome:
        try:
            token = current_context.set(running(delivery, self._reports))
            try:
                args, kwargs = self._arguments(delivery)
                if self._middleware.runs:
                    run = Run(current_context.get(), args, kwargs)
                    value = await self._middleware.around(run, self._function)
                else:
                    value = await self._function(*args, **kwargs)
            finally:
                current_context.reset(token)
        except Exception as error:
            return self.outcome(delivery, None, error)
        return _DONE if value is None else self._done(delivery, value)

    def job(self, delivery: Deliver) -> tuple[Callable[..., object], tuple[object, ...]]:
        loop = asyncio.get_running_loop() if self._middleware.waits else None
        soft_ms = self._policy.soft_timeout_ms
        return self._run_in_thread, (delivery, loop, ThreadLimit(soft_ms) if soft_ms else None)

    def outcome(self, delivery: Deliver, value: object, error: BaseException | None) -> Outcome:
        if error is None:
            return _DONE if value is None else self._done(delivery, value)
        outcome = self._outcome_of(delivery, error)
        if not isinstance(outcome, Snoozed):
            last = delivery.attempt >= delivery.terms.redelivery.max_attempts
            # An exception such as Reject is logged in one line; an unexpected error with its traceback.
            said = (
                outcome.message
                if isinstance(error, Reject | RetryAfter) and isinstance(outcome, Rejected | Failed)
                else None
            )
            # Logged in the context of the function, so that it is in the log of the attempt too.
            token = current_context.set(running(delivery, self._reports))
            _logger.log(
                logging.ERROR if last or isinstance(outcome, Rejected) else logging.WARNING,
                "Intent %s failed, attempt %d of %d%s",
                delivery.id,
                delivery.attempt,
                delivery.terms.redelivery.max_attempts,
                "." if said is None else f": {said}",
                exc_info=error if said is None else None,
            )
            current_context.reset(token)
        return outcome

    def _outcome_of(self, delivery: Deliver, error: BaseException) -> Outcome:
        decided, decide = error, self._policy.decide
        if decide is not None and not isinstance(error, Snooze | Reject | RetryAfter):
            try:
                decided = decide(error, context_of(delivery)) or error
            except BaseException as broken:
                decided = broken
        try:
            outcome = outcome_of(decided)
            if decided is error and isinstance(outcome, Failed) and self._policy.gives_up(error):
                return Rejected(outcome.kind, outcome.message)
            return outcome
        except Exception as broken:  # an invalid delay, or an error that cannot be converted to text
            text = f"{type(decided).__name__} could not be read: {broken}"
            return Failed(type(broken).__name__, clean(text))

    def _done(self, delivery: Deliver, value: object) -> Outcome:
        return self._bounded(_done_with(value, f"The result of {delivery.id}"))

    def _bounded(self, outcome: Outcome) -> Outcome:
        """The outcome, or a rejection if its result is too large."""
        if isinstance(outcome, Done) and outcome.result and len(outcome.result) > self._result_bytes_max:
            size = len(outcome.result)
            return Rejected("result", f"the result has {size} bytes; {self._result_bytes_max} are kept")
        return outcome

    def _arguments(self, delivery: Deliver) -> tuple[list[object], dict[str, object]]:
        try:
            return self.signature.decode(delivery.payload)
        except Exception as error:
            raise Reject(f"the payload does not fit the function: {error}") from error

    def _run_in_thread(
        self, delivery: Deliver, loop: asyncio.AbstractEventLoop | None, limit: ThreadLimit | None
    ) -> object:
        # In a separate context, so that the next function in this thread does not see its changes.
        return contextvars.Context().run(self._call, delivery, loop, limit)

    def _call(
        self, delivery: Deliver, loop: asyncio.AbstractEventLoop | None, limit: ThreadLimit | None
    ) -> object:
        context = running(delivery, self._reports)
        current_context.set(context)
        function = self._function if limit is None else partial(limit.run, self._function)
        args, kwargs = self._arguments(delivery)
        if self._middleware.runs:
            return self._middleware.around_plain(Run(context, args, kwargs), function, on_loop(loop))
        return function(*args, **kwargs)


class _Job(msgspec.Struct, array_like=True):
    """A call for another process: the name of the function, its arguments, its context."""

    module: str
    qualname: str
    payload: bytes
    context: Context
    keeps_logs: bool
    soft_timeout_ms: int


def run_in_process(body: bytes) -> bytes:
    """Runs in another process: finds the function by its name. Only names and data are exchanged."""
    job = msgspec.msgpack.decode(body, type=_Job)
    context, reports = job.context, Reports()
    classes: list[str] = []
    place = (context.intent_id, context.delivery)
    if job.keeps_logs:
        log_to_stderr()
        keep_logs()
    ticker = Ticker(partial(_tell_newest, reports))
    reports.on_news(ticker.news)
    try:
        found: Any = importlib.import_module(job.module)
        for name in job.qualname.split("."):
            found = getattr(found, name)
        function = getattr(found, "function", found)  # the name may be bound to the task around it
        args, kwargs = Signature(function, job.qualname).decode(job.payload)
        if job.soft_timeout_ms:
            function = in_process(function, job.soft_timeout_ms)
        told = Running(**msgspec.structs.asdict(context), reports=reports)
        middleware: Middlewares | None = getattr(found, "middleware", None)
        call = (
            partial(middleware.around_plain, Run(told, args, kwargs), function, on_loop(None))
            if middleware is not None and middleware.runs
            else partial(function, *args, **kwargs)
        )
        value = contextvars.Context().run(_in_context, told, call)
        outcome = _DONE if value is None else _done_with(value, f"The result of {job.qualname}")
    except (Exception, SystemExit) as error:
        outcome, classes = outcome_of(error), class_names(error)
    ticker.stop()
    return msgspec.msgpack.encode((outcome, reports.text(place), classes))


def _tell_newest(reports: Reports) -> None:
    for word in reports.take().values():
        tell(msgspec.msgpack.encode(word))


def _in_context(context: Context, call: Callable[[], T]) -> T:
    current_context.set(context)
    return call()


class ProcessHandler(FunctionHandler):
    """A function in another process. Its outcome is returned as data."""

    def job(self, delivery: Deliver) -> tuple[Callable[..., object], tuple[object, ...]]:
        function, reports = self._function, self._reports
        job = _Job(
            function.__module__,
            function.__qualname__,
            delivery.payload,
            context_of(delivery),
            reports.keeps_logs,
            self._policy.soft_timeout_ms,
        )
        place = (delivery.id, delivery.delivery)

        def hear(word: bytes) -> None:
            reports.progress(place, msgspec.msgpack.decode(word, type=Word))

        return run_in_process, (msgspec.msgpack.encode(job), hear)

    def _done(self, delivery: Deliver, value: Any) -> Outcome:
        outcome, log, classes = msgspec.msgpack.decode(value, type=tuple[Outcome, str | None, list[str]])
        if log is not None:
            self._reports.log((delivery.id, delivery.delivery), log)
        if isinstance(outcome, Failed) and outcome.delay_ms < 0:
            return self.outcome(delivery, None, ProcessError(outcome.kind, outcome.message, classes))
        return self._bounded(outcome)


class BareHandler(FunctionHandler):
    """The default handler. It takes the payload as one value, and the context."""

    def _arguments(self, delivery: Deliver) -> tuple[list[object], dict[str, object]]:
        payload = decode(delivery.payload) if delivery.payload else None
        return [payload, context_of(delivery)], {}


def running(delivery: Deliver, reports: Reports) -> Running:
    """The context of a running function."""
    return Running(*_told(delivery), reports=reports)


def context_of(delivery: Deliver) -> Context:
    return Context(*_told(delivery))


def _told(
    delivery: Deliver,
) -> tuple[str, int, int, int, int, int, dict[str, str], str | None, str, str, dict[str, str]]:
    """The fields of a delivery that a function can read, in the order of the context."""
    terms = delivery.terms
    target = terms.target
    task, queue = (target.name, target.queue) if type(target) is Task else (title_of(target), "")
    return (
        delivery.id,
        delivery.delivery,
        delivery.attempt,
        terms.redelivery.max_attempts,
        delivery.execute_at_ms,
        delivery.late_ms,
        terms.tags or _NOTHING,
        delivery.traceparent,
        task,
        queue,
        delivery.headers or _NOTHING,
    )


def _done_with(value: object, what: str) -> Outcome:
    """The outcome for a return value. A value that cannot be stored is rejected: a retry would not help."""
    try:
        return Done(encode(value, what))
    except InvalidField as error:
        return Rejected("result", clean(error.message))
    except Exception as error:  # the value's own conversion to JSON fails
        return Rejected("result", clean(f"the result cannot be stored: {type(error).__name__}: {error}"))


def outcome_of(error: BaseException) -> Outcome:
    """The outcome for an exception."""
    if isinstance(error, Snooze):
        return Snoozed(min(delay_ms(error.delay), RETRY_DELAY_MS_MAX))
    if isinstance(error, ProcessError):
        return Failed(error.kind, error.text)
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
    """A text that can be stored: of limited length, without invalid characters."""
    return text[:ERROR_CHARS_MAX].encode("utf-8", "backslashreplace").decode()[:ERROR_CHARS_MAX]
