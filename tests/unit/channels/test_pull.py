"""The stream channel: every delivery to the one who asked, with one outcome, none forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from duetime.channels.channel import Span
from duetime.channels.pull import Dropped, StreamChannel, Subscriber
from duetime.clock import SystemClock
from duetime.limits import STALL_MS
from duetime.protocol.effect import Abort, Deliver, Voided
from duetime.protocol.outcome import Done, Expired, Failed, Outcome, Returned, Settlement, Snoozed
from duetime.protocol.terms import Stream, Task, Terms

STREAM = Terms(Stream("s"), "stream:s", timeout_ms=60_000)
TASK = Terms(Task("t", "q"), "task:q", timeout_ms=50)


class Rig:
    """A channel whose outcomes are kept."""

    def __init__(self) -> None:
        self.channel = StreamChannel(SystemClock())
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.waited_ms: dict[str, int] = {}
        self.more = asyncio.Event()
        self.channel.open(self._settle)

    def _settle(self, settlements: list[Settlement]) -> None:
        assert settlements, "nothing is not handed in"
        for each in settlements:
            place = (each.id, each.delivery)
            assert place not in self.outcomes, f"{place} was answered twice"
            self.outcomes[place] = each.outcome
            self.waited_ms[each.id] = each.waited_ms
        self.more.set()

    def join(self, name: str = "me", *, auto: bool = False) -> Subscriber:
        return self.channel.join(name, auto=auto)

    def deliver(self, *ids: str, to: str = "me", terms: Terms = STREAM, deadline_ms: int = 0) -> None:
        for id in ids:
            delivery = Deliver(id, 1, 1, terms, b"{}", 0, 0, deadline_ms, None, to)
            self.channel.deliver(delivery)
        self.channel.flush()


def run(test: Callable[[Rig], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await test(Rig())

    asyncio.run(main())


def ids(deliveries: list[Deliver]) -> list[str]:
    return [each.id for each in deliveries]


def test_each_gets_its_own_in_order():
    async def test(rig: Rig) -> None:
        me, you = rig.join("me"), rig.join("you")
        rig.deliver("a", "b")
        rig.deliver("c", to="you")
        assert ids(me.take(9, 10_000)[0]) == ["a", "b"] and ids(you.take(9, 10_000)[0]) == ["c"]
        assert me.take(9, 10_000) == ([], []) and not rig.outcomes
        assert rig.channel.running() == 3

    run(test)


def test_a_cancelled_waiter_does_not_end_the_next_wait():
    async def test(rig: Rig) -> None:
        me = rig.join("me")
        first = asyncio.ensure_future(me.change())
        await asyncio.wait({first}, timeout=0)
        first.cancel()
        await asyncio.wait({first})
        second = asyncio.ensure_future(me.change())
        await asyncio.wait({second}, timeout=0)
        assert not second.done()
        rig.deliver("a")
        await second

    run(test)


def test_deliveries_that_could_not_be_sent_are_returned():
    async def test(rig: Rig) -> None:
        me = rig.join("me")
        rig.deliver("a", "b")
        taken, _ = me.take(9, 10_000)
        me.unwritten(taken[:1])
        me.unwritten(taken[:1])
        assert rig.outcomes == {("a", 1): Snoozed(0)} and rig.waited_ms == {"a": -1}
        assert me.places() == {("b", 1)}

    run(test)


def test_voided_credits_are_kept_for_the_connection_that_had_them():
    async def test(rig: Rig) -> None:
        me, you = rig.join("me"), rig.join("you")
        rig.channel.void(Voided("me", {"stream:s": 2, "task:q": 1}))
        rig.channel.void(Voided("me", {"stream:s": 3}))
        rig.channel.void(Voided("gone", {"stream:s": 3}))
        assert me.voided == {"stream:s": 5, "task:q": 1} and you.voided == {}

    run(test)


def test_a_parcel_has_bounds():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("a", "b", "c", "d")
        assert ids(me.take(1, 10_000)[0]) == ["a"]
        assert ids(me.take(9, 300)[0]) == ["b", "c"]  # a parcel is closed once it is full
        assert ids(me.take(9, 1)[0]) == ["d"]

    run(test)


def test_auto_is_done_only_when_written():
    async def test(rig: Rig) -> None:
        me = rig.join(auto=True)
        rig.deliver("a", "b")
        taken, _ = me.take(1, 10_000)
        assert not rig.outcomes
        me.written(taken)
        assert rig.outcomes == {("a", 1): Done()} and len(me) == 1

    run(test)


def test_manual_is_not_done_by_writing():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("a")
        me.written(me.take(9, 10_000)[0])
        assert not rig.outcomes and len(me) == 1
        places = [("a", 1), ("a", 2), ("stranger", 1)]
        me.answered([Settlement(*place, Done()) for place in places])
        assert not len(me) and not rig.outcomes  # whoever takes the outcome hands it in

    run(test)


def test_a_leaving_consumer_hands_back_only_unwritten_deliveries():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("written", "waiting")
        me.take(1, 10_000)
        rig.channel.leave(me)
        rig.channel.leave(me)
        assert rig.outcomes == {("waiting", 1): Snoozed(0)}  # the kernel makes the other one lost
        assert rig.channel.running() == 0
        rig.deliver("late")
        assert rig.outcomes["late", 1] == Snoozed(0)

    run(test)


def test_a_draining_consumer_gets_no_more_deliveries():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("held", "waiting")
        me.take(1, 10_000)
        me.drain()
        rig.deliver("later")
        assert rig.outcomes == {("waiting", 1): Snoozed(0), ("later", 1): Snoozed(0)}
        assert me.take(9, 10_000) == ([], []) and me.places() == {("held", 1)}

    run(test)


def test_a_consumer_told_to_stop_hands_back_written_deliveries_too():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("written", "waiting")
        me.take(1, 10_000)
        me.stopped()
        back = Returned("its worker was stopped before it was done")
        assert rig.outcomes == {("waiting", 1): Snoozed(0), ("written", 1): back}
        me.stopped()
        assert not len(me)

    run(test)


def test_a_superseded_connection_keeps_written_deliveries_and_hands_back_the_rest():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("written", "waiting")
        me.take(1, 10_000)
        assert rig.channel.supersede("me") == {("written", 1)} and me.superseded
        rig.deliver("later")
        assert rig.outcomes == {("waiting", 1): Snoozed(0), ("later", 1): Snoozed(0)}
        assert rig.channel.supersede("nobody") is None

    run(test)


def test_a_deadline_that_passed_is_not_delivered():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("late", deadline_ms=1)
        rig.deliver("fine", deadline_ms=SystemClock().now_ms() + 60_000)
        assert ids(me.take(9, 10_000)[0]) == ["fine"]
        assert isinstance(rig.outcomes["late", 1], Expired)

    run(test)


def test_an_abort_reaches_only_written_deliveries():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("written", "waiting")
        me.take(1, 10_000)
        for abort in (Abort("written", 2, "me"), Abort("written", 1, "you"), Abort("nobody", 1, "me")):
            rig.channel.abort(abort)
        assert len(me) == 2
        rig.channel.abort(Abort("written", 1, "me"))
        rig.channel.abort(Abort("waiting", 1, "me"))
        assert me.take(9, 10_000) == ([], [Dropped("written", 1, "cancelled")])
        assert not len(me) and not rig.outcomes

    run(test)


def test_a_timeout_does_not_count_while_the_loop_stands_still():
    """The outcome that came meanwhile is heard only afterwards."""

    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("a", terms=replace(STREAM, timeout_ms=1))
        me.take(1, 10_000)
        time.sleep(2 * STALL_MS / 1000)  # tidy: the loop stands still
        await asyncio.wait([asyncio.ensure_future(rig.more.wait())], timeout=STALL_MS / 2000)
        assert not rig.outcomes, "it has as much time again"
        await rig.more.wait()
        assert set(rig.outcomes) == {("a", 1)}

    run(test)


def test_a_stream_has_its_timeout_written_or_not_and_a_task_has_none_here():
    async def test(rig: Rig) -> None:
        me = rig.join()
        quick = replace(STREAM, timeout_ms=50)
        rig.deliver("task", terms=TASK)
        rig.deliver("long")
        rig.deliver("written", "waiting", terms=quick)
        assert ids(me.take(3, 10_000)[0]) == ["task", "long", "written"]
        await rig.more.wait()
        assert set(rig.outcomes) == {("written", 1), ("waiting", 1)}
        for id, words in (("written", "no outcome within 50 ms"), ("waiting", "did not read it")):
            outcome = rig.outcomes[id, 1]
            assert isinstance(outcome, Failed) and outcome.kind == "timeout" and words in outcome.message
        assert me.take(9, 10_000) == ([], [Dropped("written", 1, "timeout")])
        assert me.places() == {("task", 1), ("long", 1)}

    run(test)


def test_leases_that_ran_out_are_dropped():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("kept", "lost", "waiting")
        me.take(2, 10_000)
        me.keep({("kept", 1)})
        assert me.take(9, 10_000) == ([], [Dropped("lost", 1, "lease")])
        assert me.places() == {("kept", 1)} and not rig.outcomes

    run(test)


def test_news_wake_the_waiting_subscriber():
    async def test(rig: Rig) -> None:
        me = rig.join()
        waiting = asyncio.create_task(me.news())
        await asyncio.wait([waiting], timeout=0.02)
        assert not waiting.done()
        rig.deliver("a")
        await waiting
        await me.news()  # it is still there: nobody took it

    run(test)


def test_a_closed_channel_says_nothing_more():
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("written", "waiting")
        me.take(1, 10_000)
        await rig.channel.close()
        rig.deliver("late")
        assert not rig.outcomes and rig.channel.running() == 0 and not len(me)

    run(test)


def waits(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The loop's time moves on at once."""
    loop = asyncio.get_running_loop()
    real_s = loop.time
    monkeypatch.setattr(loop, "time", lambda: real_s() + seconds)


