"""The contract of channels. A channel's test subclasses `ChannelContract` and provides one fixture:

```python
class TestWebhookChannel(ChannelContract):
    @pytest.fixture
    def make_rig(self):
        return rig  # rig() is an async context manager that yields a `ChannelRig`
```

The rig provides deliveries that succeed, fail, hang or can never work. Each must end with
exactly one outcome, except those that are aborted or cut off by `close`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest

from duetime.channels.channel import Channel
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Done, Failed, Outcome, Rejected, Settlement
from duetime.protocol.terms import Terms


class ChannelRig(Protocol):
    """A channel that is not open yet, and the terms of deliveries that end in a known way."""

    channel: Channel
    succeeds: Terms
    fails: Terms
    impossible: Terms
    hangs: Terms
    """Never ends, and has a long time limit."""
    times_out: Terms
    """Never ends, and has a time limit of 100 ms."""

    async def hanging(self, count: int) -> None:
        """Wait until this many hanging deliveries are running."""


MakeRig = Callable[[], AbstractAsyncContextManager[ChannelRig]]


class Outcomes:
    """Collects the outcomes of a channel."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self.by_place: dict[tuple[str, int], Outcome] = {}
        self._more = asyncio.Event()

    def settle(self, settlements: list[Settlement]) -> None:
        assert settlements, "nothing is not handed in"
        for each in settlements:
            self.counts[each.id, each.delivery] += 1
            self.by_place[each.id, each.delivery] = each.outcome
        self._more.set()

    async def of(self, count: int) -> None:
        """Wait until this many outcomes have come."""
        async with asyncio.timeout(20):
            while len(self.counts) < count:
                self._more.clear()
                await self._more.wait()


def delivery(id: str, terms: Terms, number: int = 1) -> Deliver:
    """A delivery of which only the terms matter."""
    return Deliver(id, number, 1, terms, b"{}", 0, 0, 0, None, "")


class ChannelContract:
    """The tests."""

    @pytest.fixture
    def make_rig(self) -> MakeRig:
        raise NotImplementedError("give a fixture make_rig")

    def test_every_delivery_has_exactly_one_outcome(self, make_rig: MakeRig) -> None:
        async def main() -> None:
            async with make_rig() as rig:
                outcomes = Outcomes()
                rig.channel.open(outcomes.settle)
                kinds = (
                    (rig.succeeds, Done),
                    (rig.fails, Failed),
                    (rig.impossible, Rejected),
                    (rig.times_out, Failed),
                )
                expected: dict[tuple[str, int], type[Outcome]] = {}
                for n in range(40):
                    terms, kind = kinds[n % len(kinds)]
                    rig.channel.deliver(delivery(f"i{n}", terms, n + 1))
                    expected[f"i{n}", n + 1] = kind
                rig.channel.flush()
                await outcomes.of(40)
                assert rig.channel.running() == 0
                await rig.channel.close()
                assert {place: type(got) for place, got in outcomes.by_place.items()} == expected
                assert set(outcomes.counts.values()) == {1}
                late = outcomes.by_place["i3", 4]
                assert isinstance(late, Failed) and late.kind == "timeout"

        asyncio.run(main())

    def test_many_deliveries_in_many_flushes(self, make_rig: MakeRig) -> None:
        async def main() -> None:
            async with make_rig() as rig:
                outcomes = Outcomes()
                rig.channel.open(outcomes.settle)
                for n in range(1_000):
                    rig.channel.deliver(delivery(f"i{n}", rig.succeeds))
                    if n % 17 == 0:
                        rig.channel.flush()
                rig.channel.flush()
                await outcomes.of(1_000)
                assert set(outcomes.counts.values()) == {1} and rig.channel.running() == 0
                await rig.channel.close()

        asyncio.run(main())

    def test_running_counts_what_has_no_outcome(self, make_rig: MakeRig) -> None:
        async def main() -> None:
            async with make_rig() as rig:
                outcomes = Outcomes()
                rig.channel.open(outcomes.settle)
                assert rig.channel.running() == 0
                for n in range(3):
                    rig.channel.deliver(delivery(f"hangs{n}", rig.hangs))
                rig.channel.deliver(delivery("quick", rig.succeeds))
                assert rig.channel.running() == 4
                rig.channel.flush()
                await outcomes.of(1)
                await rig.hanging(3)
                assert rig.channel.running() == 3
                await rig.channel.close()

        asyncio.run(main())

    def test_what_hangs_holds_up_nothing_else(self, make_rig: MakeRig) -> None:
        async def main() -> None:
            async with make_rig() as rig:
                outcomes = Outcomes()
                rig.channel.open(outcomes.settle)
                rig.channel.deliver(delivery("hangs", rig.hangs))
                for n in range(100):
                    rig.channel.deliver(delivery(f"i{n}", rig.succeeds))
                rig.channel.flush()
                await outcomes.of(100)
                assert ("hangs", 1) not in outcomes.counts
                await rig.channel.close()

        asyncio.run(main())

    def test_an_abort_ends_a_delivery_with_one_outcome_or_none(self, make_rig: MakeRig) -> None:
        async def main() -> None:
            async with make_rig() as rig:
                outcomes = Outcomes()
                rig.channel.open(outcomes.settle)
                rig.channel.deliver(delivery("early", rig.hangs))
                rig.channel.abort(Abort("early", 1, ""))
                rig.channel.deliver(delivery("hangs", rig.hangs, 2))
                rig.channel.flush()
                await rig.hanging(1)
                rig.channel.abort(Abort("hangs", 1, ""))  # another delivery number: no effect
                rig.channel.abort(Abort("nobody", 1, ""))
                assert rig.channel.running() == 1
                rig.channel.abort(Abort("hangs", 2, ""))
                rig.channel.abort(Abort("hangs", 2, ""))
                rig.channel.deliver(delivery("after", rig.succeeds))
                rig.channel.flush()
                async with asyncio.timeout(10):
                    while ("after", 1) not in outcomes.by_place or rig.channel.running():
                        await asyncio.to_thread(lambda: None)
                assert set(outcomes.counts.values()) == {1}
                assert outcomes.by_place["after", 1] == Done()
                await rig.channel.close()

        asyncio.run(main())

    def test_the_end_says_nothing_and_leaves_nothing_running(self, make_rig: MakeRig) -> None:
        async def main() -> None:
            async with make_rig() as rig:
                before = asyncio.all_tasks()
                outcomes = Outcomes()
                rig.channel.open(outcomes.settle)
                for n in range(3):
                    rig.channel.deliver(delivery(f"hangs{n}", rig.hangs))
                rig.channel.flush()
                await rig.hanging(3)
                channel_tasks = asyncio.all_tasks() - before
                async with asyncio.timeout(10):
                    await rig.channel.close()
                assert not outcomes.counts
                still = {task for task in channel_tasks if not task.done() and "channels" in repr(task)}
                assert not still, f"tasks went on: {still}"

        asyncio.run(main())
