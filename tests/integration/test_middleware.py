"""Middleware of an app: around scheduling, and around runs on the loop, in threads and in processes."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from typing import Any

import pytest

from duetime import App, Middleware, NewCall, Reject, Retry, Run, Snooze, Status, current, errors
from tests.integration.asynchronous import asynchronous
from tests.integration.rig import SOON

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


class Noting(Middleware):
    """Notes every hook that is called."""

    def __init__(self, notes: list[str], name: str = "m") -> None:
        self.notes, self.name = notes, name

    def before_schedule(self, call: NewCall) -> None:
        self.notes.append(f"{self.name} before_schedule {call.task}{tuple(call.args)}")

    def after_schedule(self, call: NewCall, intent_id: str) -> None:
        self.notes.append(f"{self.name} after_schedule")

    def schedule_failed(self, call: NewCall, error: BaseException) -> None:
        self.notes.append(f"{self.name} schedule_failed {type(error).__name__}")

    def before_run(self, run: Run) -> None:
        self.notes.append(f"{self.name} before_run {run.context.attempt}")

    def after_run(self, run: Run, result: object) -> None:
        self.notes.append(f"{self.name} after_run {result}")

    def run_failed(self, run: Run, error: BaseException) -> None:
        self.notes.append(f"{self.name} run_failed {type(error).__name__}")

    def run_ended(self, run: Run) -> None:
        self.notes.append(f"{self.name} run_ended")


class Waiting(Middleware):
    """The same as coroutines that really wait."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes

    async def before_schedule(self, call: NewCall) -> None:
        await asyncio.sleep(0)  # tidy: the hook really waits
        call.headers["from"] = "afar"

    async def before_run(self, run: Run) -> None:
        await asyncio.sleep(0)  # tidy: the hook really waits
        self.notes.append(f"before {run.context.headers}")

    async def run_failed(self, run: Run, error: BaseException) -> None:
        await asyncio.sleep(0)  # tidy: the hook really waits
        self.notes.append(f"failed {type(error).__name__}")

    async def run_ended(self, run: Run) -> None:
        await asyncio.sleep(0)  # tidy: the hook really waits
        self.notes.append("ended")


class Tenants(Middleware):
    """Takes a context variable from the caller to the function."""

    def before_schedule(self, call: NewCall) -> None:
        call.headers["x-tenant"] = tenant.get()

    def before_run(self, run: Run) -> None:
        tenant.set(run.context.headers.get("x-tenant", "none"))


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


@asynchronous
async def test_hooks_run_in_order_and_back(app):
    notes: list[str] = []
    app.add_middleware(Noting(notes, "a"), Noting(notes, "b"))

    @app.task(name="add")
    async def add(x: int, y: int) -> int:
        notes.append("add")
        return x + y

    async with app:
        assert await (await add.schedule(1, 2)).result(SOON) == 3
    scheduling = [note for note in notes if "schedule" in note]
    running = [note for note in notes if "schedule" not in note]
    assert scheduling == [
        "a before_schedule add(1, 2)", "b before_schedule add(1, 2)", "b after_schedule", "a after_schedule",
    ]  # fmt: skip
    assert running == [
        "a before_run 1", "b before_run 1", "add", "b after_run 3", "a after_run 3", "b run_ended",
        "a run_ended",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["async", "plain"])
@asynchronous
async def test_a_failed_attempt_is_told_and_the_next_one_too(app, kind):
    notes: list[str] = []
    app.add_middleware(Noting(notes))
    attempts: list[int] = []

    def work() -> None:
        attempts.append(current().attempt)
        if len(attempts) < 2:
            raise ValueError("not yet")

    async def async_work() -> None:
        work()

    once_more = Retry(max_attempts=2, initial_delay="1ms", jitter=False)
    task = app.task(name="t", retry=once_more)(work if kind == "plain" else async_work)
    async with app:
        await (await task.schedule()).result(SOON)
    assert [note for note in notes if "run" in note] == [
        "m before_run 1", "m run_failed ValueError", "m run_ended",
        "m before_run 2", "m after_run None", "m run_ended",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["async", "plain"])
