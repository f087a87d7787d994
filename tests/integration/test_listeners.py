"""`app.on_failure` and `app.on_dead_letter`: the calls, their order, and what goes wrong."""

from __future__ import annotations

import asyncio
import threading

import pytest

from duetime import App, Reject, Retry, Snooze, Status, Transition, current, errors
from duetime.client.app import listeners
from duetime.testing.time import virtual
from tests.integration.asynchronous import asynchronous
from tests.integration.rig import SOON

TWICE = Retry(max_attempts=2, backoff="fixed", initial_delay="1ms", jitter=False)


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


def tasks_of(app: App):
    @app.task(name="breaks", queue="q", tags={"tenant": "acme"}, retry=TWICE)
    async def breaks(how: str) -> None:
        if how == "reject":
            raise Reject("never")
        if how == "snooze":
            if current().delivery == 1:
                raise Snooze("1ms")
            return
        raise ConnectionError("declined")

    return breaks


@asynchronous
async def test_every_failed_attempt_is_told_with_its_names(app):
    breaks = tasks_of(app)
    told: list[Transition] = []
    dead: list[Transition] = []

    @app.on_failure
    async def failed(change: Transition) -> None:
        told.append(change)

    app.on_dead_letter(dead.append)
    async with app:
        handle = await breaks.schedule("fail")
        with pytest.raises(errors.NotAcked):
            await handle.result(SOON)
        await (await breaks.schedule("snooze")).result(SOON)
    assert [(change.status, change.attempts, change.error_kind, change.error) for change in told] == [
        (Status.SCHEDULED, 1, "ConnectionError", "declined"),
        (Status.DEAD_LETTERED, 2, "ConnectionError", "declined"),
    ]
    assert dead == told[1:]
    for change in told:
        assert (change.intent_id, change.task, change.queue) == (handle.id, "breaks", "q")
        assert change.tags == {"tenant": "acme"} and change.precision_tier == "STANDARD"
        assert change.lane == "task:q"


def test_plain_functions_are_called_in_a_thread_and_may_use_the_app(app):
    """A plain function may wait: for the app's own calls, too."""
    breaks = tasks_of(app)
    seen: list[tuple[str, str]] = []

    @app.task(name="page")
    def page(of: str) -> str:
        return f"paged for {of}"

    @app.on_dead_letter
    def alert(change: Transition) -> None:
        planned = page.options(key=f"{change.intent_id}/{change.delivery}")
        seen.append(
            (planned.schedule(change.task).wait().result(SOON).wait(), threading.current_thread().name)
        )

    with app:
        with pytest.raises(errors.NotAcked):
            breaks.schedule("reject").wait().result(SOON).wait()
        app.call(app.listeners.settle()).wait()
    assert [word for word, _ in seen] == ["paged for breaks"]
    assert seen[0][1].startswith("duetime-listener")


@asynchronous
async def test_an_error_in_a_function_is_logged_and_the_others_are_called(app, caplog):
    breaks = tasks_of(app)
    told: list[str] = []

    @app.on_failure
    async def broken(change: Transition) -> None:
        raise ZeroDivisionError

    @app.on_failure
    def later(change: Transition):
        async def really() -> None:
            told.append(change.task)

        return really()

    async with app:
        handle = await breaks.schedule("reject")
        with pytest.raises(errors.NotAcked):
            await handle.result(SOON)
    assert told == ["breaks"], "a plain function may return a coroutine"
    assert "broken failed for intent" in caplog.text and "ZeroDivisionError" in caplog.text


@asynchronous
async def test_a_function_that_is_added_to_a_started_app_is_called(app):
    breaks = tasks_of(app)
    told: list[Transition] = []
    async with app:
        app.on_failure(told.append)
        handle = await breaks.schedule("reject")
        with pytest.raises(errors.NotAcked):
            await handle.result(SOON)
    assert [change.error for change in told] == ["never"]


@asynchronous
async def test_calls_beyond_the_limit_are_dropped_and_counted(app, caplog, monkeypatch):
    monkeypatch.setattr(listeners, "LISTENER_CALLS_MAX", 2)
    breaks = tasks_of(app)
    go, begun, told = asyncio.Event(), asyncio.Event(), []

    @app.on_dead_letter
    async def slow(change: Transition) -> None:
        begun.set()
        await go.wait()
        told.append(change.intent_id)

    async with app:
        first = await breaks.schedule("reject")
        await begun.wait()
        others = await breaks.schedule_many([("reject",)] * 5)
        for handle in (first, *others):
            with pytest.raises(errors.NotAcked):
                await handle.result(SOON)
        go.set()
    assert len(told) == 3 and told[0] == first.id
    assert "3 calls were dropped" in caplog.text


@asynchronous
async def test_a_function_that_never_ends_does_not_stop_the_app_from_stopping(app, caplog, monkeypatch):
    monkeypatch.setattr(listeners, "LISTENER_STOP_MS", 10)
    breaks = tasks_of(app)
    ended: list[str] = []

    @app.on_dead_letter
    async def hangs(change: Transition) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(change.task)

    async with app:
        handle = await breaks.schedule("reject")
        with pytest.raises(errors.NotAcked):
            await handle.result(SOON)
    assert ended == ["breaks"] and "1 calls of on_failure or on_dead_letter are lost" in caplog.text


@asynchronous
async def test_virtual_time_waits_for_the_functions_and_for_what_they_schedule():
    app = App("never-touched")
    breaks = tasks_of(app)
    paged: list[int] = []

    @app.task(name="page")
    async def page() -> None:
        paged.append(1)

    @app.on_failure
    async def alert(change: Transition) -> None:
        await page.delay("1h").schedule()

    async with virtual(app) as clock:
        await breaks.schedule("reject")
        await clock.drain()
        assert paged == []
        await clock.advance("1h")
        assert paged == [1]
