"""The inline channel: exactly one outcome for each delivery, whatever its handler does."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from duetime.channels.local import inline
from duetime.channels.local.inline import InlineChannel
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Done, Failed, Outcome, Rejected
from duetime.protocol.terms import Task, Terms

TERMS = Terms(Task("t"), "task:default", timeout_ms=5_000)


class Handler:
    def __init__(self, function: Callable[..., Any], pool: Executor | None = None) -> None:
        self._function = function
        self._pool = pool

    @property
    def executor(self) -> Executor | None:
        return self._pool

    @property
    def workers(self) -> int:
        return 4

    async def run(self, delivery: Deliver) -> Outcome:
        await self._function(delivery)
        return Done()

    def job(self, delivery: Deliver) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._function, (delivery,)

    def outcome(self, delivery: Deliver, value: Any, error: BaseException | None) -> Outcome:
        return Done() if error is None else Failed(type(error).__name__, str(error))


class Rig:
    """A channel whose outcomes are kept, and can be waited for."""

    def __init__(self, find: Callable[[Deliver], Handler | None]) -> None:
        self.channel = InlineChannel(find)
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.waited_ms: dict[str, int] = {}
        self._more = asyncio.Condition()
        self.channel.open(self._settle)

    def _settle(self, settlements) -> None:
        for each in settlements:
            place = (each.id, each.delivery)
            assert place not in self.outcomes, f"{place} was answered twice"
            self.outcomes[place] = each.outcome
            self.waited_ms[each.id] = each.waited_ms

    def deliver(self, *ids: str, terms: Terms = TERMS) -> None:
        for id in ids:
            self.channel.deliver(Deliver(id, 1, 1, terms, b"", 0, 0, 0, None, ""))
        self.channel.flush()

    async def answered(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.outcomes) < count:
                await asyncio.to_thread(lambda: None)
        assert self.channel.running() == 0


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_functions_that_do_not_wait_need_no_task_each():
    tasks = set()

    async def function(delivery):
        tasks.add(asyncio.current_task())

    async def main():
        rig = Rig(lambda delivery: Handler(function))
        rig.deliver(*(f"i{n}" for n in range(1_000)))
        assert rig.channel.running() == 1_000
        await rig.answered(1_000)
        assert len(tasks) == 1
        await rig.channel.close()

    run(main)


def test_functions_that_wait_run_side_by_side():
    async def main():
        go, here = asyncio.Event(), []

        async def function(delivery):
            here.append(delivery.id)
            await go.wait()

        rig = Rig(lambda delivery: Handler(function))
        rig.deliver(*(f"i{n}" for n in range(50)))
        async with asyncio.timeout(10):
            while len(here) < 50:
                await asyncio.to_thread(lambda: None)
        assert rig.channel.running() == 50 and not rig.outcomes
        go.set()
        await rig.answered(50)
        await rig.channel.close()

    run(main)


def test_errors_have_outcomes_and_other_deliveries_continue():
    async def function(delivery):
        if delivery.id == "waits":
            await asyncio.to_thread(lambda: None)
        if delivery.id != "fine":
            raise ValueError(delivery.id)

    async def main():
        rig = Rig(lambda delivery: Handler(function) if delivery.id != "nobody" else None)
        rig.deliver("fails", "waits", "nobody", "fine")
        await rig.answered(4)
        assert rig.outcomes["fails", 1] == Failed("ValueError", "fails")
        assert rig.outcomes["waits", 1] == Failed("ValueError", "waits")
        assert isinstance(rig.outcomes["nobody", 1], Rejected)
        assert rig.outcomes["fine", 1] == Done()
        await rig.channel.close()

    run(main)


def test_a_time_limit_stops_a_coroutine_and_only_it():
    async def main():
        other = asyncio.Event()

        async def function(delivery):
            await (other if delivery.id == "patient" else asyncio.Event()).wait()

        rig = Rig(lambda delivery: Handler(function))
        rig.deliver("patient")
        rig.deliver("slow", terms=replace(TERMS, timeout_ms=20))
        async with asyncio.timeout(10):
            while not rig.outcomes:
                await asyncio.to_thread(lambda: None)
        assert rig.outcomes == {("slow", 1): Failed("timeout", "it was stopped: timeout")}
        other.set()
        await rig.answered(2)
        await rig.channel.close()

    run(main)


@pytest.mark.parametrize("again", [False, True], ids=["returns", "waits again and returns"])
def test_a_coroutine_that_swallows_its_time_limit_is_not_done(again):
    async def main():
        async def function(delivery):
            if delivery.id == "next":
                return
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if again:
                    await asyncio.to_thread(lambda: None)

        rig = Rig(lambda delivery: Handler(function))
        rig.deliver("stubborn", terms=replace(TERMS, timeout_ms=20))
        await rig.answered(1)
        assert rig.outcomes == {("stubborn", 1): Failed("timeout", "it was stopped: timeout")}
        rig.deliver("next")
        await rig.answered(2)
        assert rig.outcomes["next", 1] == Done(), "the runner goes on with others"
        await rig.channel.close()

    run(main)


@pytest.mark.parametrize("limit_ms", [20, 5_000])
def test_a_thread_is_given_up_or_answered_never_both(limit_ms):
    import threading

    go = threading.Event()

    def function(delivery):
        assert go.wait(10)

    async def main():
        with ThreadPoolExecutor(1) as pool:
            rig = Rig(lambda delivery: Handler(function, pool))
            rig.deliver("i", terms=replace(TERMS, timeout_ms=limit_ms))
            if limit_ms == 20:
                await rig.answered(1)
                assert rig.outcomes["i", 1].kind == "timeout"  # type: ignore[union-attr]
                go.set()
                await asyncio.get_running_loop().run_in_executor(pool, lambda: None)
                await asyncio.to_thread(lambda: None)  # what it returned has come to nothing
            else:
                go.set()
                await rig.answered(1)
                assert rig.outcomes["i", 1] == Done()
            await rig.channel.close()

    run(main)


def test_an_abort_stops_what_runs():
    async def main():
        stopped = asyncio.Event()

        async def function(delivery):
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        rig = Rig(lambda delivery: Handler(function))
        rig.deliver("i")
        await asyncio.to_thread(lambda: None)
        rig.channel.abort(Abort("i", 2, ""))
        rig.channel.abort(Abort("other", 1, ""))
        await asyncio.to_thread(lambda: None)
        assert not stopped.is_set(), "another delivery's abort is not ours"
        rig.channel.abort(Abort("i", 1, ""))
        await rig.answered(1)
        assert stopped.is_set() and rig.outcomes["i", 1].kind == "cancelled"  # type: ignore[union-attr]
        rig.deliver("next")
        await asyncio.to_thread(lambda: None)
        await rig.channel.close()

    run(main)


def test_closing_stops_what_runs_without_an_outcome():
    async def main():
        async def function(delivery):
            await asyncio.Event().wait()

        rig = Rig(lambda delivery: Handler(function))
        rig.deliver("a", "b")
        await asyncio.to_thread(lambda: None)
        async with asyncio.timeout(10):
            await rig.channel.close()
        assert rig.outcomes == {}

    run(main)


def test_functions_that_cannot_be_stopped_are_reported_after_closing():
    begun, go_on = threading.Event(), threading.Event()

    def thread(delivery: Deliver) -> None:
        begun.set()
        assert go_on.wait(20)

    async def stubborn(delivery: Deliver) -> None:
        end = asyncio.get_running_loop().create_future()
        ends.append(end)
        while not end.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(end)

    ends: list[asyncio.Future[None]] = []

    async def main():
        with ThreadPoolExecutor(1) as pool:
            kinds = {"thread": Handler(thread, pool), "stubborn": Handler(stubborn)}
            rig = Rig(lambda delivery: kinds.get(delivery.id))
            rig.deliver("thread", "stubborn")
            assert await asyncio.to_thread(begun.wait, 20)
            await rig.channel.close()
            assert rig.channel.left() == {("thread", 1), ("stubborn", 1)}
            ends[0].set_result(None)
            go_on.set()
        assert rig.channel.left() <= {("stubborn", 1)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inline, "CHANNEL_CLOSE_S", 0.01)
        run(main)


def test_an_executor_that_takes_nothing_is_a_failure():
    async def main():
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        rig = Rig(lambda delivery: Handler(lambda delivery: None, pool))
        rig.deliver("i")
        await rig.answered(1)
        assert rig.outcomes["i", 1].kind == "RuntimeError"  # type: ignore[union-attr]
        await rig.channel.close()

    run(main)


@pytest.mark.parametrize("threads", [False, True])
def test_the_wait_before_the_function_began_is_reported(threads):
    """One came three seconds ago; what the function takes itself is no waiting."""

    async def test() -> None:
        async def wait(delivery: Deliver) -> None:
            await asyncio.to_thread(lambda: None)

        with ThreadPoolExecutor(1) as pool:
            rig = Rig(lambda _: Handler(lambda delivery: None, pool) if threads else Handler(wait))
            taken_s = asyncio.get_running_loop().time() - 3
            rig.channel.deliver(Deliver("early", 1, 1, TERMS, b"", 0, 0, 0, None, ""), taken_s)
            rig.deliver("now")
            await rig.answered(2)
            assert 3_000 <= rig.waited_ms["early"] < 5_000 and 0 <= rig.waited_ms["now"] < 2_000
            await rig.channel.close()

    run(test)