@asynchronous
async def test_hooks_may_be_coroutines(app, kind):
    notes: list[str] = []
    app.add_middleware(Waiting(notes))

    def plain() -> None:
        raise Reject("no")

    async def coroutine() -> None:
        raise Reject("no")

    task = app.task(name="t")(plain if kind == "plain" else coroutine)
    async with app:
        handle = await task.schedule()
        with pytest.raises(errors.NotAcked):
            await handle.result(SOON)
    assert notes == ["before {'from': 'afar'}", "failed Reject", "ended"]


@pytest.mark.parametrize("kind", ["async", "plain"])
@asynchronous
async def test_a_context_variable_travels_from_the_caller_to_the_function(app, kind):
    app.add_middleware(Tenants())

    def plain() -> str:
        return tenant.get()

    async def coroutine() -> str:
        return tenant.get()

    task = app.task(name="t")(plain if kind == "plain" else coroutine)
    async with app:
        tenant.set("acme")
        handles = [await task.schedule(), *await task.schedule_many([(), ()])]
        tenant.set("other")
        chain = await app.chain(task.bind(), task.bind())
        group = await app.group([task.bind(), task.bind()], then=task.bind())
        assert [await handle.result(SOON) for handle in handles] == ["acme"] * 3
        assert await chain.result(SOON) == "other" and await group.result(SOON) == "other"
        assert await chain.steps[0].result(SOON) == "other" and await group.member(1).result(SOON) == "other"


def test_a_plain_program_has_the_callers_context_too(app):
    app.add_middleware(Tenants())

    @app.task(name="t")
    def work() -> str:
        return tenant.get()

    with app:
        token = tenant.set("acme")
        try:
            assert work.schedule().wait().result(SOON).wait() == "acme"
        finally:
            tenant.reset(token)


@asynchronous
async def test_a_broken_hook_is_logged_and_stops_nothing(app, caplog):
    class Broken(Middleware):
        def before_schedule(self, call: NewCall) -> None:
            raise RuntimeError("one")

        def before_run(self, run: Run) -> None:
            raise RuntimeError("two")

        async def run_ended(self, run: Run) -> None:
            raise RuntimeError("three")

    notes: list[str] = []
    app.add_middleware(Broken(), Noting(notes))

    @app.task(name="t")
    async def work() -> int:
        return 7

    async with app:
        assert await (await work.schedule()).result(SOON) == 7
    told = [record for record in caplog.records if "Middleware" in record.getMessage()]
    assert [str(record.exc_info[1]) for record in told if record.exc_info] == ["one", "two", "three"]
    assert all(record.levelno == logging.ERROR and "Broken" in record.getMessage() for record in told)
    assert "m before_run 1" in notes and "m run_ended" in notes


@asynchronous
async def test_a_hook_may_refuse_a_call_on_purpose(app):
    class Gate(Middleware):
        def before_schedule(self, call: NewCall) -> None:
            if call.args == ("bad",):
                raise errors.InvalidField("bad is not accepted here.")

        def before_run(self, run: Run) -> None:
            if run.args == ["later"] and run.context.delivery == 1:
                raise Snooze("1ms")
            if run.args == ["never"]:
                raise Reject("not here")

    notes: list[str] = []
    app.add_middleware(Gate(), Noting(notes))

    @app.task(name="t")
    async def work(what: str) -> int:
        return current().delivery

    async with app:
        with pytest.raises(errors.InvalidField, match="bad is not accepted"):
            await work.schedule("bad")
        assert await (await work.schedule("later")).result(SOON) == 2
        never = await work.schedule("never")
        with pytest.raises(errors.NotAcked, match="not here"):
            await never.result(SOON)
    assert notes[0] == "m schedule_failed InvalidField"


