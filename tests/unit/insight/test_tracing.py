"""Deliveries are spans of the trace their intent came with; without OpenTelemetry that trace is handed on."""

from __future__ import annotations

import builtins

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from duetime.insight.tracing import OpenTelemetry, make_tracing
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Outcome, Snoozed
from duetime.protocol.terms import Callback, Terms, Tier

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def delivery(traceparent: str | None = PARENT) -> Deliver:
    terms = Terms(Callback("http://x"), "callback:", Tier.FAST)
    return Deliver("i1", 3, 2, terms, b"{}", 1_000, 7, 0, traceparent, "")


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, make_tracing(provider)


def test_a_delivery_is_a_child_of_its_intents_trace(spans):
    exporter, tracing = spans
    assert isinstance(tracing, OpenTelemetry)
    span = tracing.begin(delivery())
    assert span.traceparent is not None
    version, trace, parent, flags = span.traceparent.split("-")
    assert (version, trace, flags) == ("00", "0af7651916cd43dd8448eb211c80319c", "01")
    assert parent != "b7ad6b7169203331"
    span.end(Done())
    (ended,) = exporter.get_finished_spans()
    assert ended.name == "deliver callback"
    assert f"{ended.parent.span_id:x}" == "b7ad6b7169203331"
    assert f"{ended.context.span_id:016x}" == parent
    assert ended.attributes["duetime.intent_id"] == "i1"
    assert ended.attributes["duetime.delivery"] == 3
    assert ended.attributes["duetime.tier"] == "FAST"
    assert ended.attributes["duetime.outcome"] == "done"
    assert ended.status.is_ok


@pytest.mark.parametrize("traceparent", [None, "nonsense"])
def test_without_a_trace_it_begins_one(spans, traceparent):
    exporter, tracing = spans
    span = tracing.begin(delivery(traceparent))
    span.end(Done())
    (ended,) = exporter.get_finished_spans()
    assert ended.parent is None
    assert span.traceparent is not None
    assert span.traceparent.startswith(f"00-{ended.context.trace_id:032x}-{ended.context.span_id:016x}-")


@pytest.mark.parametrize(("outcome", "ok"), [(Failed("http", "502"), False), (Snoozed(5), True)])
def test_the_outcome_is_on_the_span(spans, outcome: Outcome, ok: bool):
    exporter, tracing = spans
    tracing.begin(delivery()).end(outcome)
    (ended,) = exporter.get_finished_spans()
    assert ended.status.is_ok is ok
    assert ended.status.description == (None if ok else "502")


def test_without_opentelemetry_nothing_is_traced(monkeypatch):
    imported = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert make_tracing() is None


def test_without_a_provider_nothing_is_traced():
    assert make_tracing() is None
