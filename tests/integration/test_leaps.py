"""A clock with two hands, one of which can be set: leases, entities, schedules, keys and dead letters."""

from __future__ import annotations

from duetime import App, Reject, Status
from duetime.limits import DAY_MS, HOUR_MS, LEAP_BELIEVED_MS, LEAP_MS
from duetime.protocol.command import Beat, Demand
from duetime.protocol.intent import DISPATCHING
from duetime.protocol.terms import Guarantee, Stream
from duetime.testing.time import EPOCH_MS, ManualClock
from tests.integration.asynchronous import asynchronous
from tests.integration.rig import SOON, Gate, engine_of, running
from tests.unit.insight.rig import world

NEWS = Stream("news")


async def passes(app: App, clock: ManualClock, ms: int, steps: int = 1) -> None:
    """Time passes, in steps, and what follows from it happens."""
    for _ in range(steps):
        clock.set_ms(clock.now_ms() + ms // steps)
        await engine_of(app).advance()
        await engine_of(app).quiet()


async def leaps(app: App, clock: ManualClock, by_ms: int) -> None:
    """Somebody sets the clock, and the engine's alarm rings for it."""
    clock.leap(by_ms)
    await engine_of(app).advance()
    await engine_of(app).quiet()


@asynchronous
async def test_a_worker_that_beats_is_not_silent_because_the_clock_leapt(tmp_path):
    async with world(tmp_path) as w:
        await w.engine.ask(Demand("w", "stream:news", 1))
        await w.many("a", 1, target=NEWS, guarantee=Guarantee.AT_MOST_ONCE)
        intent = w.store.get("a0")
        assert intent is not None
        for by_ms in (35_000, -35_000, 40 * DAY_MS, -40 * DAY_MS, -HOUR_MS):
            w.clock.leap(by_ms)
            await w.pass_ms(10_000)
            assert intent.status is DISPATCHING, by_ms
            await w.engine.ask(Beat("w"))
        await w.pass_ms(29_999)
        assert intent.status is DISPATCHING
        await w.pass_ms(1)
        assert intent.ended and intent.rare and intent.rare.last_error, (
            "it was silent for its lease, and no longer"
        )


@asynchronous
async def test_a_restart_gives_workers_a_lease_to_come_back(tmp_path):
    clock = ManualClock()
    async with world(tmp_path, clock) as w:
        await w.engine.ask(Demand("w", "stream:news", 1))
        await w.many("a", 1, target=NEWS)
    clock.set_ms(EPOCH_MS + HOUR_MS)
    async with world(tmp_path, clock) as w:
        await w.pass_ms(29_950)
        intent = w.store.get("a0")
        assert intent is not None and intent.status is DISPATCHING
        await w.pass_ms(50)
        assert intent.status is not DISPATCHING


@asynchronous
async def test_small_differences_are_no_leap(tmp_path):
    clock = ManualClock()
    app = App(":memory:", clock=clock)
    async with app:
        overview = engine_of(app).reads.overview
        records = overview().records
        for _ in range(10):
            await leaps(app, clock, LEAP_MS - 1)
        assert overview().records == records + 10, "nothing but the passing of time is written"
        await leaps(app, clock, -LEAP_MS)
        assert overview().records == records + 12


@asynchronous
async def test_an_entity_keeps_its_order_when_the_clock_is_set_back(tmp_path):
    clock, gate = ManualClock(), Gate()
    order: list[int] = []
    app = App(str(tmp_path), clock=clock)

    class Line:
        def __init__(self, id: str) -> None:
            pass

        async def add(self, number: int) -> None:
            order.append(number)
            if number == 1:
                await gate.wait()

    lines = app.entity(Line)
    async with app:
        for number in (1, 2, 3):
            await lines("x").tell("add", number)
        await gate.arrived()
        clock.leap(-1_000)
        handles = [await lines("x").tell("add", number) for number in (4, 5)]
        gate.open()
        await engine_of(app).quiet()
        assert order == [1], "by the clock on the wall it is too early for the second"
        await passes(app, clock, 1_000)
        for handle in handles:
            await handle.result(SOON)
    assert order == [1, 2, 3, 4, 5]


def ticking(path: str, clock: ManualClock, ran: list[int]) -> App:
    app = App(path, clock=clock)

    @app.every("1s", id="s")
    @app.task(name="work")
    async def work() -> None:
        ran.append(clock.now_ms() - EPOCH_MS)

    return app


@asynchronous
async def test_a_schedule_ticks_again_when_the_clock_comes_back(tmp_path, caplog):
    clock = ManualClock()
    ran: list[int] = []
    app = ticking(str(tmp_path), clock, ran)
    async with app:
        await passes(app, clock, 2_000, steps=2)
        await leaps(app, clock, 2 * HOUR_MS)
        await leaps(app, clock, -2 * HOUR_MS)
        assert ran == [1_000, 2_000, 2 * HOUR_MS + 2_000]
        await passes(app, clock, 3_000, steps=3)
        assert ran[3:] == [3_000, 4_000, 5_000]
    assert [record.getMessage() for record in caplog.records if "clock" in record.getMessage()] == [
        f"The clock was set {way} by {2 * HOUR_MS} ms." for way in ("ahead", "back")
    ]


@asynchronous
async def test_a_schedule_ticks_again_after_a_restart_with_the_right_clock(tmp_path):
    clock = ManualClock()
    ran: list[int] = []
    app = ticking(str(tmp_path), clock, ran)
    async with app:
        await passes(app, clock, 1_000)
        await leaps(app, clock, 2 * HOUR_MS)
    clock.leap(-2 * HOUR_MS)
    app = ticking(str(tmp_path), clock, ran)
    async with app:
        await engine_of(app).quiet()
        await passes(app, clock, 2_000, steps=2)
    assert ran == [1_000, 2 * HOUR_MS + 1_000, 2_000, 3_000]


@asynchronous
async def test_dead_letters_and_keys_survive_forty_days_in_a_second(tmp_path):
    clock = ManualClock()
    app = App(str(tmp_path), clock=clock)

    @app.task(name="bad")
    async def bad() -> None:
        raise Reject("never")

    async with app:
        first = await bad.options(key="k").schedule()
        await engine_of(app).quiet()
        await leaps(app, clock, 40 * DAY_MS)
        await passes(app, clock, 1_000)
        await leaps(app, clock, -40 * DAY_MS)
        await passes(app, clock, LEAP_BELIEVED_MS)
        assert await first.status() is Status.DEAD_LETTERED
        same = await bad.options(key="k", on_duplicate="return").schedule()
        assert same.id == first.id


@asynchronous
async def test_a_leap_is_on_the_log_and_read_back(tmp_path):
    clock = ManualClock()
    app = App(str(tmp_path), clock=clock)
    async with running(app):
        await leaps(app, clock, 40 * DAY_MS)
        state = engine_of(app)._kernel.state
        told = (state.doubt_ms, state.doubt_until_ms, state.flow.now_ms)
        assert told[0] == 40 * DAY_MS
    app = App(str(tmp_path), clock=clock)
    async with running(app):
        state = engine_of(app)._kernel.state
        assert (state.doubt_ms, state.doubt_until_ms, state.flow.now_ms) == told