def test_waiting_time_in_the_channel_and_in_the_worker_is_added_up(monkeypatch):
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("a", "b", "back")
        waits(monkeypatch, 2.0)
        me.take(2, 10_000)
        waits(monkeypatch, 2.0)  # this is with the other side, which counts it
        said = [Settlement("a", 1, Done(), waited_ms=30), Settlement("b", 1, Done(), waited_ms=-1)]
        a, b = me.answered(said)
        assert 2_030 <= a.waited_ms < 3_000 and b.waited_ms == -1
        me.drain()
        assert rig.waited_ms["back"] == -1, "it never went out"

    run(test)


def test_a_delivery_without_an_outcome_waits_until_it_is_written(monkeypatch):
    async def test(rig: Rig) -> None:
        me = rig.join(auto=True)
        rig.deliver("a")
        waits(monkeypatch, 2.0)
        me.written(me.take(9, 10_000)[0])
        assert 2_000 <= rig.waited_ms["a"] < 3_000

    run(test)


def test_a_delivery_written_a_while_ago_has_begun(monkeypatch):
    async def test(rig: Rig) -> None:
        me = rig.join()
        rig.deliver("a", "b", "c")
        waits(monkeypatch, 2.0)
        rig.deliver("new")
        assert not list(rig.channel.begun())
        me.take(2, 1_000_000)
        assert [id for id, waited_ms in rig.channel.begun() if waited_ms >= 0] == ["a", "b"]
        me.answered([Settlement("a", 1, Done())])
        assert [id for id, _ in rig.channel.begun()] == ["b"]
        me.take(9, 1_000_000)
        assert [id for id, _ in rig.channel.begun()] == ["b", "c"], "the new one may end at once"

    run(test)


