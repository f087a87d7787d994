"""What is held back and what is not: breakers of hosts and endpoints, each endpoint's share of its host."""

from __future__ import annotations

import asyncio

from duetime.protocol.effect import Abort
from duetime.protocol.outcome import Done, Failed, Outcome, Snoozed
from duetime.protocol.terms import Callback
from tests.integration.sending import Sending, sending
from tests.receiver import hang, http, receiving


async def not_held_back(channel: Sending, url: str, number: int = 1) -> Outcome:
    """Deliver again and again until the breaker lets one through."""
    async with asyncio.timeout(10):
        while True:
            outcome = await channel.send(Callback(url), "probe", number=number, attempt=number)
            if not isinstance(outcome, Snoozed):
                return outcome
            number += 1


def test_a_failing_host_is_held_back_and_then_probed_once():
    async def main():
        async with (
            receiving(http(500)) as receiver,
            receiving(http()) as other,
            sending(breaker_failures=3, breaker_open_ms=500, connections_per_host_max=1) as channel,
        ):
            channel.deliver(Callback(receiver.url), *(f"i{n}" for n in range(10)))
            await channel.answered(10)
            kinds = [type(channel.outcomes[f"i{n}", 1]) for n in range(10)]
            assert kinds == [Failed] * 3 + [Snoozed] * 7, "their attempts are given back"
            assert len(receiver.requests) == 3
            held = channel.outcomes["i9", 1]
            assert isinstance(held, Snoozed) and 1_000 <= held.delay_ms <= 2_000
            assert await channel.send(Callback(other.url), "other") == Done()

            assert isinstance(await not_held_back(channel, receiver.url), Failed)
            assert len(receiver.requests) == 4, "one finds out"
            receiver.answer = http()
            assert await not_held_back(channel, receiver.url, 10_000_000) == Done()
            channel.deliver(Callback(receiver.url), *(f"again{n}" for n in range(5)))
            await channel.until(lambda: all((f"again{n}", 1) in channel.outcomes for n in range(5)))
            assert all(channel.outcomes[f"again{n}", 1] == Done() for n in range(5))

    asyncio.run(main())


def test_a_failing_path_does_not_hold_back_others_on_its_host():
    """A thousand callbacks, a tenth of them to a path that always fails: all others are called, in order."""

    async def main():
        async def answer(request, writer):
            await http(500 if request.path.startswith("/bad") else 200)(request, writer)

        async with receiving(answer) as receiver, sending(connections_per_host_max=4) as channel:
            url = receiver.url.removesuffix("/hook")
            for number in range(1_000):
                path = f"/bad?id={number}" if number % 10 == 0 else "/fine"
                channel.deliver(Callback(url + path), f"i{number:03}")
            await channel.answered(1_000)
            fine = [f"i{number:03}" for number in range(1_000) if number % 10]
            assert all(channel.outcomes[id, 1] == Done() for id in fine)
            called = [request.headers["x-duetime-intent-id"] for request in receiver.requests]
            place = {id: number for number, id in enumerate(called)}
            moved = [place[id] - number for number, id in enumerate(fine)]
            assert max(moved) <= 24 + 4, "no healthy one waits for more than the few that found out"
            assert len(called) - 900 <= 20 + 4, "then the failing path was left alone"
            held = [outcome for outcome in channel.outcomes.values() if isinstance(outcome, Snoozed)]
            assert len(held) >= 100 - 24 and all("/bad" in each.reason for each in held)
            assert channel.channel.left_alone() == [f"{url}/bad"]

    asyncio.run(main())


def test_outcomes_carry_the_wait_for_the_call(monkeypatch):
    async def main():
        go = asyncio.Event()

        async def answer(request, writer):
            await go.wait()
            await http(500)(request, writer)

        loop = asyncio.get_running_loop()
        real_s = loop.time
        async with (
            receiving(answer) as receiver,
            sending(breaker_failures=2, connections_per_host_max=1) as channel,
        ):
            channel.deliver(Callback(receiver.url), "called", "waits", "held", "too")
            await receiver.got(1)
            monkeypatch.setattr(loop, "time", lambda: real_s() + 5)
            go.set()
            await channel.answered(4)
            assert 0 <= channel.waited_ms["called"] < 5_000 <= channel.waited_ms["waits"]
            assert channel.waited_ms["held"] == channel.waited_ms["too"] == -1, "they were not called"
            channel.deliver(Callback(receiver.url), "at-once")
            await asyncio.sleep(0)  # tidy: outcomes are handed in at the end of a turn of the loop
            assert channel.waited_ms["at-once"] == -1, "it has its outcome, and keeps no permit"

    asyncio.run(main())


