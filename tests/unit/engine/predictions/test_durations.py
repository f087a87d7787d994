"""Durations are known by function and lane: of what worked, cheaply, and again after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.engine.predictions import durations as module
from duetime.engine.predictions.durations import Durations, Sketches
from duetime.limits import PREDICT_RECENT_MAX
from duetime.protocol.command import Demand, LaneSettings, Order, SetLane, Settings
from duetime.protocol.outcome import Done, Failed, Settlement
from duetime.protocol.terms import Callback, Entity, Stream, Task, Terms, lane_of
from duetime.store.memory import MemoryStore
from duetime.testing.time import ManualClock
from tests.unit.insight.rig import World, run, world


async def took(w: World, ms: int, count: int, target: Any, outcome: Any = None, prefix: str = "i") -> None:
    """So many that take so long."""
    await w.many(f"{prefix}{w.engine.reads.overview().records}-", count, target=target)
    await w.pass_ms(ms)
    await w.end(outcome)


def known(w: World) -> dict[str, Any]:
    found = w.engine.predictor.durations.functions
    return {name: (sketch.added, round(sketch.quantile(0.5) or 0)) for name, sketch in found.items()}


def test_they_are_kept_by_function_and_by_lane(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await took(w, 100, 5, Task("quick", "mail"))
            await took(w, 1_000, 5, Task("slow", "mail"))
            await took(w, 300, 5, Callback("https://shop.example/x"))
            assert known(w) == {
                "task:quick": (5, pytest.approx(100, rel=0.05)),
                "task:slow": (5, pytest.approx(1_000, rel=0.05)),
                "callback:shop.example": (5, pytest.approx(300, rel=0.05)),
            }
            lane = w.engine.predictor.durations.lane("task:mail")
            assert lane is not None and lane.added == 10
            assert lane.mean_ms == pytest.approx(550, rel=0.05)

    run(main())


def test_entities_of_a_type_share_one(tmp_path):
    async def main():
        async with world(tmp_path, settings=Settings()) as w:
            await took(w, 40, 1, Entity("cart", "1", "add"), prefix="a")
            await took(w, 40, 1, Entity("cart", "2", "add"), prefix="b")
            assert list(w.engine.predictor.durations.lanes) == ["entity:cart"]
            assert known(w)["entity:cart.add"][0] == 2

    run(main())


def test_failed_and_late_runs_do_not_count(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await took(w, 100, 3, Task("work"), Failed("x", "no"))
            w.engine.predictor.durations.settled([Settlement("nobody", 1, Done())])
            assert known(w) == {}

    run(main())


def test_a_restart_knows_them_again(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await took(w, 100, 20, Task("work", "mail"))
            await w.engine.checkpoint()
        async with world(tmp_path, w.clock) as w:
            await w.engine.predictor.rebuilt()
            assert known(w) == {"task:work": (20, pytest.approx(100, rel=0.05))}

    run(main())


def test_of_a_large_batch_some_are_looked_at(tmp_path, monkeypatch):
    async def main():
        monkeypatch.setattr(module, "_LOOKED_AT", 10)
        async with world(tmp_path) as w:
            await took(w, 100, 30, Callback("https://shop.example/x"))
            count, p50_ms = known(w)["callback:shop.example"]
            assert 5 <= count <= 10 and p50_ms == pytest.approx(100, rel=0.05)
            # Where a lane asks for predictions, all of them are.
            await w.engine.ask(SetLane("callback:shop.example", LaneSettings(order=Order.SHADOW)))
            await took(w, 100, 30, Callback("https://shop.example/x"))
            assert known(w)["callback:shop.example"][0] == count + 30

    run(main())


def test_there_are_not_more_of_them_than_there_may_be(monkeypatch):
    monkeypatch.setattr(module, "PREDICT_FUNCTIONS_MAX", 10)
    durations = Sketches()
    for n in range(100):
        target = Task(f"f{n}", f"q{n}")
        for sketch in durations.of(Terms(target, lane_of(target))):
            for _ in range(1 if n else 1_000):
                sketch.add(5)
    assert len(durations.functions) <= 10 and len(durations.lanes) <= 10
    assert durations.functions["task:f0"].added == 1_000, "the best known one stays"


def test_guesses_do_not_pile_up():
    durations = Durations(ManualClock(), MemoryStore())
    for n in range(20 * PREDICT_RECENT_MAX):
        durations.guess(f"i{n}", 5)
    assert len(durations.guesses) <= 8 * PREDICT_RECENT_MAX
    durations.watch([])
    assert durations.guesses == {}


def test_an_estimate_is_the_mean_of_the_function_or_of_the_lane(tmp_path):
    def terms(name: str, queue: str) -> Terms:
        return Terms(Task(name, queue), f"task:{queue}")

    async def main():
        async with world(tmp_path) as w:
            expected = w.engine.predictor.durations.expected_ms
            assert expected(terms("work", "mail")) == 0
            await took(w, 100, 4, Task("work", "mail"))
            assert expected(terms("work", "mail")) == 0, "four say nothing"
            await took(w, 100, 1, Task("work", "mail"))
            assert expected(terms("work", "mail")) == pytest.approx(100, rel=0.05)
            assert expected(terms("other", "mail")) == pytest.approx(100, rel=0.05)
            assert expected(terms("other", "else")) == 0

    run(main())


def test_pulled_deliveries_count_like_pushed_ones(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.engine.ask(Demand("w1", "stream:news", 5))
            await took(w, 250, 5, Stream("news"))
            assert known(w) == {"stream:news": (5, pytest.approx(250, rel=0.05))}

    run(main())


def test_an_outcome_from_another_consumer_is_not_recorded(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.engine.ask(Demand("mine", "stream:news", 1))
            await w.many("a", 1, target=Stream("news"))
            w.engine.predictor.durations.settled([Settlement("a0", 1, Done(), consumer="another")])
            assert known(w) == {}

    run(main())
