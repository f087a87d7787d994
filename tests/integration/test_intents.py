"""Intents through the App: keys, dependencies, many at once, entities, deadlines; and after a restart."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from duetime import App, Retry, Status, current, errors
from duetime.protocol.outcome import Done, Settlement
from tests.integration.rig import SOON, Gate, engine_of, running


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


def run(coroutine):
    return asyncio.run(coroutine)


def test_many_are_written_together_and_all_run(app):
    ran = []

    @app.task
    async def note(number: int) -> int:
        ran.append(number)
        return number

    async def main():
        async with app:
            handles = await note.schedule_many((n,) for n in range(5_000))
            assert len({handle.id for handle in handles}) == 5_000
            assert [await handle.result(SOON) for handle in handles] == list(range(5_000))
            assert await note.schedule_many([]) == []
            with pytest.raises(errors.InvalidField, match="cannot share one"):
                await note.options(key="k").schedule_many([(1,)])
        assert sorted(ran) == list(range(5_000))

    run(main())


def test_one_waits_for_others(app):
    order = []

    @app.task(tier="ULTRA")
    async def step(name: str) -> None:
        order.append(name)

    async def main():
        async with app:
            first = await step.delay("300ms").schedule("first")
            second = await step.schedule("second")
            last = await step.options(after=[first, second.id]).schedule("last")
            assert await last.status() is Status.BLOCKED
            assert "first" not in order
            await last.result(SOON)
        assert order == ["second", "first", "last"]

    run(main())


def test_an_intent_with_a_failed_parent_is_a_dead_letter_with_the_reason(app):
    @app.task(retry=Retry(max_attempts=1))
    async def fails() -> None:
        raise ValueError("no")

    @app.task
    async def child() -> None: ...

    async def main():
        async with app:
            parent = await fails.delay("20ms").schedule()
            waiting = await child.options(after=[parent]).schedule()
            with pytest.raises(errors.NotAcked, match=parent.id):
                await waiting.result(SOON)

    run(main())


def test_a_key_names_one_intent_also_after_a_restart(app):
    @app.task
    async def pay(amount: int) -> int:
        return amount

    async def main():
        async with app:
            one = await pay.options(key="order-1", delay="1h").schedule(5)
            assert (await pay.options(key="order-1", delay="1h").schedule(5)).id == one.id
        async with app:
            assert (await pay.options(key="order-1", delay="1h").schedule(5)).id == one.id
            with pytest.raises(errors.KeyReused):
                await pay.options(key="order-1", delay="1h").schedule(6)
            await app.handle(one.id).fire()
            assert await app.handle(one.id).result(SOON) == 5
        async with app:
            again = pay.options(key="order-1", delay="1h")
            with pytest.raises(errors.KeyFinished):
                await again.schedule(5)
            assert (await again.options(on_duplicate="return").schedule(5)).id == one.id
            assert len(await app.find()) == 1

    run(main())


def test_an_id_is_taken_once(app):
    @app.task
    async def work() -> None: ...

    async def main():
        async with app:
            await work.options(id="mine", delay="1h").schedule()
        async with app:
            with pytest.raises(errors.IdExists):
                await work.options(id="mine").schedule()
            assert await app.handle("mine").status() is Status.SCHEDULED
            with pytest.raises(errors.NoSuchIntent):
                await app.handle("other").status()

    run(main())


def test_at_a_moment(app):
    @app.task(tier="ULTRA")
    async def work() -> None: ...

    async def main():
        async with app:
            soon = datetime.now(UTC) + timedelta(milliseconds=60)  # tidy: a moment of the real clock
            handle = await work.at(soon).schedule()
            assert (await handle.why()).code == "waiting-for-time"
            await handle.result(SOON)
            view = await handle.view()
            assert view.first_dispatch_at is not None and view.first_dispatch_at >= view.execute_at
            assert view.execute_at == soon.replace(microsecond=soon.microsecond // 1000 * 1000)
            with pytest.raises(errors.InThePast):
                await work.at("2001-01-01T00:00:00Z").schedule()
            with pytest.raises(errors.DeadlineTooEarly):
                await work.options(at=soon, deadline=soon - timedelta(seconds=1)).schedule()

    run(main())


def test_too_late_is_not_run(app):
    ran = []

    @app.task(queue="closed")
    async def work() -> None:
        ran.append(1)

    async def main():
        from duetime.protocol.command import Pause, Resume

        async with app:
            await app.ask(Pause("task:closed"))
            deadline = datetime.now(UTC) + timedelta(milliseconds=50)  # tidy: a moment of the real clock
            expired = await work.options(deadline=deadline).schedule()
            dead = await work.options(deadline=deadline, expired_action="DEAD_LETTER").schedule()
            for handle, status in ((expired, "EXPIRED"), (dead, "DEAD_LETTERED")):
                with pytest.raises(errors.NotAcked, match=status):
                    await handle.result(SOON)
            await app.ask(Resume("task:closed"))
            await (await work.schedule()).result(SOON)
        assert ran == [1]

    run(main())


def test_an_entity_gets_its_messages_one_at_a_time_in_order(app):
    async def main():
        log: dict[str, list[int]] = {}
        running_now: dict[str, int] = {}

        class Account:
            def __init__(self, id: str) -> None:
                self.id = id

            async def deposit(self, cents: int) -> int:
                running_now[self.id] = running_now.get(self.id, 0) + 1
                assert running_now[self.id] == 1, "one at a time"
                await asyncio.to_thread(lambda: None)
                log.setdefault(self.id, []).append(cents)
                running_now[self.id] -= 1
                return cents

            def plain(self, cents: int) -> int:
                log.setdefault(self.id, []).append(cents)
                return cents

        accounts = app.entity(Account)
        async with app:
            handles = []
            for number in range(60):
                message = "plain" if number % 7 == 0 else "deposit"
                handles.append(await accounts(f"a{number % 3}").tell(message, number))
            for number, handle in enumerate(handles):
                assert await handle.result(SOON) == number
            with pytest.raises(errors.UnknownTask, match="has no message 'withdraw'"):
                await accounts("a1").tell("withdraw", 1)
            with pytest.raises(errors.InvalidField, match="cannot be called with these arguments"):
                await accounts("a1").tell("deposit")
        assert log == {f"a{k}": list(range(k, 60, 3)) for k in range(3)}

    run(main())


def test_an_entity_keeps_its_order_across_a_restart(app):
    async def main():
        gate, order = Gate(), []

        class Line:
            def __init__(self, id: str) -> None:
                pass

            async def add(self, number: int) -> None:
                order.append(number)
                if len(order) == 3:
                    await gate.wait()

        lines = app.entity(guarantee="AT_LEAST_ONCE")(Line)
        async with running(app):
            for number in range(10):
                await lines("x").tell("add", number)
            await gate.arrived()
        assert order == [0, 1, 2]
        async with app:
            for view in await app.find():
                await app.handle(view.intent_id).result(SOON)
        assert order == [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9], "the interrupted one again, before those behind"

    run(main())


def test_an_entity_that_cannot_be_made_fails_like_any_function(app):
    made = []

    class Fussy:
        def __init__(self, id: str) -> None:
            made.append(id)
            if len(made) == 1:
                raise ValueError("not today")

        async def hello(self) -> str:
            return "hello"

    fussy = app.entity(Fussy)

    async def main():
        async with app:
            first = await fussy("f").tell("hello")
            second = await fussy("f").tell("hello")
            with pytest.raises(errors.NotAcked, match="not today"):
                await first.result(SOON)
            assert await second.result(SOON) == "hello", "those behind it go on"

    run(main())


def test_finished_and_cold_intents_are_there_after_a_restart(app):
    @app.task
    async def work(number: int) -> int:
        return number

    async def main():
        async with app:
            done = await work.schedule(1)
            await done.result(SOON)
            far = await work.delay("300d").schedule(2)
            gone = await work.delay("1h").schedule(3)
            await gone.cancel()
            before = [await handle.history() for handle in (done, far, gone)]
        async with app:
            assert [await handle.history() for handle in (done, far, gone)] == before
            assert await done.result(SOON) == 1
            assert (await far.why()).code == "waiting-for-time"
            assert await gone.status() is Status.CANCELED
            assert [view.intent_id for view in await app.find()] == [gone.id, far.id, done.id]
            assert [view.intent_id for view in await app.find(status="scheduled")] == [far.id]
            assert len(await app.find(limit=2)) == 2
            assert await far.fire() and await far.result(SOON) == 2

    run(main())


def test_an_outcome_of_an_earlier_delivery_is_refused(app):
    async def main():
        gate = Gate()

        @app.task(retry=Retry(max_attempts=2, initial_delay="1ms"))
        async def work() -> str:
            if current().delivery == 1:
                raise ConnectionError
            await gate.wait()
            return "second"

        async with app:
            handle = await work.schedule()
            await gate.arrived()
            engine_of(app).settle([Settlement(handle.id, 1, Done(b'"first, late"'))])
            await (await work.delay("1h").schedule()).cancel()  # written after it
            assert await handle.status() is Status.DISPATCHING
            assert (await app.overview()).stale_outcomes == 1
            gate.open()
            assert await handle.result(SOON) == "second"

    run(main())
