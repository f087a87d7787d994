"""Configures OpenTelemetry in every Python process that has this folder on its path, as
`opentelemetry-instrument` does: spans are written to files of TRACED_FOLDER, one line each."""

import json
import os

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def line(span: ReadableSpan) -> str:
    shown = json.loads(span.to_json())
    shown["process"] = os.environ["TRACED_NAME"]
    return json.dumps(shown) + "\n"


_name = f"{os.environ['TRACED_NAME']}-{os.getpid()}.jsonl"
_out = open(os.path.join(os.environ["TRACED_FOLDER"], _name), "a", encoding="utf-8")  # noqa: SIM115
_provider = TracerProvider()
_provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=_out, formatter=line)))
trace.set_tracer_provider(_provider)
