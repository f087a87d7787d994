"""Errors that are retried or given up by their class, and soft time limits, in each kind of function."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from duetime import App, Reject, Retry, SoftTimeout, Status, current, errors
from duetime.config import Config
from duetime.settings import EngineSettings
from tests.integration import run_policies
from tests.integration.run_policies import ERRORS, QUICK

SOON = "30s"
ONCE = Retry(max_attempts=1)


@pytest.fixture
def app():
    return App(":memory:")


def ends(call):
    """The error and the number of attempts of a call that does not succeed."""
    handle = call.wait()
    with pytest.raises(errors.NotAcked):
        handle.result(SOON).wait()
    view = handle.view().wait()
    assert view.status is Status.DEAD_LETTERED
    return view.last_error.kind, view.attempts


CASES = [("OutOfPaper", 3), ("ConnectionError", 3), ("ValueError", 1), ("KeyError", 1)]
"""With retry_on=(ConnectionError, KeyError) and give_up_on=KeyError: the class, and its attempts."""


@pytest.mark.parametrize("plain", [False, True], ids=["coroutine", "thread"])
def test_errors_are_retried_by_their_class(app, plain):
    def raises(kind: str) -> None:
        raise ERRORS[kind]("no")

    async def raises_async(kind: str) -> None:
        raises(kind)

    options = app.task(retry=QUICK, retry_on=(ConnectionError, KeyError), give_up_on=KeyError)
    task = options(raises) if plain else options(raises_async)
    with app:
        assert [(kind, ends(task.schedule(kind))) for kind, _ in CASES] == [
            (kind, (kind, attempts)) for kind, attempts in CASES
        ]


def test_errors_in_processes_are_retried_by_their_class():
    with run_policies.app:
        assert [(kind, ends(run_policies.fails.schedule(kind))) for kind, _ in CASES] == [
            (kind, (kind, attempts)) for kind, attempts in CASES
        ]
        assert ends(run_policies.unbound_task.schedule()) == ("ValueError", 1)


def test_entities_have_the_same_policies(app):
    class Printer:
        def __init__(self, id: str) -> None: ...

        def print(self, kind: str) -> None:
            raise ERRORS[kind]("no")

        async def scan(self, kind: str) -> None:
            raise ERRORS[kind]("no")

        async def wait(self) -> None:
            await asyncio.Event().wait()

    printers = app.entity(
        Printer,
        retry=QUICK,
        on_interrupt="retry",
        retry_on=(ConnectionError, SoftTimeout),
        soft_timeout="50ms",
        on_error=lambda *_: None,
    )
    with app:
        for message in ("print", "scan"):
            assert ends(printers("1").tell(message, "OutOfPaper")) == ("OutOfPaper", 3)
            assert ends(printers("1").tell(message, "ValueError")) == ("ValueError", 1)
        assert ends(printers("1").tell("wait")) == ("SoftTimeout", 3)


def test_on_error_is_asked_first(app):
    def decide(error, context):
        return Reject("decided") if str(error) == "mine" else None

    @app.task(retry=QUICK, retry_on=ConnectionError, on_error=decide)
    async def fails(text: str) -> None:
        raise ConnectionError(text)

    @app.task(retry=QUICK, retry_on=ConnectionError, on_error=lambda error, context: 1 / 0)
    async def undecided() -> None:
        raise ConnectionError

    with app:
        assert ends(fails.schedule("mine")) == ("rejected", 1)
        assert ends(fails.schedule("yours")) == ("ConnectionError", 3)
        assert ends(undecided.schedule()) == (
            "ZeroDivisionError",
            3,
        )  # on_error failed: the retry policy holds


def test_a_time_out_is_retried_whatever_the_policy(app):
    @app.task(retry=QUICK, timeout="20ms", retry_on=ConnectionError)
    async def endless() -> None:
        await asyncio.Event().wait()

    with app:
        assert ends(endless.schedule()) == ("timeout", 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry_on": ()}, "retry_on is empty"),
        ({"retry_on": "ConnectionError"}, "not a class of exceptions"),
        ({"give_up_on": (ValueError, 1)}, "give_up_on has 1"),
        ({"give_up_on": ValueError("x")}, "not a class of exceptions"),
        ({"retry_on": (str,)}, "not a class of exceptions"),
        ({"soft_timeout": "30s"}, r"shorter than timeout \(30000 ms\)"),
        ({"soft_timeout": "5s", "timeout": "5s"}, r"shorter than timeout \(5000 ms\)"),
        ({"soft_timeout": 0}, "above 0"),
        ({"soft_timeout": "soon"}, "not a duration"),
    ],
)
def test_wrong_options_are_refused_where_they_are_written(app, options, said):
    with pytest.raises(errors.InvalidField, match=said):
        app.task(**options)
    with pytest.raises(errors.InvalidField, match=said):
        app.entity(**options)


class TestCoroutines:
    def test_the_exception_comes_at_the_await_and_the_function_cleans_up(self, app):
        seen: list[str] = []

        @app.task(soft_timeout="50ms", retry=ONCE)
        async def endless() -> str:
            try:
                await asyncio.Event().wait()
            except SoftTimeout as error:
                seen.append(str(error))
                await asyncio.sleep(0)  # tidy: it may wait again
                return f"partial result of attempt {current().attempt}"
            return ""

        with app:
            assert endless.schedule().wait().result(SOON).wait() == "partial result of attempt 1"
        assert seen == ["the soft time limit has passed"]

    def test_without_a_handler_the_attempt_fails(self, app):
        @app.task(soft_timeout="50ms", retry=ONCE)
        async def endless() -> None:
            await asyncio.Event().wait()

        with app:
            assert ends(endless.schedule()) == ("SoftTimeout", 1)

    def test_tasks_of_a_group_are_cancelled(self, app):
        cancelled: list[int] = []

        async def part(number: int) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

        @app.task(soft_timeout="50ms", retry=ONCE)
        async def parts() -> str:
            try:
                async with asyncio.TaskGroup() as group:
                    for number in range(3):
                        group.create_task(part(number))
            except SoftTimeout:
                return "all cancelled"
            return ""

        with app:
            assert parts.schedule().wait().result(SOON).wait() == "all cancelled"
        assert sorted(cancelled) == [0, 1, 2]

    def test_a_quick_function_is_not_disturbed_and_its_runner_is_used_again(self, app):
        @app.task(soft_timeout="20s")
        async def quick(number: int) -> int:
            await asyncio.sleep(0)  # tidy: a function that waits
            task = asyncio.current_task()
            assert task is not None and task.cancelling() == 0
            return number

        @app.task(soft_timeout="30ms")
        async def swallows() -> str:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            return "went on"

        with app:
            for _ in range(20):
                assert swallows.schedule().wait().result(SOON).wait() == "went on"
                handles = quick.schedule_many([(n,) for n in range(50)]).wait()
                assert [each.result(SOON).wait() for each in handles] == list(range(50))

    def test_a_cancellation_of_the_intent_is_not_hidden(self, app):
        began, ended = threading.Event(), threading.Event()
        seen: list[BaseException] = []

        @app.task(soft_timeout="20s")
        async def endless() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            except BaseException as error:
                seen.append(error)
                raise
            finally:
                ended.set()

        with app:
            handle = endless.schedule().wait()
            assert began.wait(30)
            handle.cancel().wait()
            assert ended.wait(30)
        assert [type(each) for each in seen] == [asyncio.CancelledError]

    def test_the_hard_limit_follows_if_the_function_goes_on(self, app):
        seen: list[str] = []

        @app.task(soft_timeout="30ms", timeout="200ms", retry=ONCE)
        async def stubborn() -> None:
            for _ in range(2):
                try:
                    await asyncio.Event().wait()
                except SoftTimeout:
                    seen.append("soft")

        with app:
            assert ends(stubborn.schedule()) == ("timeout", 1)
        assert seen == ["soft"]


class TestThreads:
    def test_the_exception_comes_between_two_steps(self, app):
        @app.task(soft_timeout="50ms", retry=ONCE)
        def spins() -> str:
            try:
                while True:
                    time.sleep(0.001)  # tidy: short blocking calls
            except SoftTimeout:
                return "stopped in time"

        @app.task(soft_timeout="50ms", retry=ONCE)
        def careless() -> None:
            while True:
                time.sleep(0.001)  # tidy: short blocking calls

        with app:
            assert spins.schedule().wait().result(SOON).wait() == "stopped in time"
            assert ends(careless.schedule()) == ("SoftTimeout", 1)

    def test_the_exception_never_hits_the_next_function_of_the_thread(self):
        """Functions that end at about the limit: each has its own outcome, and no thread is lost."""
        app = App(":memory:", config=Config(engine=EngineSettings(threads=1)))

        @app.task(soft_timeout="2ms", retry=ONCE)
        def about(number: int) -> int:
            time.sleep(0.002 + (number % 20 - 10) * 0.000_1)  # tidy: it ends at about its limit
            return number

        @app.task
        def other(number: int) -> int:
            return sum(range(2_000)) and number

        with app:
            limited = about.schedule_many([(n,) for n in range(200)]).wait()
            others = other.schedule_many([(n,) for n in range(200)]).wait()
            assert [each.result(SOON).wait() for each in others] == list(range(200))
            kinds = set()
            for each in limited:
                try:
                    each.result(SOON).wait()
                    kinds.add("done")
                except errors.NotAcked:
                    error = each.view().wait().last_error
                    assert error is not None
                    kinds.add(error.kind)
            assert kinds == {"done", "SoftTimeout"}


class TestProcesses:
    def test_a_blocking_call_and_a_loop_are_interrupted(self, tmp_path):
        with run_policies.app:
            assert ends(run_policies.naps.schedule(str(tmp_path / "cleaned"))) == ("SoftTimeout", 1)
            assert (tmp_path / "cleaned").exists()
            assert run_policies.spins.schedule().wait().result(SOON).wait() == "stopped in time"
            handles = run_policies.quick.schedule_many([(n,) for n in range(20)]).wait()
            assert [each.result(SOON).wait() for each in handles] == list(range(20))

    def test_a_process_is_replaced_after_its_calls(self):
        """With the settings of an embedded app."""
        settings = EngineSettings(processes=1, tasks_per_child_max=2, memory_per_child_bytes_max=2**40)
        run_policies.app.rewire(":memory:", config=Config(engine=settings))
        try:
            with run_policies.app:
                pids = [run_policies.pid.schedule().wait().result(SOON).wait() for _ in range(5)]
        finally:
            run_policies.app.rewire(":memory:")
        assert [pids.index(each) for each in pids] == [0, 0, 2, 2, 4]