def test_being_held_back_costs_no_attempt_however_often():
    async def main():
        async with receiving(http(500)) as receiver, sending(breaker_failures=1) as channel:
            await channel.send(Callback(receiver.url), "opens")
            delays_ms = []
            for number in (1, 30, 1_000):
                outcome = await channel.send(Callback(receiver.url), "held", number=number, attempt=1)
                assert isinstance(outcome, Snoozed), "its attempt is given back"
                delays_ms.append(outcome.delay_ms)
            assert delays_ms[0] <= 10_000 < 25_000 - 1_000 <= delays_ms[2] <= 50_000, "but less often"
            assert len(receiver.requests) == 1

    asyncio.run(main())


def test_after_a_probe_that_could_not_be_traced_the_next_one_probes():
    class Span:
        traceparent = None

        def end(self, outcome):
            pass

    broken = False

    def tracer(delivery):
        if broken:
            raise RuntimeError("no span")
        return Span()

    async def main():
        nonlocal broken
        async with (
            receiving(http(500)) as receiver,
            sending(breaker_failures=1, breaker_open_ms=1, tracer=tracer) as channel,
        ):
            await channel.send(Callback(receiver.url), "opens")
            receiver.answer, broken = http(), True
            outcome = await not_held_back(channel, receiver.url)
            assert isinstance(outcome, Failed) and outcome.kind == "bug"
            broken = False
            assert await not_held_back(channel, receiver.url, 10_000_000) == Done()

    asyncio.run(main())


def test_an_endpoint_that_hangs_leaves_room_to_the_others_on_its_host():
    async def main():
        async def answer(request, writer):
            await (hang if request.path == "/hang" else http())(request, writer)

        async with receiving(answer) as receiver, sending(slots=lambda tier: 10) as channel:
            url = receiver.url.removesuffix("/hook")
            channel.deliver(Callback(f"{url}/hang"), *(f"hangs{n}" for n in range(10)))
            await channel.answered(2)  # the others have no outcome before their time limit
            assert len(receiver.requests) == 8, "four fifths"
            held = channel.outcomes["hangs8", 1]
            assert isinstance(held, Snoozed) and 1_000 <= held.delay_ms <= 5_000
            assert held.reason.startswith(f"{url}/hang has 8 calls under way and has answered none for 1 s")
            assert channel.waited_ms["hangs8"] == -1
            assert channel.channel.left_alone() == [f"{url}/hang"]
            for number in range(20):
                assert await channel.send(Callback(f"{url}/fine"), f"fine{number}") == Done()
            channel.deliver(Callback(f"{url}/hang"), "later")
            await asyncio.sleep(0)  # tidy: outcomes are handed in at the end of a turn of the loop
            assert ("later", 1) in channel.outcomes, "held back at once, and keeps no permit"
            assert len(receiver.requests) == 28

    asyncio.run(main())


def test_busy_endpoints_of_one_host_wait_for_each_other_and_all_are_called():
    async def main():
        async with receiving(http()) as receiver, sending(slots=lambda tier: 4) as channel:
            url = receiver.url.removesuffix("/hook")
            for number in range(300):
                channel.deliver(Callback(f"{url}/{number % 2}"), f"i{number}")
            await channel.answered(300)
            assert all(outcome == Done() for outcome in channel.outcomes.values())
            assert receiver.connections <= 4

    asyncio.run(main())


def test_after_an_aborted_probe_the_next_one_probes():
    async def main():
        async with (
            receiving(http(500)) as receiver,
            sending(breaker_failures=1, breaker_open_ms=1) as channel,
        ):
            await channel.send(Callback(receiver.url), "opens")
            receiver.answer = hang
            number = 0
            async with asyncio.timeout(10):
                while len(receiver.requests) < 2:
                    number += 1
                    channel.deliver(Callback(receiver.url), "hangs", number=number)
                    await asyncio.to_thread(lambda: None)
            for each in range(1, number + 1):
                channel.channel.abort(Abort("hangs", each, ""))
            receiver.answer = http()
            assert await not_held_back(channel, receiver.url) == Done()

    asyncio.run(main())


def test_a_host_that_refuses_politely_is_well():
    async def main():
        async with receiving(http(404)) as receiver, sending(breaker_failures=2) as channel:
            for status in (404, 429, 302, 404, 429):
                receiver.answer = http(status)
                outcome = await channel.send(Callback(receiver.url), f"i{len(channel.outcomes)}")
                assert not isinstance(outcome, Snoozed)

    asyncio.run(main())


def test_an_endpoint_alone_on_its_host_gets_everything_with_its_first_answer():
    async def main():
        async def answer(request, writer):
            await (http() if request.headers["x-duetime-intent-id"] == "i0" else hang)(request, writer)

        async with receiving(answer) as receiver, sending(slots=lambda tier: 10) as channel:
            channel.deliver(Callback(receiver.url), *(f"i{n}" for n in range(20)))
            await receiver.got(20)
            assert list(channel.outcomes.values()) == [Done()]

    asyncio.run(main())
