"""OpenTelemetry: one trace from the code that schedules a call to every attempt to run it.

    app.add_middleware(OpenTelemetryMiddleware())

Scheduling is a producer span. Its trace context travels with the intent: `traceparent` as a field, other
values of the configured propagators (`tracestate`, `baggage`) as headers. Each attempt is a consumer span in
the same trace; spans that the function begins are its children.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from opentelemetry import context as contexts
from opentelemetry import propagate, trace

from duetime.client.app.control import Snooze
from duetime.client.app.middleware import Middleware, NewCall, Run
from duetime.limits import HEADER_CHARS_MAX

# The name in spans of intents without a target.
_BARE = "intent"
_SPAN, _TOKEN = "duetime.contrib.opentelemetry.span", "duetime.contrib.opentelemetry.token"


class TraceContext(TypedDict, total=False):
    """The fields of an intent that carry a trace."""

    traceparent: str
    headers: dict[str, str]


def trace_context() -> TraceContext:
    """The current trace, as fields of an intent: `client.create(callback=..., **trace_context())`."""
    traceparent, headers = _carried(contexts.get_current())
    found: TraceContext = {}
    if traceparent is not None:
        found["traceparent"] = traceparent
    if headers:
        found["headers"] = headers
    return found


class OpenTelemetryMiddleware(Middleware):
    """Spans around scheduling and around each attempt."""

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        """`tracer_provider`: by default the global one."""
        self._tracer = trace.get_tracer("duetime", tracer_provider=tracer_provider)

    def before_schedule(self, call: NewCall) -> None:
        parent = (
            contexts.get_current() if call.traceparent is None else _parent(call.traceparent, call.headers)
        )
        span = self._tracer.start_span(
            f"schedule {call.task or _BARE}",
            context=parent,
            kind=trace.SpanKind.PRODUCER,
            attributes=_attributes(call.task, call.queue, call.intent_id),
        )
        call.traceparent, headers = _carried(trace.set_span_in_context(span, parent))
        call.headers.update(headers)
        call.state[_SPAN] = span

    def after_schedule(self, call: NewCall, intent_id: str) -> None:
        span = call.state.pop(_SPAN)
        span.set_attribute("duetime.intent_id", intent_id)  # a key may have found an existing intent
        span.end()

    def schedule_failed(self, call: NewCall, error: BaseException) -> None:
        _failed(call.state.get(_SPAN), error)
        _end(call.state.pop(_SPAN, None))

    def before_run(self, run: Run) -> None:
        context = run.context
        parent = _parent(context.traceparent, context.headers)
        span = self._tracer.start_span(
            f"run {context.task or _BARE}",
            context=parent,
            kind=trace.SpanKind.CONSUMER,
            attributes={
                **_attributes(context.task, context.queue, context.intent_id),
                "duetime.attempt": context.attempt,
                "duetime.delivery": context.delivery,
                "duetime.late_ms": context.late_ms,
            },
        )
        run.state[_SPAN] = span
        run.state[_TOKEN] = contexts.attach(trace.set_span_in_context(span, parent))

    def after_run(self, run: Run, result: object) -> None:
        run.state[_SPAN].set_attribute("duetime.outcome", "done")

    def run_failed(self, run: Run, error: BaseException) -> None:
        span = run.state.get(_SPAN)
        if isinstance(error, Snooze) and span is not None:
            span.set_attribute("duetime.outcome", "snoozed")
            return
        _failed(span, error)

    def run_ended(self, run: Run) -> None:
        token = run.state.pop(_TOKEN, None)
        if token is not None:
            contexts.detach(token)
        _end(run.state.pop(_SPAN, None))


def _attributes(task: str, queue: str, intent_id: str) -> dict[str, str]:
    return {
        "messaging.system": "duetime",
        "messaging.destination.name": queue or task,
        "duetime.task": task,
        "duetime.queue": queue,
        "duetime.intent_id": intent_id,
    }


def _parent(traceparent: str | None, headers: Mapping[str, str]) -> contexts.Context:
    """The context that came with an intent."""
    carrier = dict(headers) if traceparent is None else {**headers, "traceparent": traceparent}
    return propagate.extract(carrier)


def _carried(context: contexts.Context) -> tuple[str | None, dict[str, str]]:
    """The traceparent and the headers that carry a context. A value that is too long is left out."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    traceparent = carrier.pop("traceparent", None)
    return traceparent, {name: value for name, value in carrier.items() if len(value) <= HEADER_CHARS_MAX}


def _failed(span: Any, error: BaseException) -> None:
    if span is not None:
        span.record_exception(error)
        span.set_attribute("duetime.outcome", "failed")
        span.set_status(trace.Status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}"))


def _end(span: Any) -> None:
    if span is not None:
        span.end()
