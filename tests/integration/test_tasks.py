"""Tasks on the real engine over a real folder: how each kind of function runs and ends."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

from duetime import App, Reject, Retry, RetryAfter, Snooze, Status, Task, current, errors
from duetime.clock import SystemClock
from tests.integration.rig import SOON, Gate, ThreadGate, running

QUICK = Retry(max_attempts=3, initial_delay="1ms", jitter=False)


def no_number_in_process() -> float:
    return math.nan


def double_in_process(number: int) -> int:
    """Found by its name in another process."""
    return 2 * number


def die_in_process() -> None:
    import os

    os._exit(3)


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


def test_async_use(app):
    @app.task
    async def add(a: int, b: int = 10) -> int:
        return a + b

    async def main():
        async with app:
            assert await (await add.schedule(1, 2)).result(SOON) == 3
            assert await (await add.schedule(1)).result(SOON) == 11
            assert await (await add.schedule(b=5, a=1)).result(SOON) == 6

    run(main())


def test_plain_use(app):
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task
    def where() -> str:
        return threading.current_thread().name

    with app:
        assert add.schedule(1, 2).wait(10).result(SOON).wait() == 3
        assert where.schedule().wait(10).result(SOON).wait().startswith("duetime-task")
        assert [view.status for view in app.find().wait()] == [Status.ACKED] * 2


def test_a_task_is_still_a_function(app):
    @app.task
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(1, 2) == 3 and add.__name__ == "add" and add.__doc__ == "Adds."


def test_a_thread_does_not_stop_the_loop(app):
    gate = ThreadGate()

    @app.task
    def slow() -> str:
        gate.wait()
        return "slow"

    @app.task
    async def quick() -> str:
        return "quick"

    async def main():
        async with app:
            waiting = await slow.schedule()
            assert await asyncio.to_thread(gate.came.wait, 10)
            assert await (await quick.schedule()).result(SOON) == "quick"
            gate.go.set()
            assert await waiting.result(SOON) == "slow"

    run(main())


def test_cpu_bound_runs_in_another_process(app):
    double = app.task(cpu_bound=True)(double_in_process)
    dies = app.task(cpu_bound=True, retry=Retry(max_attempts=1))(die_in_process)
    no_number = app.task(cpu_bound=True)(no_number_in_process)

    async def main():
        async with app:
            assert await (await double.schedule(21)).result("60s") == 42
            with pytest.raises(errors.NotAcked, match="died"):
                await (await dies.schedule()).result("60s")
            handle = await no_number.schedule()
            with pytest.raises(errors.NotAcked, match=r"result: .*NaN or infinite"):
                await handle.result("60s")
            assert (await handle.view()).attempts == 1, "it would be the same again"

    run(main())


def test_a_cpu_bound_coroutine_is_refused(app):
    with pytest.raises(errors.InvalidField, match="plain function"):

        @app.task(cpu_bound=True)
        async def wrong() -> None: ...


def test_a_failing_task_is_retried_until_it_succeeds(app):
    seen = []

    @app.task(retry=QUICK)
    async def flaky() -> int:
        seen.append((current().attempt, current().delivery, current().max_attempts))
        if len(seen) < 3:
            raise ConnectionError("not yet")
        return len(seen)

    async def main():
        async with app:
            handle = await flaky.schedule()
            assert await handle.result(SOON) == 3
            assert seen == [(1, 1, 3), (2, 2, 3), (3, 3, 3)]
            steps = [entry.status.name for entry in await handle.history()]
            assert steps == [*["SCHEDULED", "DUE", "DISPATCHING"] * 3, "ACKED"]

    run(main())


def test_a_task_that_always_fails_is_a_dead_letter_with_its_reason(app):
    @app.task(retry=QUICK)
    def broken() -> None:
        raise ValueError("bad luck")

    async def main():
        async with app:
            handle = await broken.schedule()
            with pytest.raises(errors.NotAcked, match=r"DEAD_LETTERED: .*bad luck") as caught:
                await handle.result(SOON)
            view: Any = caught.value.details["view"]
            assert view.attempts == 3 and view.last_error.kind == "ValueError"
            assert (await handle.revive()).status in (Status.SCHEDULED, Status.DUE, Status.DISPATCHING)

    run(main())


def test_reject_goes_straight_to_the_dead_letters(app):
    @app.task
    async def refuse() -> None:
        raise Reject("no such account")

    async def main():
        async with app:
            handle = await refuse.schedule()
            with pytest.raises(errors.NotAcked, match="no such account"):
                await handle.result(SOON)
            assert (await handle.view()).attempts == 1

    run(main())


def test_snooze_gives_the_attempt_back(app):
    seen = []

    @app.task(retry=Retry(max_attempts=1))
    async def later() -> str:
        seen.append((current().attempt, current().delivery))
        if len(seen) < 3:
            raise Snooze("1ms")
        return "now"

    async def main():
        async with app:
            assert await (await later.schedule()).result(SOON) == "now"
            assert seen == [(1, 1), (1, 2), (1, 3)]

    run(main())


def test_on_error_decides(app):
    asked = []

    def decide(error, context):
        asked.append((str(error), context.attempt))
        return {"reject": Reject("given up"), "snooze": Snooze("1ms"), "soon": RetryAfter("1ms")}.get(
            str(error)
        )

    said = iter(["soon", "snooze", "reject"])

    @app.task(on_error=decide, retry=Retry(max_attempts=3, initial_delay="1h"))
    async def task() -> None:
        raise ValueError(next(said))

    async def main():
        async with app:
            with pytest.raises(errors.NotAcked, match="given up"):
                await (await task.schedule()).result(SOON)
            assert asked == [("soon", 1), ("snooze", 2), ("reject", 2)]

    run(main())


def test_a_decision_that_fails_is_a_failure_itself(app):
    def decide(error, context):
        raise RuntimeError("undecided")

    @app.task(on_error=decide, retry=Retry(max_attempts=1))
    async def task() -> None:
        raise ValueError

    @app.task(retry=Retry(max_attempts=1))
    async def nonsense() -> None:
        raise Snooze("a while")

    async def main():
        async with app:
            with pytest.raises(errors.NotAcked, match="undecided"):
                await (await task.schedule()).result(SOON)
            with pytest.raises(errors.NotAcked, match="not a duration"):
                await (await nonsense.schedule()).result(SOON)

    run(main())


def test_a_coroutine_that_takes_too_long_is_stopped(app):
    stopped = []

    @app.task(timeout="30ms", retry=Retry(max_attempts=1))
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    async def main():
        async with app:
            with pytest.raises(errors.NotAcked, match="timeout"):
                await (await endless.schedule()).result(SOON)
            assert stopped == [True]

    run(main())


def test_a_thread_that_takes_too_long_is_given_up(app):
    gate = ThreadGate()
    runs = []

    @app.task(timeout="30ms", retry=Retry(max_attempts=2, initial_delay="1ms"))
    def stuck() -> str:
        runs.append(current().delivery)
        if len(runs) == 1:
            gate.wait()
        return f"delivery {current().delivery}"

    async def main():
        async with app:
            handle = await stuck.schedule()
            assert await handle.result(SOON) == "delivery 2"
            gate.go.set()
        assert runs == [1, 2]
        async with app:
            assert await handle.result(SOON) == "delivery 2", "a late result changes nothing"

    run(main())


def test_cancel_while_it_runs(app):
    async def main():
        gate, stopped = Gate(), asyncio.Event()

        @app.task
        async def waiting() -> None:
            try:
                await gate.wait()
            finally:
                stopped.set()

        async with app:
            handle = await waiting.schedule()
            await gate.arrived()
            assert (await handle.cancel()).status is Status.CANCELED
            await asyncio.wait_for(stopped.wait(), 10)
            with pytest.raises(errors.NotAcked, match="CANCELED"):
                await handle.result(SOON)
            with pytest.raises(errors.StateForbids):
                await handle.cancel()

    run(main())


def test_a_handler_that_is_cancelled_by_others_has_failed(app):
    @app.task(retry=Retry(max_attempts=1))
    async def inner_cancelled() -> None:
        task = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(task.cancel)
        await task

    @app.task
    async def after() -> str:
        return "fine"

    async def main():
        async with app:
            with pytest.raises(errors.NotAcked, match="CancelledError"):
                await (await inner_cancelled.schedule()).result(SOON)
            assert await (await after.schedule()).result(SOON) == "fine"

    run(main())


def test_a_missing_handler_is_a_dead_letter_not_a_success(tmp_path):
    folder = str(tmp_path / "data")

    async def main():
        before = App(folder)

        @before.task(name="gone")
        async def gone() -> None: ...

        async with before:
            handle = await gone.options(delay="300ms", id="orphan").schedule()
            await before.stop(drain_ms=0)
        async with App(folder) as after:
            with pytest.raises(errors.NotAcked, match="no handler is registered for the task 'gone' of"):
                await after.handle(handle.id).result(SOON)

    run(main())


def test_recovery_finds_the_handlers_that_were_registered_before_start(tmp_path):
    folder, ran = str(tmp_path / "data"), []

    def made() -> tuple[App, Task[[int], None]]:
        app = App(folder)

        @app.task(name="work")
        async def work(number: int) -> None:
            ran.append(number)

        return app, work

    async def main():
        app, work = made()
        async with running(app):
            await work.options(delay="500ms").schedule_many((n,) for n in range(100))
        assert ran == []
        app, _ = made()
        async with app:
            for view in await app.find(limit=1000):
                await app.handle(view.intent_id).result(SOON)
        assert sorted(ran) == list(range(100))

    run(main())


def test_a_leftover_context_is_not_seen_by_the_next_function(app):
    from contextvars import ContextVar

    left: ContextVar[str] = ContextVar("left", default="clean")

    @app.task
    async def dirty() -> str:
        before = left.get()
        left.set("dirty")
        return before

    async def main():
        async with app:
            handles = [await dirty.schedule() for _ in range(5)]
            assert [await handle.result(SOON) for handle in handles] == ["clean"] * 5

    run(main())


def test_many_that_wait_run_together(app):
    async def main():
        gate = Gate()

        @app.task(tier="FAST")
        async def wait() -> None:
            await gate.wait()

        async with app:
            handles = await wait.schedule_many(() for _ in range(100))
            await gate.arrived(100)
            gate.open()
            for handle in handles:
                await handle.result(SOON)

    run(main())


def test_a_task_does_not_run_before_its_time(app):
    early = []

    @app.task
    async def punctual(tier: str) -> None:
        early.append(SystemClock().now_ms() - current().execute_at_ms)

    async def main():
        async with app:
            handles = [
                await punctual.options(tier=tier, delay=f"{delay}ms").schedule(tier)
                for tier in ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY")
                for delay in (1, 7, 23, 101)
            ]
            for handle in handles:
                await handle.result(SOON)
        assert len(early) == 20 and min(early) >= 0

    run(main())
