"""Schedules over time: dates to leave out, backfill, and rules that a program no longer has."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, date, datetime, timedelta

import pytest

from duetime import App, errors
from duetime.client.http.client import Client
from tests.integration.asynchronous import asynchronous

HOUR = timedelta(hours=1)


@pytest.fixture(params=["folder", "server"])
def where(request, tmp_path):
    return request.getfixturevalue("server").url if request.param == "server" else str(tmp_path / "data")


def program(where, ids, **options):
    """An app with a rule for each of these ids."""
    app = App(where, **options)

    @app.task(name="upkeep", queue="nobody")
    def work() -> None: ...

    for id in ids:
        app.every("1h", id=id)(work)
    return app, work


def names(found):
    return {each.id for each in found}


@asynchronous
async def test_dates_are_left_out(where, fresh):
    app, work = program(where, [])
    days = [date(2100, 12, 25), "2100-12-26"]
    async with app:
        id = fresh()
        rule = {"cron": "0 9 * * *", "zone": "Europe/Paris", "start": datetime(2100, 12, 24, tzinfo=UTC)}
        made = await app.schedules.put(work, id=id, skip=days, **rule)
        assert made.skip == ["2100-12-25", "2100-12-26"]
        ticks = await app.schedules.next(id, 3)
        assert [tick.astimezone(UTC).date().day for tick in ticks] == [24, 27, 28]
        with pytest.raises(errors.InvalidField, match="date"):
            await app.schedules.put(work, id=id, skip=["25.12.2100"], **rule)
        many = [date(2100, 1, 1) + n * timedelta(days=1) for n in range(401)]
        with pytest.raises(errors.InvalidField, match="400"):
            await app.schedules.put(work, id=id, skip=many, **rule)


@asynchronous
async def test_a_backfill_makes_each_tick_once(where, fresh):
    app, work = program(where, [])
    async with app:
        id = fresh()
        await app.schedules.put(work, id=id, every="1h")
        now = datetime.now(UTC)  # tidy: the server's clock is the real one
        first = now.replace(minute=0, second=0, microsecond=0) - 5 * HOUR
        done = await app.schedules.backfill(id, first, first + 3 * HOUR)
        assert (done.ticks, done.created, done.existing) == (3, 3, 0)
        made = await app.find(task="upkeep", limit=3)
        assert {each.intent_id for each in made} == {
            f"{id}@{int((first + n * HOUR).timestamp() * 1000)}" for n in range(3)
        }
        again = await app.schedules.backfill(id, first, first + 4 * HOUR)
        assert (again.ticks, again.created, again.existing) == (4, 1, 3)
        assert (await app.schedules.backfill(id, first + HOUR / 2, first + HOUR * 3 / 4)).ticks == 0
        for since, until in ((first, now + HOUR), (first, first)):
            with pytest.raises(errors.InvalidField, match="past"):
                await app.schedules.backfill(id, since, until)
        with pytest.raises(errors.InvalidField, match="1000 ticks"):
            await app.schedules.backfill(id, now - 2000 * HOUR, now - HOUR)
        with pytest.raises(errors.NoSuchSchedule):
            await app.schedules.backfill("no-such", first, first + HOUR)


@asynchronous
async def test_removed_rules_are_told_of_and_deleted_on_demand(where, fresh, caplog):
    kept, gone, name = fresh()[-40:], fresh()[-40:], f"p{abs(hash(where + fresh())) % 10**9}"
    app, _ = program(where, [kept, gone], name=name)
    async with app:
        assert app.orphans == ()
    app, _ = program(where, [kept], name=name)
    with caplog.at_level(logging.WARNING):
        async with app:
            assert app.orphans == (gone,)
            assert (await app.schedules.get(gone)).orphan and not (await app.schedules.get(kept)).orphan
    assert gone in caplog.text
    app, _ = program(where, [kept, gone], name=name)
    async with app:
        assert app.orphans == () and not (await app.schedules.get(gone)).orphan, "it is in the program again"
    app, _ = program(where, [kept], name=name)
    async with app:
        assert await app.schedules.delete_orphans() == [gone]
        assert app.orphans == () and gone not in names(await app.schedules.list())
    app, _ = program(where, [], name=name, delete_orphans=True)
    async with app:
        assert app.orphans == () and kept not in names(await app.schedules.list())


@asynchronous
async def test_several_processes_of_a_program_may_start_together(where, fresh):
    gone, name = fresh()[-40:], f"t{abs(hash(where + fresh())) % 10**9}"
    app, _ = program(where, [gone], name=name)
    async with app:
        for delete in (False, True):
            own = [app.backend.own_schedules(f"app:{name}", [], delete) for _ in range(3)]
            assert gone in (await asyncio.gather(*own))[0]
        assert gone not in names(await app.schedules.list())


@asynchronous
async def test_programs_without_a_name_do_not_delete_what_others_may_own(server, fresh, caplog):
    id = fresh()[-40:]
    app, _ = program(server.url, [id])
    async with app:
        pass
    app, _ = program(server.url, [])
    async with app, Client(server.url) as client:
        assert id in app.orphans and "another program" in caplog.text
        assert not (await client.schedules.get(id)).orphan
        with pytest.raises(errors.InvalidField, match="name"):
            await app.schedules.delete_orphans()
    app, _ = program(server.url, [], delete_orphans=True)
    with pytest.raises(errors.InvalidField, match="name"):
        await app.start()


def test_a_name_is_short(tmp_path):
    for name in ("", "x" * 29, "a\nb"):
        with pytest.raises(errors.InvalidField, match="characters"):
            App(tmp_path, name=name)
