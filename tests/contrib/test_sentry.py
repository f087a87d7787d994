"""Errors of functions in Sentry, with the real package and a transport that keeps the events."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from duetime import App, Reject, Retry, RetryAfter, Snooze, current, errors
from duetime.contrib.sentry import SentryMiddleware
from tests.contrib import reported_jobs
from tests.worker.process import WorkerProcess

SOON = "30s"
TWICE = Retry(max_attempts=2, backoff="fixed", initial_delay="1ms", jitter=False)
ONCE = Retry(max_attempts=1)


@pytest.fixture
def events():
    found: list[dict[str, Any]] = []

    class Kept(Transport):
        def capture_envelope(self, envelope: Envelope) -> None:
            event = envelope.get_event()
            if event is not None:
                found.append(dict(event))

    sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=Kept, auto_enabling_integrations=False)
    yield found
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
def app(events):
    app = App(":memory:")
    app.add_middleware(SentryMiddleware())
    return app


def ended(handle) -> None:
    with pytest.raises(errors.NotAcked):
        handle.result(SOON).wait()


def check(event: dict[str, Any], task: str, queue: str, id: str, attempt: int) -> None:
    """It says which function, which intent, which attempt; one issue per function and exception."""
    assert event["transaction"] == task
    assert event["tags"] == {
        "duetime.task": task,
        "duetime.queue": queue,
        "duetime.intent_id": id,
        "duetime.attempt": attempt,
    }
    told = event["contexts"]["duetime"]
    assert (told["task"], told["intent_id"], told["attempt"], told["max_attempts"]) == (task, id, attempt, 2)
    assert event["fingerprint"] == ["duetime", task, "builtins.ConnectionError"]
    assert event["exception"]["values"][-1]["type"] == "ConnectionError"


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_every_failed_attempt_is_one_event(app, events, kind):
    def work() -> None:
        raise ConnectionError("declined")

    async def async_work() -> None:
        work()

    task = app.task(name="t", queue="q", retry=TWICE)(work if kind == "plain" else async_work)
    with app:
        handle = task.schedule().wait()
        ended(handle)
    assert len(events) == 2, "the log line of a failed attempt is no event of its own"
    for number, event in enumerate(events, 1):
        check(event, "t", "q", handle.id, number)


def test_without_retries_only_the_last_attempt_is_reported(events):
    app = App(":memory:")
    app.add_middleware(SentryMiddleware(retries=False))

    @app.task(name="t", retry=TWICE)
    async def work(how: str) -> None:
        raise Reject("no") if how == "reject" else ConnectionError("declined")

    with app:
        ended(work.schedule("fail").wait())
        assert [event["contexts"]["duetime"]["attempt"] for event in events] == [2]
        ended(work.schedule("reject").wait())
        assert [event["contexts"]["duetime"]["attempt"] for event in events] == [2, 1]
        assert events[1]["fingerprint"] == ["duetime", "t", "duetime.client.app.control.Reject"]


def test_decisions_of_a_function_are_not_reported(app, events):
    @app.task(name="t", retry=TWICE, timeout="50ms")
    async def work(how: str) -> None:
        if how == "snooze" and current().delivery == 1:
            raise Snooze("1ms")
        if how == "later":
            raise RetryAfter("1ms", "busy")
        if how == "slow":
            await asyncio.Event().wait()

    with app:
        work.schedule("snooze").wait().result(SOON).wait()
        ended(work.schedule("slow").wait())
        assert events == []
        ended(work.schedule("later").wait())
    assert [event["contexts"]["duetime"]["attempt"] for event in events] == [2], "its last attempt"


def test_tags_of_a_function_stay_with_it(app, events):
    """Tags of one run are not on the events of others, nor on those of the program."""

    @app.task(name="t", retry=ONCE)
    def work(word: str) -> None:
        sentry_sdk.set_tag(word, "set")
        raise ValueError(word)

    with app:
        for word in ("one", "two"):
            ended(work.schedule(word).wait())
        sentry_sdk.capture_message("outside")
    first, second, outside = events
    assert "one" in first["tags"] and "one" not in second["tags"] and "two" in second["tags"]
    assert "tags" not in outside and "duetime" not in outside["contexts"]


def test_other_errors_of_duetime_are_still_reported(app, events):
    with app:
        logging.getLogger("duetime").error("An observer failed.")
    assert [event["logentry"]["message"] for event in events] == ["An observer failed."]


@pytest.mark.parametrize(
    "function",
    [reported_jobs.coroutine, reported_jobs.plain, reported_jobs.heavy],
    ids=["coroutine", "thread", "process"],
)
def test_a_worker_reports_and_its_log_lines_name_the_function(server, tmp_path, function):
    reports = tmp_path / "events.jsonl"
    worker = WorkerProcess(
        server, target="tests.contrib.reported_jobs:app", variables={"REPORTS": str(reports)}
    )
    reported_jobs.app.rewire(server.url)
    with worker, reported_jobs.app:
        handle = function.schedule("mast").wait()
        ended(handle)
        found = [json.loads(line) for line in reports.read_text().splitlines()]
        for attempt in (1, 2):
            worker.says(
                rf"WARNING jobs: about to break mast \[{function.name} {handle.id} attempt {attempt}\]"
            )
            worker.says(rf"Intent {handle.id} failed.* \[{function.name} {handle.id} attempt {attempt}\]")
    queue = "heavy" if function is reported_jobs.heavy else "default"
    assert len(found) == 2
    for attempt, event in enumerate(found, 1):
        check(event, function.name, queue, handle.id, attempt)
