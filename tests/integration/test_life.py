"""An app's life: starting, stopping, starting again, and what callers get before and after."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from duetime import App, Status, Transition, errors
from tests.integration.rig import SOON, Gate, ThreadGate, running


@pytest.fixture
def app(tmp_path):
    app = App(str(tmp_path / "data"))

    @app.task(name="echo")
    async def echo(value: int) -> int:
        return value

    app.echo = echo  # type: ignore[attr-defined]
    return app


def run(coroutine):
    return asyncio.run(coroutine)


def test_an_app_that_is_only_made_touches_nothing(tmp_path):
    App(str(tmp_path / "data"))
    assert list(tmp_path.iterdir()) == []


def test_before_it_is_started_and_after_it_is_stopped(app):
    with pytest.raises(errors.Closed, match="not started"):
        app.echo.schedule(1).wait()

    async def main():
        with pytest.raises(errors.Closed, match="not started"):
            await app.echo.schedule(1)
        async with app:
            handle = await app.echo.schedule(1)
            with pytest.raises(errors.InvalidField, match="already started"):
                await app.start()
        with pytest.raises(errors.Closed, match="with app"):
            await handle.result()

    run(main())


def test_an_app_can_be_stopped_twice_and_started_again(app):
    async def main():
        for number in range(3):
            async with app:
                assert await (await app.echo.schedule(number)).result(SOON) == number
                await app.stop()
                await app.stop()
        async with app:
            assert len(await app.find()) == 3

    run(main())
    with app:
        assert len(app.find().wait(10)) == 3
    app.__exit__()


def test_wait_on_its_own_loop_is_refused(app):
    async def main():
        async with app:
            with pytest.raises(errors.Closed, match="would block the event loop"):
                app.echo.schedule(1).wait()

    run(main())
    refused = []

    @app.task(name="blocks")
    async def blocks() -> None:
        try:
            app.echo.schedule(1).wait()
        except errors.Closed:
            refused.append(True)

    with app:
        blocks.schedule().wait(10).result(SOON).wait()
    assert refused == [True]


def test_a_plain_app_can_be_awaited_from_another_loop(app):
    async def main():
        return await (await app.echo.schedule(5)).result(SOON)

    with app:
        assert run(main()) == 5


def test_wait_gives_up_after_its_time(app):
    with app:
        handle = app.echo.delay("1h").schedule(1).wait(10)
        with pytest.raises(errors.WaitTimedOut):
            handle.result().wait(0.01)
        with pytest.raises(errors.WaitTimedOut):
            handle.result("10ms").wait(10)
        assert handle.status().wait(10) is Status.SCHEDULED, "the intent itself goes on"


def test_a_start_that_fails_leaves_the_app_usable(app, tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(errors.Denied, match="Not a directory"), app:
        pass
    (tmp_path / "data").unlink()
    with app:
        assert app.echo.schedule(1).wait(10).result(SOON).wait() == 1


def test_closing_waits_for_what_runs(app):
    async def main():
        gate = Gate()

        @app.task(name="slow")
        async def slow() -> str:
            await gate.wait()
            return "done"

        await app.start()
        handle = await slow.schedule()
        await gate.arrived()
        stopping = asyncio.ensure_future(app.stop(drain_ms=10_000))
        await asyncio.wait([stopping], timeout=0)  # a pass of the loop: it has begun to stop
        with pytest.raises(errors.Closed):
            await app.echo.schedule(1)
        assert not stopping.done()
        gate.open()
        await stopping
        async with app:
            assert await handle.result(SOON) == "done"
            assert (await handle.view()).delivery == 1

    run(main())


def test_closing_has_a_deadline(app):
    async def main():
        gate, begun = Gate(), []

        @app.task(name="endless")
        async def endless() -> None:
            begun.append(1)
            if len(begun) == 1:
                await gate.wait()

        await app.start()
        handle = await endless.schedule()
        await gate.arrived()
        waiting = asyncio.ensure_future(handle.result())
        await handle.view()  # answered after the wait has begun
        await asyncio.wait_for(app.stop(drain_ms=20), 10)
        with pytest.raises(errors.Closed, match="the intent itself continues"):
            await waiting
        async with app:
            await handle.result(SOON)
            assert len(begun) == 2 and (await handle.view()).delivery == 2

    run(main())


def test_closing_does_not_wait_for_a_thread_for_ever(app):
    gate = ThreadGate()

    @app.task(name="stuck")
    def stuck() -> None:
        gate.wait()

    async def main():
        await app.start()
        await stuck.schedule()
        assert await asyncio.to_thread(gate.came.wait, 10)
        await asyncio.wait_for(app.stop(drain_ms=10), 10)
        gate.go.set()

    run(main())


def test_an_at_most_once_that_is_cut_off_is_a_dead_letter(app):
    async def main():
        gate = Gate()

        @app.task(name="once", guarantee="AT_MOST_ONCE")
        async def once() -> None:
            await gate.wait()

        async with running(app):
            handle = await once.schedule()
            await gate.arrived()
        async with app:
            with pytest.raises(errors.NotAcked, match="DEAD_LETTERED"):
                await handle.result(SOON)
            assert gate.count == 1

    run(main())


def test_observers_see_every_transition(app):
    seen: list[Transition] = []
    app.observe(seen.append)

    async def main():
        async with app:
            handle = await app.echo.schedule(1)
            await handle.result(SOON)
            path = [
                (change.previous_status, change.status) for change in seen if change.intent_id == handle.id
            ]
            assert path == [
                (None, Status.SCHEDULED),
                (Status.SCHEDULED, Status.DUE),
                (Status.DUE, Status.DISPATCHING),
                (Status.DISPATCHING, Status.ACKED),
            ]

    run(main())
    before = len(seen)
    run(main())
    assert len(seen) == 2 * before, "an app that is started again is still observed"


def test_an_observer_that_fails_stops_nothing(app, caplog):
    @app.observe
    def broken(change: Transition) -> None:
        raise ZeroDivisionError

    async def main():
        async with app:
            assert await (await app.echo.schedule(1)).result(SOON) == 1

    with caplog.at_level(logging.ERROR, "duetime"):
        run(main())
    assert "An observer failed" in caplog.text and "ZeroDivisionError" in caplog.text


def test_the_default_handler_takes_bare_intents(app):
    got = []

    async def main():
        async with app:
            with pytest.raises(errors.UnknownTask, match="default handler"):
                await app.schedule({"a": 1})

        @app.default
        async def handle(payload, context):
            got.append((payload, context.attempt, context.tags))
            return "seen"

        async with app:
            handle_ = await app.schedule({"a": 1}, tags={"k": "v"})
            assert await handle_.result(SOON) == "seen"
            assert await (await app.schedule()).result(SOON) == "seen"
        assert got == [({"a": 1}, 1, {"k": "v"}), (None, 1, {})]

    run(main())


def test_a_plain_default_handler_runs_in_a_thread(tmp_path):
    app, names = App(str(tmp_path / "data")), []

    @app.default
    def handle(payload, context):
        names.append(threading.current_thread().name)

    with app:
        app.schedule(1).wait(10).result(SOON).wait()
    assert names[0].startswith("duetime-task")


def test_two_functions_of_one_name_are_refused(app):
    with pytest.raises(errors.InvalidField, match="Two functions are named 'echo'"):

        @app.task(name="echo")
        async def other() -> None: ...


def test_an_unknown_option_is_named(app):
    with pytest.raises(errors.InvalidField, match="no option 'dealy'"):
        app.echo.options(dealy="1s")
    with app, pytest.raises(errors.UnknownTier, match="'SLOW'"):
        app.echo.options(tier="SLOW").schedule(1).wait()
