"""An App by itself: how far functions are, what they log, and how long a result is shown."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from duetime import App, LogHandler, Status, progress
from duetime.errors import ResultGone


def run(app: App, main) -> None:
    async def all_of_it() -> None:
        async with app:
            await main()

    asyncio.run(all_of_it())


def test_progress_of_a_coroutine_and_of_a_thread_is_seen():
    app, go, said = App(":memory:"), threading.Event(), asyncio.Event()

    @app.task
    async def steps() -> None:
        progress(3, 9, "in the middle")
        said.set()
        await asyncio.to_thread(go.wait)

    @app.task
    def in_a_thread() -> None:
        progress(1)
        go.wait()

    async def main() -> None:
        one, two = await steps.schedule(), await in_a_thread.schedule()
        await said.wait()
        while not ((await one.view()).progress and (await two.view()).progress):
            await asyncio.sleep(0)  # tidy: another thread says it
        seen = (await one.view()).progress
        assert seen is not None and (seen.done, seen.total, seen.note) == (3, 9, "in the middle")
        go.set()
        await one.result()
        await two.result()
        assert (await one.view()).progress is None

    run(app, main)


@pytest.fixture
def handler():
    handler, root = LogHandler(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


def test_what_functions_log_is_kept_where_a_handler_is_put_up(handler):
    app = App(":memory:")

    @app.task
    async def talks() -> None:
        logging.getLogger("shop").warning("sold")

    async def main() -> None:
        handle = await talks.schedule()
        await handle.result()
        (line,) = await handle.logs()
        assert line.endswith("WARNING shop: sold")

    run(app, main)


def test_without_one_nothing_is():
    app = App(":memory:")

    @app.task
    async def talks() -> None:
        logging.getLogger("shop").warning("sold")

    async def main() -> None:
        handle = await talks.schedule()
        await handle.result()
        assert await handle.logs() == []

    run(app, main)


def test_a_result_is_shown_for_its_time(app: App, clock) -> None:
    @app.task(result_ttl="1h")
    async def answer() -> int:
        return 42

    handle = answer.schedule().wait()
    clock.advance("1s")
    assert handle.result().wait() == 42
    clock.advance("59m")
    assert handle.view().wait().result == b"42"
    clock.advance("2m")
    view = handle.view().wait()
    assert view.status is Status.ACKED and view.result is None and view.result_gone
    assert [each.result for each in app.find().wait()] == [None]
    with pytest.raises(ResultGone, match="is no longer available"):
        handle.result().wait()


def test_a_result_without_a_time_is_shown_as_long_as_the_intent(app: App, clock) -> None:
    @app.task
    async def answer() -> int:
        return 42

    handle = answer.schedule().wait()
    clock.advance("6d")
    assert handle.result().wait() == 42