@asynchronous
async def test_a_hook_may_change_the_arguments(app):
    class Doubling(Middleware):
        def before_schedule(self, call: NewCall) -> None:
            (number,) = call.args
            assert isinstance(number, int)
            call.args = (2 * number,)

    app.add_middleware(Doubling())

    @app.task(name="t")
    async def work(number: int) -> int:
        return number

    @app.default
    async def bare(payload: Any, context: Any) -> Any:
        return payload

    async with app:
        assert await (await work.schedule(4)).result(SOON) == 8
        assert await (await app.chain(work.bind(5))).result(SOON) == 10
        assert await (await app.schedule(6)).result(SOON) == 12


@asynchronous
async def test_a_refused_call_is_told(app):
    notes: list[str] = []
    app.add_middleware(Noting(notes))

    @app.task(name="t")
    async def work(number: int) -> None: ...

    async with app:
        with pytest.raises(errors.InvalidField):
            await work.schedule("text")
        with pytest.raises(errors.InvalidField):
            await work.options(id="not an id").schedule(1)
    assert [note for note in notes if "failed" in note] == ["m schedule_failed InvalidField"] * 2


@asynchronous
async def test_a_function_that_is_stopped_ends_its_hooks(app):
    notes: list[str] = []
    app.add_middleware(Noting(notes))

    @app.task(name="t", timeout="1ms", retry=Retry(max_attempts=1))
    async def work() -> None:
        await asyncio.Event().wait()

    async with app:
        handle = await work.schedule()
        with pytest.raises(errors.NotAcked):
            await handle.result(SOON)
        assert await handle.status() is Status.DEAD_LETTERED
    assert notes[-2:] == ["m run_failed CancelledError", "m run_ended"]


def test_only_middleware_is_accepted(app):
    with pytest.raises(errors.InvalidField, match="is not a Middleware"):
        app.add_middleware(Noting)


@asynchronous
async def test_a_function_in_a_process_has_its_hooks_there():
    from tests.integration import processes

    async with processes.app:
        where = await (await processes.where.schedule()).result(SOON)
    assert where == "here by hook", "set in the process that ran the function"


@asynchronous
async def test_plain_and_async_hooks_may_be_mixed_and_added_twice(app, caplog):
    """Whichever hook waits, those after it follow, each once; an error after a wait is logged too."""
    notes: list[str] = []

    class Slow(Middleware):
        async def before_run(self, run: Run) -> None:
            await asyncio.sleep(0)  # tidy: the hook really waits
            notes.append("slow before")

        async def after_run(self, run: Run, result: object) -> None:
            await asyncio.sleep(0)  # tidy: the hook really waits
            notes.append("slow after")
            raise ZeroDivisionError

    slow = Slow()
    app.add_middleware(Noting(notes, "a"), slow, slow, Noting(notes, "b"))

    @app.task(name="t")
    async def work() -> int:
        return 1

    async with app:
        assert await (await work.schedule()).result(SOON) == 1
    assert [note for note in notes if "schedule" not in note] == [
        "a before_run 1", "slow before", "slow before", "b before_run 1",
        "b after_run 1", "slow after", "slow after", "a after_run 1",
        "b run_ended", "a run_ended",
    ]  # fmt: skip
    assert caplog.text.count("Slow.after_run failed") == 2


@pytest.mark.parametrize("hook", ["before_schedule", "before_run", "run_ended"])
@asynchronous
async def test_a_hook_that_exits_does_not_stop_the_engine(app, hook, caplog):
    async def leave(self: Middleware, about: object) -> None:
        raise SystemExit(3)

    def leave_at_once(self: Middleware, about: object) -> None:
        raise SystemExit(3)

    app.add_middleware(type("Leaving", (Middleware,), {hook: leave})())
    app.add_middleware(type("LeavingAtOnce", (Middleware,), {hook: leave_at_once})())

    @app.observe
    def observer(change: object) -> None:
        raise SystemExit(4)

    @app.task(name="t")
    async def work() -> int:
        return 7

    async with app:
        assert await (await work.schedule()).result(SOON) == 7
    told = [record for record in caplog.records if "Middleware" in record.getMessage()]
    assert len(told) == 2
