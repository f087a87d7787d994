"""Spans of deliveries, if OpenTelemetry is installed. Otherwise the caller's traceparent is passed on.

The span of a delivery is a child of the trace in which its intent was created. The span's `traceparent` is
sent with the delivery, so that the receiver continues the same trace.
"""

from __future__ import annotations

from typing import Any, Protocol

from duetime.channels.channel import Span
from duetime.limits import TIER_NAMES
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Outcome, Returned, Snoozed


class Tracing(Protocol):
    """Begins spans."""

    def begin(self, delivery: Deliver) -> Span: ...


class _OpenSpan:
    __slots__ = ("_failed", "_span", "traceparent")

    def __init__(self, span: Any, traceparent: str | None, failed: Any) -> None:
        self._span = span
        self._failed = failed
        self.traceparent = traceparent

    def end(self, outcome: Outcome) -> None:
        kind = type(outcome).__name__.lower()
        self._span.set_attribute("duetime.outcome", kind)
        if not isinstance(outcome, Done | Returned | Snoozed):
            self._span.set_status(self._failed, getattr(outcome, "message", kind))
        self._span.end()


class OpenTelemetry:
    """Creates spans with the given tracer provider, by default the process's."""

    def __init__(self, provider: Any = None) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._propagator = TraceContextTextMapPropagator()
        self._tracer = trace.get_tracer("duetime", tracer_provider=provider)

    def begin(self, delivery: Deliver) -> Span:
        carrier = {} if delivery.traceparent is None else {"traceparent": delivery.traceparent}
        parent = self._propagator.extract(carrier)
        span = self._tracer.start_span(
            f"deliver {type(delivery.terms.target).__name__.lower()}",
            context=parent,
            kind=self._trace.SpanKind.PRODUCER,
            attributes={
                "duetime.intent_id": delivery.id,
                "duetime.delivery": delivery.delivery,
                "duetime.attempt": delivery.attempt,
                "duetime.tier": TIER_NAMES[delivery.terms.tier],
                "duetime.lane": delivery.terms.lane,
                "duetime.late_ms": delivery.late_ms,
            },
        )
        out: dict[str, str] = {}
        self._propagator.inject(out, context=self._trace.set_span_in_context(span, parent))
        traceparent = out.get("traceparent", delivery.traceparent)
        return _OpenSpan(span, traceparent, self._trace.StatusCode.ERROR)


def make_tracing(provider: Any = None) -> Tracing | None:
    """Tracing with OpenTelemetry; None if it is not installed or not configured."""
    try:
        from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
    except ImportError:
        return None
    if provider is None and isinstance(get_tracer_provider(), ProxyTracerProvider):
        return None
    return OpenTelemetry(provider)
