"""One trace across a web application, a server, a worker and a webhook, with a retry in it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from duetime import App, Reject, Retry, Snooze, current, errors
from duetime.contrib.opentelemetry import OpenTelemetryMiddleware, trace_context
from tests.contrib.web_process import Web
from tests.e2e.process import ROOT, SOURCE
from tests.http.server import ServerProcess
from tests.worker.process import WorkerProcess

SOON = "30s"
TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT_SPAN = "b7ad6b7169203331"
# FastAPI's own spans that cause nothing.
ASIDE = ("fastapi.dependencies", "fastapi.serialization")


class Spans:
    """A provider that keeps its spans."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._kept.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans():
    return Spans()


@pytest.fixture
def app(spans):
    app = App(":memory:")
    app.add_middleware(OpenTelemetryMiddleware(spans.provider))
    return app


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_the_schedule_and_each_attempt_are_spans_of_the_callers_trace(app, spans, kind):
    def work() -> str:
        with spans.tracer.start_as_current_span("inner"):
            if current().attempt == 1:
                raise ValueError("not yet")
            return str(baggage.get_baggage("user"))

    async def async_work() -> str:
        return work()

    soon = Retry(max_attempts=2, initial_delay="1ms", jitter=False)
    task = app.task(name="t", queue="q", retry=soon)(work if kind == "plain" else async_work)
    with app:
        with spans.tracer.start_as_current_span("request") as request:
            token = context.attach(baggage.set_baggage("user", "7"))
            handle = task.schedule().wait()
            context.detach(token)
        assert handle.result(SOON).wait() == "7", "baggage arrives too"
    schedule = spans.one("schedule t")
    first, second = spans.named("run t")
    assert parent_of(schedule) == request.get_span_context().span_id
    assert parent_of(first) == parent_of(second) == schedule.context.span_id
    assert [parent_of(inner) for inner in spans.named("inner")] == [
        first.context.span_id,
        second.context.span_id,
    ]
    assert (schedule.kind, first.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    wanted = {"duetime.task": "t", "duetime.queue": "q", "duetime.intent_id": handle.id}
    for span in (schedule, first, second):
        assert span.attributes is not None and wanted.items() <= dict(span.attributes).items()
    assert first.attributes["duetime.attempt"] == 1 and first.attributes["duetime.outcome"] == "failed"
    assert first.status.status_code is trace.StatusCode.ERROR and first.events[0].name == "exception"
    assert first.status.description == "ValueError: not yet"
    assert second.attributes["duetime.attempt"] == 2 and second.attributes["duetime.outcome"] == "done"
    assert second.status.is_ok


def test_a_snooze_is_no_error(app, spans):
    @app.task(name="t")
    async def work() -> None:
        if current().delivery == 1:
            raise Snooze("1ms")

    with app:
        work.schedule().wait().result(SOON).wait()
    first, _ = spans.named("run t")
    assert first.attributes["duetime.outcome"] == "snoozed" and first.status.is_ok and not first.events


def test_a_call_that_is_refused_is_a_failed_span(app, spans):
    @app.task(name="t")
    async def work(number: int) -> None: ...

    with app, pytest.raises(errors.InvalidField):
        work.schedule("text").wait()
    assert spans.one("schedule t").status.status_code is trace.StatusCode.ERROR


def test_an_explicit_trace_is_continued(app, spans):
    @app.task(name="t", retry=Retry(max_attempts=1))
    async def work() -> None:
        raise Reject("no")

    with app:
        with spans.tracer.start_as_current_span("another trace"):
            planned = work.options(traceparent=f"00-{TRACE}-{ROOT_SPAN}-01", headers={"tracestate": "a=b"})
            handle = planned.schedule().wait()
        with pytest.raises(errors.NotAcked):
            handle.result(SOON).wait()
        view = handle.view().wait()
    schedule, run = spans.one("schedule t"), spans.one("run t")
    assert f"{schedule.context.trace_id:x}" == f"{run.context.trace_id:x}" == TRACE.lstrip("0")
    assert f"{parent_of(schedule):x}" == ROOT_SPAN
    assert view.headers == {"tracestate": "a=b"}
    assert run.status.status_code is trace.StatusCode.ERROR


def test_without_a_current_span_a_bare_intent_begins_a_trace(app, spans):
    @app.default
    async def handle_all(payload: Any, context: Any) -> None: ...

    with app:
        app.schedule(1).wait().result(SOON).wait()
    schedule = spans.one("schedule intent")
    assert schedule.parent is None and parent_of(spans.one("run intent")) == schedule.context.span_id


def test_many_calls_have_a_span_each(app, spans):
    @app.task(name="t")
    async def work(number: int) -> None: ...

    with app:
        for handle in work.schedule_many([(1,), (2,), (3,)]).wait():
            handle.result(SOON).wait()
    parents = {span.context.span_id for span in spans.named("schedule t")}
    assert len(parents) == 3 and {parent_of(span) for span in spans.named("run t")} == parents


def test_a_function_leaves_no_trace_behind(app, spans):
    """Two functions in one thread, or on one loop, have nothing in common."""

    @app.task(name="t")
    def work() -> bool:
        return trace.get_current_span().get_span_context().is_valid

    with app:
        assert work.schedule().wait().result(SOON).wait() is True
        app.middleware._hooks = dict.fromkeys(app.middleware._hooks, ())
        assert work.schedule().wait().result(SOON).wait() is False


def test_baggage_that_is_too_long_is_left_out(spans):
    token = context.attach(baggage.set_baggage("long", "x" * 5_000))
    with trace.use_span(spans.tracer.start_span("request")):
        found = trace_context()
    context.detach(token)
    assert found.keys() == {"traceparent"}
    assert trace_context() == {}


# Across processes.


@contextmanager
def traced(name: str, folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a process whose spans are kept."""
    path = f"{ROOT / 'tests/contrib/traced'}:{SOURCE}:{ROOT}"
    yield {"PYTHONPATH": path, "TRACED_NAME": name, "TRACED_FOLDER": str(folder)}


def post(url: str, headers: dict[str, str]) -> Any:
    request = urllib.request.Request(url, method="POST", headers=headers)
    with closing(urllib.request.urlopen(request, timeout=30)) as answer:
        return json.loads(answer.read())


def test_one_trace_across_web_server_worker_and_webhook(tmp_path):
    folder = tmp_path / "spans"
    folder.mkdir()
    server = ServerProcess(tmp_path / "data")
    with traced("server", folder) as env:
        server.variables.update(env)
    with server:
        with traced("worker", folder) as env:
            worker = WorkerProcess(
                server,
                target="tests.contrib.traced_shop:app",
                variables={**env, "SHOP_DUETIME": server.url},
            )
        with (
            traced("web", folder) as env,
            worker,
            Web("tests.contrib.traced_shop:api", **env, SHOP_DUETIME=server.url) as web,
        ):
            headers = {"traceparent": f"00-{TRACE}-{ROOT_SPAN}-01", "tracestate": "a=b", "baggage": "user=7"}
            id = post(f"{web.url}/orders?paid={web.url}/paid", headers)
            with App(server.url) as app:
                hook = app.handle(id).result(SOON).wait()
                told = app.handle(hook).result(SOON).wait()
            assert told == {"baggage": "user=7", "tracestate": "a=b"}, "the webhook got them too"
            web.stop()  # everything that it has begun has ended
            assert worker.stop() == 0
        assert server.stop() == 0
    check_trace(spans_in(folder), id, hook)


def spans_in(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    spans = [span for span in map(json.loads, lines) if span["name"] not in ASIDE]
    return sorted(spans, key=lambda span: span["start_time"])


def check_trace(spans: list[dict[str, Any]], id: str, hook: str) -> None:
    """Each span is where it belongs: below the one that caused it."""
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{TRACE}"}
    names = {span["context"]["span_id"]: span for span in spans}
    shown = [
        (
            span["process"],
            span["name"],
            span["attributes"].get("duetime.attempt"),
            names[span["parent_id"]]["name"] if span["parent_id"] in names else span["parent_id"],
            span["status"]["status_code"],
        )
        for span in spans
    ]
    assert shown == [
        ("web", "POST /orders", None, f"0x{ROOT_SPAN}", "UNSET"),
        ("web", "fastapi.endpoint", None, "POST /orders", "UNSET"),
        ("web", "schedule shop.charge", None, "fastapi.endpoint", "UNSET"),
        ("server", "deliver task", 1, "schedule shop.charge", "ERROR"),
        ("worker", "run shop.charge", 1, "deliver task", "ERROR"),
        ("server", "deliver task", 2, "schedule shop.charge", "UNSET"),
        ("worker", "run shop.charge", 2, "deliver task", "UNSET"),
        ("worker", "bank for user 7", None, "run shop.charge", "UNSET"),
        ("server", "deliver callback", 1, "bank for user 7", "UNSET"),
        ("web", "POST /paid", None, "deliver callback", "UNSET"),
        ("web", "fastapi.endpoint", None, "POST /paid", "UNSET"),
    ]
    ids = [span["attributes"].get("duetime.intent_id") for span in spans]
    assert ids == [None, None, id, id, id, id, id, None, hook, None, None]
