"""`expires`: a relative deadline, at every entry of an App, on virtual time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duetime import App, Status, errors
from duetime.protocol.command import Pause, Resume
from duetime.testing.time import EPOCH_MS, virtual
from duetime.timefmt import moment_of
from tests.integration.asynchronous import asynchronous

START = moment_of(EPOCH_MS)
LANE = "task:default"


def made():
    app = App(":memory:")

    @app.task(name="offer", expires="60s")
    async def offer(number: int = 0) -> int:
        return number

    @app.task(name="plain")
    async def plain(number: int = 0) -> int:
        return number

    return app, offer, plain


async def deadline_of(handle):
    view = await handle.view()
    return None if view.deadline is None else (view.deadline - START).total_seconds()


@asynchronous
async def test_an_intent_expires_after_its_time_of_execution():
    app, offer, plain = made()
    async with virtual(app) as clock:
        await app.ask(Pause(LANE))
        handles = {
            60: await offer.schedule(1),
            3_660: await offer.delay("1h").schedule(1),
            120: await offer.at(START + timedelta(minutes=1)).schedule(1),
            5: await offer.options(expires=5).schedule(1),
            7: await plain.options(expires=timedelta(seconds=7)).schedule(1),
        }
        assert {seconds: await deadline_of(each) for seconds, each in handles.items()} == {
            seconds: seconds for seconds in handles
        }
        many = await offer.schedule_many([(n,) for n in range(3)])
        assert [await deadline_of(each) for each in many] == [60, 60, 60]
        kept = await plain.schedule(1)
        await clock.advance("59s")
        assert await many[0].status() is Status.DUE
        await clock.advance("2s")
        assert {await each.status() for each in many} == {Status.EXPIRED}
        await app.ask(Resume(LANE))
        assert await kept.result("5s") == 1


@asynchronous
async def test_an_expired_intent_becomes_a_dead_letter_if_asked_and_a_revived_one_has_its_time_again():
    app, offer, _ = made()
    async with virtual(app) as clock:
        await app.ask(Pause(LANE))
        handle = await offer.options(expired_action="dead-letter").schedule(1)
        await clock.advance("61s")
        assert await handle.status() is Status.DEAD_LETTERED
        await handle.revive()
        assert await deadline_of(handle) == 121
        await handle.patch(at=START + timedelta(hours=1))
        assert await deadline_of(handle) == 3_660
        await handle.patch(deadline=None)
        assert await deadline_of(handle) is None


@asynchronous
async def test_dependents_members_and_steps_count_from_their_release():
    app, offer, plain = made()
    async with virtual(app) as clock:
        first = await plain.delay("1h").schedule(1)
        second = await offer.options(after=[first]).schedule(2)
        chain = await app.chain(plain.bind(1).with_options(delay="1h"), offer.bind(2))
        group = await app.group([offer.bind(1).with_options(delay="1h")], offer.bind(2))
        waiting = [second, chain, group]
        assert [await deadline_of(each) for each in waiting] == [None, None, None]
        assert await deadline_of(group.member(0)) == 3_660
        await clock.advance("61m")
        assert [await each.status() for each in waiting] == [Status.ACKED] * 3
        assert {await deadline_of(each) for each in waiting} == {3_660}


@asynchronous
async def test_ticks_of_a_schedule_expire():
    app, offer, _ = made()
    app.every("1h", id="hourly", args=(1,))(offer)
    async with virtual(app) as clock:
        await app.ask(Pause(LANE))
        await clock.advance("3h")
        found = await app.find(status="expired")
        lasted = [each.deadline - each.execute_at for each in found if each.deadline is not None]
        assert lasted == [timedelta(seconds=60)] * 2
        assert (await app.schedules.get("hourly")).intent.expires_ms == 60_000


@asynchronous
async def test_entities_and_bare_intents_expire():
    app = App(":memory:")

    class Cart:
        def __init__(self, id: str) -> None: ...

        async def add(self) -> None: ...

    carts = app.entity(Cart, expires="60s")

    @app.default
    async def bare(payload: object, context: object) -> None: ...

    async with virtual(app):
        assert await deadline_of(await carts("1").tell("add")) == 60
        assert await deadline_of(await carts("1").message("add", expires="5s").schedule()) == 5
        assert await deadline_of(await app.schedule(1, expires="7s", delay="1s")) == 8


@pytest.mark.parametrize("expires", [0, "0s", -1, "soon", "366d", 10**14])
def test_a_wrong_value_is_refused_where_it_is_written(expires):
    with pytest.raises(errors.InvalidField):
        App(":memory:").task(expires=expires)


@asynchronous
async def test_a_deadline_of_both_kinds_is_refused():
    app, offer, _ = made()
    async with virtual(app):
        with pytest.raises(errors.InvalidField, match="Both deadline and expires"):
            await offer.options(deadline=START + timedelta(hours=1)).schedule(1)
        handle = await offer.options(deadline=START + timedelta(hours=1), expires=None).schedule(1)
        assert await deadline_of(handle) == 3_600
