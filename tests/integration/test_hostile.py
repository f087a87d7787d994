"""Callers and functions that do what they should not: nobody else suffers, and nothing is lost or hung."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest

from duetime import App, Retry, Snooze, Status, errors
from duetime.protocol.command import Cancel, Drain, Pause, Resize, Start
from tests.integration.rig import engine_of


def make(path) -> Any:
    app = App(str(path))

    @app.task(name="ok")
    async def ok(number: int = 0) -> int:
        return number

    app.ok = ok  # type: ignore[attr-defined]
    return app


async def is_well(app) -> None:
    assert await (await app.ok.schedule(7)).result("10s") == 7


OPTIONS = [
    {"priority": 1.5},
    {"priority": True},
    {"key": b"abc"},
    {"key": "\ud800"},
    {"shard_key": b"x"},
    {"traceparent": 5},
    {"traceparent": "x" * 600_000},
    {"after": ["\ud800"]},
    {"after": ["x" * 10_000] * 1_000},
    {"tags": {"a": 1}},
    {"id": "\ud800"},
]


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
def test_an_option_that_could_not_be_read_again_is_refused_and_the_folder_opens_again(tmp_path, options):
    async def main() -> None:
        app = make(tmp_path)
        async with app:
            with pytest.raises(errors.InvalidField):
                await app.ok.options(delay="1h", **options).schedule()
            await is_well(app)
        async with make(tmp_path) as again:
            await is_well(again)

    asyncio.run(main())


NONE: Any = None
TEXT: Any = "1"
WRONG = [Pause(NONE), Resize(NONE, 5), Cancel("x", TEXT), Cancel(NONE), Start(0), Drain()]


@pytest.mark.parametrize("command", WRONG)
def test_a_command_that_is_wrong_or_not_for_callers_is_refused(tmp_path, command):
    async def main() -> None:
        app = make(tmp_path)
        async with app:
            with pytest.raises(errors.InvalidField):
                await app.ask(command)
            await is_well(app)
        async with make(tmp_path) as again:
            await is_well(again)

    asyncio.run(main())


class Hostile(Exception):
    def __str__(self) -> str:
        return "bad name \udcff" * 10_000


@pytest.mark.parametrize("raised", [Hostile(), Snooze(1e300), Snooze("nonsense"), SystemExit(3)])
def test_an_error_that_cannot_be_stored_as_it_is_does_no_harm(tmp_path, raised, monkeypatch):
    monkeypatch.setattr(logging.getLogger("duetime.runs"), "disabled", True)  # its text is not for pytest

    async def main() -> None:
        app = make(tmp_path)

        @app.task(retry=Retry(max_attempts=1))
        async def bad() -> None:
            raise raised

        async with app:
            handle = await bad.schedule()
            await engine_of(app).quiet()
            assert await handle.status() in (Status.DEAD_LETTERED, Status.SCHEDULED)
            await is_well(app)

    asyncio.run(main())


class Refuses:
    def model_dump(self, mode: str) -> None:
        raise RuntimeError("boom")


def test_a_result_that_fails_to_encode_is_a_dead_letter(tmp_path):
    async def main() -> None:
        app = make(tmp_path)

        @app.task
        def in_thread() -> Refuses:
            return Refuses()

        @app.task
        async def on_loop() -> Refuses:
            return Refuses()

        async with app:
            for task in (in_thread, on_loop):
                with pytest.raises(errors.NotAcked, match="boom"):
                    await (await task.schedule()).result("10s")
            await is_well(app)

    asyncio.run(main())


def test_a_function_that_cancels_its_own_task_ends_and_the_next_one_runs(tmp_path):
    async def main() -> None:
        app = make(tmp_path)

        @app.task(retry=Retry(max_attempts=1))
        async def cancels() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)  # tidy: here the cancellation arrives

        async with app:
            handle = await cancels.schedule()
            await engine_of(app).quiet()
            assert await handle.status() is Status.DEAD_LETTERED
            await is_well(app)

    asyncio.run(main())


def test_a_failed_engine_writes_no_more_checkpoints(tmp_path, monkeypatch):
    async def main() -> None:
        app = make(tmp_path)
        async with app:
            await is_well(app)
            kernel = engine_of(app)._kernel
            monkeypatch.setattr(kernel, "apply", lambda record: 1 / 0)
            with pytest.raises(errors.Fatal):
                await app.ok.schedule()
            checkpointer = engine_of(app)._checkpointer
            count = checkpointer.count
            checkpointer.changed()
            await checkpointer.finished()
            assert checkpointer.count == count and not checkpointer.planned
        async with make(tmp_path) as again:
            await is_well(again)

    asyncio.run(main())


def test_stopping_continues_when_its_caller_is_cancelled(tmp_path):
    async def main() -> None:
        app = make(tmp_path)
        begun, release = asyncio.Event(), asyncio.Event()

        @app.task
        async def holds() -> None:
            begun.set()
            await release.wait()

        await app.start()
        await holds.schedule()
        await begun.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(app.stop(), 0.05)
        release.set()
        await app.stop()
        async with make(tmp_path) as again:
            await is_well(again)

    asyncio.run(main())


def test_a_program_that_never_stops_its_app_still_ends(tmp_path):
    program = """
import asyncio, sys
from duetime import App
app = App(sys.argv[1])
begun = asyncio.Event()
@app.task
async def slow():
    begun.set()
    await asyncio.Event().wait()
async def main():
    await app.start()
    await slow.schedule()
    await begun.wait()
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], timeout=30, capture_output=True, check=False
    )
    assert done.returncode == 0


def test_values_without_a_json_form_are_refused():
    app = App(":memory:")

    @app.task
    async def takes(value: object) -> None: ...

    with app:
        for value in (float("nan"), [1.0, float("inf")], {"a": float("-inf")}):
            with pytest.raises(errors.InvalidField, match="NaN"):
                takes.schedule(value).wait()
        takes.schedule(None).wait()
        with pytest.raises(errors.InvalidField, match="tuple"):
            takes.schedule_many([1, 2]).wait()  # type: ignore[list-item]
