"""What happens again and again, on virtual time and across restarts."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from duetime import App
from duetime.engine.schedules import calendar
from duetime.errors import InvalidField, NoSuchSchedule
from duetime.testing.time import EPOCH_MS, ManualClock, virtual
from duetime.timefmt import moment_of
from tests.integration.asynchronous import asynchronous
from tests.integration.rig import Gate, engine_of, running

DAY = 86_400_000


def counting(rule, **options):
    """An app with one function that keeps a rule, and the moments at which it ran."""
    app = App(":memory:")
    ran = []

    @getattr(app, rule[0])(rule[1], **options)
    @app.task(name="work")
    async def work() -> None:
        ran.append(app.backend.now_ms() - EPOCH_MS)

    return app, ran


@asynchronous
async def test_every_five_minutes():
    app, ran = counting(("every", "5m"))
    async with virtual(app) as clock:
        await clock.advance("1h")
        assert ran == [n * 300_000 for n in range(1, 13)]
        table = await app.schedules.get("work")
        assert (table.made, table.missed, table.skipped) == (12, 0, 0)


@asynchronous
async def test_nine_in_paris_in_winter_and_in_summer():
    app, ran = counting(("cron", "0 9 * * *"), zone="Europe/Paris")
    async with virtual(app) as clock:
        await clock.advance("365d")
        hours = {datetime.fromtimestamp((EPOCH_MS + each) / 1000, UTC).hour for each in ran}
        assert len(ran) == 365 and hours == {7, 8}


@asynchronous
async def test_a_plain_function_with_arguments():
    app, ran = App(":memory:"), []

    @app.every("1h", id="hourly", args=(2,), kwargs={"b": 3})
    async def work(a: int, b: int) -> None:
        ran.append((a, b))

    async with virtual(app) as clock:
        await clock.advance("3h")
        assert ran == [(2, 3)] * 3
        assert work.name.endswith("work")


@asynchronous
async def test_pause_resume_trigger_next_delete():
    app, ran = counting(("every", "1h"))
    async with virtual(app) as clock:
        assert [each.hour for each in await app.schedules.next("work", 3)] == [1, 2, 3]
        await app.schedules.pause("work")
        assert await app.schedules.next("work") == []
        await clock.advance("5h")
        assert ran == []
        await app.schedules.resume("work")
        await clock.advance("1h")
        assert len(ran) == 1, "those of the pause are gone"
        view = await app.schedules.trigger("work")
        await app.handle(view.intent_id).result("10s")
        assert len(ran) == 2 and view.intent_id.startswith("work@now-")
        assert [table.id for table in await app.schedules.list()] == ["work"]
        await app.schedules.delete("work")
        await clock.advance("5h")
        assert len(ran) == 2 and await app.schedules.list() == []
        with pytest.raises(NoSuchSchedule):
            await app.schedules.resume("work")


@asynchronous
async def test_skip_while_one_runs():
    app, gate = App(":memory:"), Gate()

    @app.every("1m", overlap="skip", id="slow")
    @app.task(timeout="30d")
    async def slow() -> None:
        await gate.wait()

    clock = ManualClock()
    app.rewire(":memory:", clock=clock)
    async with running(app):
        for minute in range(1, 5):
            clock.set_ms(EPOCH_MS + minute * 60_000)
            await engine_of(app).advance()
        await gate.arrived(1)
        table = await app.schedules.get("slow")
        assert (table.made, table.skipped) == (1, 3)


@asynchronous
@pytest.mark.parametrize(("misfire", "made"), [("once", [10]), ("skip", []), ("catch_up", [8, 9, 10])])
async def test_ticks_missed_during_the_downtime(tmp_path, misfire, made):
    clock, ran = ManualClock(), []

    def app():
        made = App(str(tmp_path), clock=clock)

        @made.every("1h", id="s", misfire=misfire, catch_up=3)
        @made.task(name="work")
        async def work() -> None:
            pass

        return made

    first = app()
    async with first:
        pass
    clock.set_ms(EPOCH_MS + 10 * 3_600_000 + 60_000)
    second = app()
    second.observe(lambda change: ran.append(change.intent_id) if change.previous_status is None else None)
    async with second:
        await engine_of(second).advance()
        await second.backend.quiet()
        assert ran == [f"s@{EPOCH_MS + hour * 3_600_000}" for hour in made]
        table = await second.schedules.get("s")
        assert table.made == len(made) and table.missed == 10 - len(made)
        assert table.next_at == moment_of(EPOCH_MS + 11 * 3_600_000)


@asynchronous
async def test_a_changed_rule_replaces_and_a_removed_one_is_named(tmp_path, caplog):
    clock = ManualClock()

    def app(**rules):
        made = App(str(tmp_path), clock=clock)

        @made.task(name="work")
        async def work() -> None:
            pass

        for id, every in rules.items():
            made.every(every, id=id)(work)
        return made

    async with app(a="1h", b="1h") as first:
        assert first.orphans == ()
        before = await first.schedules.get("b")
    with caplog.at_level(logging.WARNING, "duetime"):
        async with app(b="2h") as second:
            assert second.orphans == ("a",)
            assert "'a' is no longer in the program" in caplog.text
            after = await second.schedules.get("b")
            assert (before.revision, after.revision) == (1, 2)
            assert after.every_ms == 7_200_000
            await second.schedules.delete("a")
    async with app(b="2h") as third:
        assert third.orphans == ()
        assert (await third.schedules.get("b")).revision == 2, "the same rule changes nothing"


@asynchronous
async def test_jitter_start_and_end():
    app, ran = counting(
        ("every", "1h"),
        jitter="10m",
        start=(EPOCH_MS + 1_800_000) / 1000,
        end=(EPOCH_MS + 4 * 3_600_000) / 1000,
    )
    async with virtual(app) as clock:
        await clock.advance("1d")
        assert len(ran) == 4
        late = [each - 1_800_000 - n * 3_600_000 for n, each in enumerate(ran)]
        assert all(0 <= each <= 601_000 for each in late) and len(set(late)) > 1
        assert (await app.schedules.get("work")).next_at is None
        assert await app.schedules.next("work") == []


@asynchronous
async def test_a_schedule_of_a_running_app():
    app, ran = App(":memory:"), []

    @app.every("1h")
    @app.task(name="work")
    async def work() -> None:
        ran.append(1)

    async with virtual(app) as clock:
        await app.schedules.put(work, id="second", cron="*/10 * * * *")
        await clock.advance("1h")
        assert len(ran) == 7
        with pytest.raises(InvalidField, match="time zone"):
            await app.schedules.put(work, id="x", cron="* * * * *", zone="Mars/Base")
        with pytest.raises(InvalidField, match="not a cron rule"):
            await app.schedules.put(work, id="x", cron="99 * * * *")


def test_invalid_options_are_refused_where_they_are_written():
    app = App(":memory:")

    @app.task(name="work")
    def work() -> None: ...

    with pytest.raises(InvalidField, match="not a duration"):
        app.every("soon")(work)
    with pytest.raises(InvalidField, match="no overlap"):
        app.every("1h", overlap="maybe")(work)
    with pytest.raises(InvalidField, match="no option 'colour'"):
        app.every("1h", colour="red")(work)  # type: ignore[call-arg]
    with pytest.raises(InvalidField, match="exactly one"):
        app.cron("")(work)
    app.every("1h")(work)
    with pytest.raises(InvalidField, match="Two schedules"):
        app.every("2h")(work)


@asynchronous
async def test_a_rule_that_means_nothing_stops_the_start(tmp_path):
    app = App(str(tmp_path))

    @app.cron("0 9 * * *", zone="Nowhere/Land")
    @app.task(name="work")
    def work() -> None: ...

    with pytest.raises(InvalidField, match="time zone"):
        await app.start()
    async with App(str(tmp_path)):
        pass  # the folder was let go of


@asynchronous
async def test_a_rule_that_cannot_be_resolved_any_more_is_paused(monkeypatch, caplog):
    def lost(table, now_ms):
        raise KeyError("the zone is gone")

    app, ran = counting(("every", "1h"))
    async with virtual(app) as clock:
        monkeypatch.setattr(calendar, "tick", lost)
        await clock.advance("1h")
        assert (await app.schedules.get("work")).paused and ran == []
        assert "'work' is paused" in caplog.text


@asynchronous
async def test_a_real_clock_rings_for_a_tick():
    app, gate = App(":memory:"), Gate()

    @app.every("1s", overlap="skip", id="quick")
    @app.task
    async def quick() -> None:
        await gate.wait()

    async with running(app):
        await gate.arrived(1)
        gate.open()
        await gate.arrived(2)


@asynchronous
async def test_no_schedule_ticks_more_often_than_once_a_second():
    """Embedded as on a server: thousands of quick ones would be the whole load of an engine."""
    app = App(":memory:")

    @app.every("999ms", id="quick")
    @app.task
    async def quick() -> None: ...

    with pytest.raises(InvalidField, match="every 999 ms is out of range: 1000 ms to a year"):
        async with app:
            pass
