"""Checkpoints while the engine works: never two at once, and nothing is left out."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

from duetime import App
from duetime.engine.reads.gauges import gauges
from tests.integration.rig import engine_of


def test_a_checkpoint_asked_for_while_others_are_due_does_not_meet_them(tmp_path, monkeypatch):
    monkeypatch.setattr("duetime.limits.CHECKPOINT_CHANGES", 100)
    app = App(str(tmp_path))

    @app.task(ack="ASYNC")
    async def later(number: int) -> None: ...

    async def main() -> None:
        async with app:
            for _ in range(5):
                # Each batch makes a checkpoint due while the one asked for is under way.
                asked = asyncio.ensure_future(engine_of(app).checkpoint())
                for start in range(0, 2_000, 200):
                    await later.delay("1h").schedule_many((n,) for n in range(start, start + 200))
                await asked
            counts = (await app.overview()).counts
            assert counts["SCHEDULED"] == 10_000

    asyncio.run(main())


def test_a_checkpoint_asked_for_holds_all_that_was_written_before(tmp_path):
    app = App(str(tmp_path))

    @app.task(ack="ASYNC", name="later")
    async def later(number: int) -> None: ...

    async def main() -> None:
        async with app:
            await later.delay("1h").schedule_many((n,) for n in range(3_000))
            await engine_of(app).checkpoint()
            assert gauges(engine_of(app)).store.unwritten == 0
            with closing(sqlite3.connect(tmp_path / "store.db")) as store:
                assert store.execute("SELECT count(*) FROM intents").fetchone() == (3_000,)

    asyncio.run(main())


def test_a_full_store_is_retried_and_the_engine_continues(tmp_path, sqlite_connections):
    app = App(str(tmp_path))

    @app.task(ack="ASYNC", name="later")
    async def later(number: int) -> None: ...

    async def main() -> None:
        async with app:
            engine = engine_of(app)
            for connection in sqlite_connections:
                connection.execute("PRAGMA max_page_count = 20")  # a real SQLITE_FULL
            await later.delay("1h").schedule_many((n,) for n in range(3_000))
            await engine.checkpoint()
            assert gauges(engine).store.checkpoints == 0
            assert gauges(engine).store.unwritten == 3_000, "nothing is left out of the next one"
            await later.delay("1h").schedule(1)
            for connection in sqlite_connections:
                connection.execute("PRAGMA max_page_count = 1000000")
            await engine.checkpoint()
            assert gauges(engine).store.checkpoints == 1
            assert gauges(engine).store.unwritten == 0

    asyncio.run(main())
