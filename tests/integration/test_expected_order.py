"""Order by prediction on a real engine: the sketch learns, the shell puts it on the record, the kernel obeys.

The mix: of a hundred jobs 90 are `short` (50 ms in the mean), 9 `middle` (500 ms) and one `long` (10 s); each
lognormal with sigma 0.5. Four workers, one at a time each, arrivals at random at 85 % of what they can do,
seed 7, 3,000 jobs on virtual time; before that 600 jobs in order of arrival from which the sketches learn.
"""

from __future__ import annotations

import heapq
import math
from random import Random

from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.insight.predictions import predictions
from duetime.log.memory import MemoryLog
from duetime.protocol.command import Demand, LaneSettings, Order, SetLane, Settings
from duetime.protocol.intent import Item
from duetime.protocol.terms import AckLevel, Task, Terms, Tier
from duetime.store.memory import MemoryStore
from duetime.testing.time import ManualClock
from tests.unit.insight.rig import HandChannel, run

MIX = (("short", 90, 50), ("middle", 9, 500), ("long", 1, 10_000))
WORKERS, LOAD, SEED, WARM_UP, JOBS = 4, 0.85, 7, 600, 3_000
LANE = "task:default"


class Shop:
    """An engine, four workers that take one job at a time, and a clock that jumps from event to event."""

    def __init__(self) -> None:
        self.clock, self.channel = ManualClock(), HandChannel()
        options = EngineOptions(settings=Settings(pushed=()))
        dispatcher = Dispatcher({Task: self.channel})
        self.engine = Engine(MemoryLog(), MemoryStore(), self.clock, dispatcher, options)
        self.took: dict[str, int] = {}
        self.ends: list[tuple[int, str, str]] = []
        self.terms = {name: Terms(Task(name), LANE, Tier.FAST, lease_ms=10**8) for name, _, _ in MIX}

    async def do(self, jobs: list[tuple[int, int, str]], prefix: str) -> dict[str, list[int]]:
        """How long each took from its arrival to its end, by kind."""
        start_ms, number = self.clock.now_ms(), 0
        arrived: dict[str, int] = {}
        found: dict[str, list[int]] = {name: [] for name, _, _ in MIX}
        while number < len(jobs) or self.ends:
            at_ms = start_ms + jobs[number][0] if number < len(jobs) else 1 << 62
            if self.ends and self.ends[0][0] <= at_ms:
                end_ms, id, worker = heapq.heappop(self.ends)
                self.clock.set_ms(end_ms)
                kind = id.split("-")[1]
                found[kind].append(end_ms - arrived[id])
                [delivery] = [each for each in self.channel.out if each.id == id]
                others = [each for each in self.channel.out if each.id != id]
                self.channel.out = [delivery]
                self.channel.end()
                self.channel.out = others
                await self.engine.ask(Demand(worker, LANE, 1), AckLevel.ASYNC)
            else:
                kind = jobs[number][2]
                id = f"{prefix}{number}-{kind}"
                self.clock.set_ms(at_ms)
                arrived[id], self.took[id] = at_ms, jobs[number][1]
                await self.engine.submit_one(self.terms[kind], Item(id, 0, at_ms), AckLevel.ASYNC)
                number += 1
            self.begin()
        return found

    def begin(self) -> None:
        """Whatever was handed out and is new runs from now on."""
        running = {id for _, id, _ in self.ends}
        for each in self.channel.out:
            if each.id not in running:
                heapq.heappush(self.ends, (self.clock.now_ms() + self.took[each.id], each.id, each.consumer))


def jobs(random: Random, count: int) -> list[tuple[int, int, str]]:
    at_ms, made = 0.0, []
    mean_ms = sum(share * ms for _, share, ms in MIX) / 100
    for _ in range(count):
        at_ms += random.expovariate(LOAD * WORKERS / mean_ms)
        kind, _, ms = random.choices(MIX, [share for _, share, _ in MIX])[0]
        made.append((round(at_ms), max(1, round(random.lognormvariate(math.log(ms) - 0.125, 0.5))), kind))
    return made


async def shop(order: Order) -> tuple[dict[str, list[int]], float | None]:
    """Completions by kind, and the gain that the replay tells."""
    random, made = Random(SEED), Shop()
    await made.engine.start()
    try:
        for worker in range(WORKERS):
            await made.engine.ask(Demand(f"w{worker}", LANE, 1))
        await made.do(jobs(random, WARM_UP), "warm")
        await made.engine.ask(SetLane(LANE, LaneSettings(order=order)))
        found = await made.do(jobs(random, JOBS), "job")
        lanes = predictions(made.engine).lanes
        return found, lanes[0].gain.mean_gain if lanes and lanes[0].gain is not None else None
    finally:
        await made.engine.close(0)


def mean(found: dict[str, list[int]]) -> float:
    every = [ms for values in found.values() for ms in values]
    assert len(every) == JOBS, "nobody is left behind"
    return sum(every) / len(every)


def p99(values: list[int]) -> int:
    return sorted(values)[len(values) * 99 // 100]


def test_the_mean_is_a_third_shorter_and_long_ones_do_not_starve():
    fifo, _ = run(shop(Order.FIFO))
    expected, _ = run(shop(Order.EXPECTED))
    gain, longs = 1 - mean(expected) / mean(fifo), (p99(fifo["long"]), p99(expected["long"]))
    print(f"mean {mean(fifo):.0f} -> {mean(expected):.0f} ms ({gain:.0%}), p99 of long ones {longs} ms")
    assert gain >= 0.3, f"{gain:.0%}"
    assert longs[1] <= 1.5 * longs[0], f"{longs}"


def test_the_shadow_tells_the_gain_before_it_is_switched_on():
    fifo, _ = run(shop(Order.FIFO))
    shadow, told = run(shop(Order.SHADOW))
    assert shadow == fifo, "in the shadow nothing is other than without it"
    expected, _ = run(shop(Order.EXPECTED))
    real = 1 - mean(expected) / mean(fifo)
    print(f"told {told:.0%}, came {real:.0%}")
    assert told is not None and abs(told - real) < 0.2