class Spans:
    """A tracer that notes how each span ended."""

    def __init__(self) -> None:
        self.ended: dict[str, list[str]] = {}

    def begin(self, delivery: Deliver) -> Span:
        return _Noted(self, delivery.id)


class _Noted:
    def __init__(self, spans: Spans, id: str) -> None:
        self._spans = spans
        self._id = id
        self.traceparent: str | None = f"span of {id}"

    def end(self, outcome: Outcome) -> None:
        self._spans.ended.setdefault(self._id, []).append(type(outcome).__name__)


def test_every_delivery_is_one_span_that_ends_once():
    async def test(rig: Rig) -> None:
        spans = Spans()
        rig.channel.tracer = spans.begin
        me = rig.join()
        rig.deliver("late", deadline_ms=1)
        rig.deliver("done", "cancelled", "stopped", "left")
        taken, _ = me.take(9, 10_000)
        assert [each.traceparent for each in taken] == [
            "span of done", "span of cancelled", "span of stopped", "span of left",
        ]  # fmt: skip
        assert spans.ended == {"late": ["Expired"]}
        me.answered([Settlement("done", 1, Done(), None, "me", 0)])
        rig.channel.abort(Abort("cancelled", 1, "me"))
        me.keep({("stopped", 1)})
        assert spans.ended["left"] == ["Failed"], "its lease ran out"
        me.stopped()
        rig.deliver("back")
        me.drain()
        auto = rig.join("auto", auto=True)
        rig.deliver("written", "gone", to="auto")
        auto.written(auto.take(1, 10_000)[0])
        auto.take(9, 10_000)
        rig.channel.leave(auto)
        rig.channel.leave(me)
        assert spans.ended == {
            "late": ["Expired"], "done": ["Done"], "cancelled": ["Failed"], "left": ["Failed"],
            "stopped": ["Returned"], "back": ["Snoozed"], "written": ["Done"], "gone": ["Lost"],
        }  # fmt: skip

    run(test)
