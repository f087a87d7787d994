"""An App by itself: how far functions are, what they log, and how long a result is shown."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from duetime import App, LogHandler, Status, progress
from duetime.errors import ResultGone


def run(app: App, main) -> None:
    async def all_of_it() -> None:
        async with app:
            await main()

    asyncio.run(all_of_it())


def test_progress_of_a_coroutine_and_of_a_thread_is_seen():
    app, go = App(":memory:"), threading.Event()
    said: list[asyncio.Event] = []
    loops: list[asyncio.AbstractEventLoop] = []

    def say(number: int, *words: Any) -> None:
        progress(*words)
        loops[0].call_soon_threadsafe(said[number].set)  # the loop hears of the progress before

    @app.task
    async def steps() -> None:
        say(0, 3, 9, "in the middle")
        await asyncio.to_thread(go.wait)

    @app.task
    def in_a_thread() -> None:
        say(1, 1)
        go.wait()

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        said.extend((asyncio.Event(), asyncio.Event()))
        one, two = await steps.schedule(), await in_a_thread.schedule()
        for event in said:
            await event.wait()
        seen = (await one.view()).progress
        assert seen is not None and (seen.done, seen.total, seen.note) == (3, 9, "in the middle")
        seen = (await two.view()).progress
        assert seen is not None and seen.done == 1
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


def test_log_lines_of_functions_are_kept_with_a_handler(handler):
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


def test_without_a_handler_no_log_lines_are_kept():
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
    assert handle.view().wait().result == 42
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
