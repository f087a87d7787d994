"""What is expected is put on the record where a lane asks for it, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from duetime.engine.predictions.features import Row
from duetime.engine.predictions.messages import Predicted, Score, Trained, TrainingFailed, write
from duetime.engine.predictions.model import DOWN, IN_USE, OFF, SLOW, WORSE, Model
from duetime.errors import Fatal
from duetime.limits import (
    EXPECTED_MS_MAX,
    PREDICT_ANSWER_MS,
    PREDICT_LATE_MAX,
    PREDICT_ROWS_PER_MS,
    PREDICT_SLICE,
)
from duetime.protocol.command import Demand, LaneSettings, Order, SetLane
from duetime.protocol.intent import Item
from duetime.protocol.reply import Existing
from duetime.protocol.terms import Stream, Task
from tests.unit.insight.rig import World, run, world

SLOW_ONE, QUICK = Task("slow"), Task("quick")
TRAINED = Trained("1", 1, 500, Score(100, 0.1, 0.5), {})


async def learn(w: World) -> None:
    """Ten quick ones of 10 ms, ten slow ones of 1,000 ms."""
    for target, ms in ((QUICK, 10), (SLOW_ONE, 1_000)):
        await w.many(f"{target.name}-", 10, target=target)
        await w.pass_ms(ms)
        await w.end()


async def order(w: World, order: Order, lane: str = "task:default") -> None:
    await w.engine.ask(SetLane(lane, LaneSettings(order=order)))


def expected(w: World, id: str) -> int:
    intent = w.engine.reads.intent(id)
    assert intent is not None
    return intent.expected_ms


class Said(Model):
    """A model whose process is played by the test."""

    def __init__(self) -> None:
        super().__init__()
        self._state = IN_USE
        self.asked: list[tuple[Row, Callable[[int], None]]] = []

    def want(self, path: Any) -> None:
        pass

    def ask(self, row: Row, told: Callable[[int], None]) -> None:
        self.asked.append((row, told))


def test_in_order_of_arrival_nothing_is_expected(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await w.many("plain", 2, target=SLOW_ONE)
            await w.submit(Item("single", 0, w.clock.now_ms()), target=SLOW_ONE)
            assert [expected(w, id) for id in ("plain0", "plain1", "single")] == [0, 0, 0]
            assert w.engine.predictor.model.state is OFF
            assert sum(w.engine.predictor.told.values()) == 0

    run(main())


def test_a_lane_that_asks_has_them_on_the_record(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await order(w, Order.EXPECTED)
            await w.many("many", 2, target=SLOW_ONE)
            await w.submit(Item("single", 0, w.clock.now_ms()), target=QUICK)
            await w.submit(Item("elsewhere", 0, w.clock.now_ms()), target=Task("slow", "other"))
            assert expected(w, "many0") == expected(w, "many1") == pytest.approx(1_000, rel=0.05)
            assert expected(w, "single") == pytest.approx(10, abs=1)
            assert expected(w, "elsewhere") == 0
            assert w.engine.predictor.told == {"model": 0, "sketch": 3, "none": 0}
            await order(w, Order.FIFO)
            await w.many("again", 1, target=SLOW_ONE)
            assert expected(w, "again0") == 0

    run(main())


def test_a_repeated_request_finds_the_first_one(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await order(w, Order.EXPECTED)
            item = Item("one", 0, w.clock.now_ms(), key="k", fingerprint=1)
            await w.submit(item, target=SLOW_ONE)
            [again] = await w.submit(item, target=SLOW_ONE)
            assert isinstance(again, Existing)

    run(main())


def test_in_the_shadow_they_are_only_remembered(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await order(w, Order.SHADOW)
            await w.many("many", 2, target=SLOW_ONE)
            await w.submit(Item("single", 0, w.clock.now_ms()), target=QUICK)
            assert [expected(w, id) for id in ("many0", "single")] == [0, 0]
            await w.pass_ms(700)
            await w.end()
            recent = list(w.engine.predictor.durations.watched["task:default"])
            assert [each.took_ms for each in recent] == [700, 700, 700]
            assert [each.expected_ms > 500 for each in recent] == [True, True, False]
            assert w.engine.predictor.durations.guesses == {}

    run(main())


def test_intents_without_an_estimate_run_in_order_of_arrival(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await order(w, Order.EXPECTED, "stream:news")
            await w.many("a", 3, target=Stream("news"))
            assert [expected(w, f"a{n}") for n in range(3)] == [0, 0, 0]
            assert w.engine.predictor.told["none"] == 3
            await w.engine.ask(Demand("w1", "stream:news", 3))
            assert [each.id for each in w.channel.out] == ["a0", "a1", "a2"]

    run(main())


def test_lanes_that_ask_are_known_after_a_restart(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await order(w, Order.EXPECTED)
            await w.engine.checkpoint()
        async with world(tmp_path, w.clock) as w:
            await w.engine.predictor.rebuilt()
            await w.many("many", 1, target=SLOW_ONE)
            assert expected(w, "many0") == pytest.approx(1_000, rel=0.05)

    run(main())


# With a model.


def test_the_model_is_asked_and_the_answer_is_on_the_record(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            model = w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.submit(Item("one", 0, w.clock.now_ms(), b'{"n": 7}')))
            several = asyncio.ensure_future(w.many("many", 2))
            while len(model.asked) < 3:
                await asyncio.sleep(0)  # tidy: lets the two above begin
            rows = {row for row, _ in model.asked}
            assert ("task:work", "task:default", 8, 1, 7, 1, 0, 1) in rows
            for ms, (_, told) in enumerate(model.asked, 77):
                told(ms)
                told(5)  # only the first word counts
            await asyncio.gather(submitting, several)
            assert [expected(w, id) for id in ("one", "many0", "many1")] == [77, 78, 79]
            assert w.engine.predictor.told["model"] == 3

    run(main())


async def asked_for(model: Said, count: int) -> None:
    while len(model.asked) < count:
        await asyncio.sleep(0)  # tidy: lets the submit go on


def test_a_large_batch_is_asked_for_slice_by_slice(tmp_path):
    """Whoever asks in between is answered in between."""

    async def main():
        async with world(tmp_path) as w:
            model = w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.many("many", 2 * PREDICT_SLICE + 100, 3_600_000))
            for end in (PREDICT_SLICE, 2 * PREDICT_SLICE, 2 * PREDICT_SLICE + 100):
                await asked_for(model, end)
                assert len(model.asked) == end
                for _, told in model.asked[-PREDICT_SLICE:]:
                    told(33)
            ids = await submitting
            assert {expected(w, id) for id in ids} == {33}

    run(main())


def test_when_the_model_is_late_for_a_slice_the_rest_is_not_asked_for(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            model = w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.many("many", 3 * PREDICT_SLICE, 3_600_000))
            await asked_for(model, PREDICT_SLICE)
            model.late += 1
            for _, told in model.asked:
                told(0)
            await submitting
            assert len(model.asked) == PREDICT_SLICE

    run(main())


def test_in_shadow_order_a_submit_does_not_wait_for_the_model(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            model = w.engine.predictor.model = Said()
            await order(w, Order.SHADOW)
            await w.many("many", 2)
            await w.submit(Item("one", 0, w.clock.now_ms()))
            for ms, (_, told) in enumerate(model.asked, 70):
                told(ms)
            assert w.engine.predictor.durations.guesses == {"many0": 70, "many1": 71, "one": 72}

    run(main())


def test_without_an_answer_the_sketch_says_it(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            model = w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.submit(Item("one", 0, w.clock.now_ms()), target=SLOW_ONE))
            await asyncio.sleep(0)  # tidy: lets it begin
            model.asked[0][1](0)
            await submitting
            assert expected(w, "one") == pytest.approx(1_000, rel=0.05)
            assert w.engine.predictor.told == {"model": 0, "sketch": 1, "none": 0}

    run(main())


def test_a_prediction_that_is_too_long_is_cut(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            model = w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.submit(Item("one", 0, w.clock.now_ms())))
            await asyncio.sleep(0)  # tidy: lets it begin
            model.asked[0][1](10**12)
            await submitting
            assert expected(w, "one") == EXPECTED_MS_MAX

    run(main())


def test_a_submit_that_waits_for_the_model_is_answered_when_the_engine_stops(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.submit(Item("one", 0, w.clock.now_ms())))
            await asyncio.sleep(0)  # tidy: lets it begin
            await w.engine.close(0)
            assert (await submitting)[0].id == "one"  # type: ignore[union-attr]

    run(main())


def test_a_caller_waiting_for_the_model_gets_the_engines_failure(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            w.engine.predictor.model = Said()
            await order(w, Order.EXPECTED)
            submitting = asyncio.ensure_future(w.submit(Item("one", 0, w.clock.now_ms())))
            await asyncio.sleep(0)  # tidy: lets it begin
            await w.fail()
            with pytest.raises(Fatal, match="'lock' was removed"):
                await submitting

    run(main())


# The way to the process.


async def heard(*messages: Predicted | Trained | TrainingFailed) -> Model:
    model = Model()
    model._loop = asyncio.get_running_loop()
    for message in messages:
        model._hears(write(message))
    return model


def test_a_model_that_is_worse_than_the_sketch_is_not_used():
    async def main():
        model = await heard(TRAINED)
        assert (model.state, model.trouble()) == (IN_USE, "")
        model = await heard(Trained("1", 1, 500, Score(100, 0.6, 0.5), {}))
        assert model.state is WORSE and "off by 60%" in model.trouble()

    run(main())


def test_a_model_that_cannot_be_trained_gives_the_reason():
    async def main():
        assert "ValueError: no" in (await heard(TrainingFailed("ValueError: no"))).trouble()
        assert (await heard(TRAINED, TrainingFailed("ValueError: no"))).state is IN_USE, (
            "the earlier one still holds"
        )

    run(main())


def test_a_model_without_a_process_answers_zero_at_once():
    async def main():
        model = await heard(TRAINED)
        told: list[int] = []
        model.ask(("f", "q", 0, 0, 0, 0, 0, 1), told.append)
        await asyncio.sleep(0)  # tidy: those who ask together are sent together
        await asyncio.sleep(0)  # tidy: and now they were
        assert told == [0]

    run(main())


def test_a_model_that_is_late_repeatedly_is_not_asked_for_a_while():
    async def main():
        model = await heard(TRAINED)
        told: list[int] = []
        for number in range(PREDICT_LATE_MAX):
            assert model.state is IN_USE
            model._out[number] = [told.append]
            model._too_late(number)
        assert told == [0] * PREDICT_LATE_MAX
        assert model.state is SLOW and "too late" in model.trouble()
        model._hears(write(Predicted(1, [5])))  # nobody waits for it any more
        assert len(told) == PREDICT_LATE_MAX

    run(main())


def test_the_time_for_an_answer_fits_what_is_asked():
    model = Model()
    model._out = {1: [print]}
    assert model._time_ms() == pytest.approx(PREDICT_ANSWER_MS, abs=1)
    model._out = {1: [print] * PREDICT_SLICE, 2: [print]}  # what is asked later is answered later
    assert model._time_ms() >= PREDICT_ANSWER_MS + PREDICT_SLICE / PREDICT_ROWS_PER_MS


def test_a_process_that_cannot_be_started_is_down(tmp_path, monkeypatch):
    async def main():
        monkeypatch.setattr("sys.executable", str(tmp_path / "nothing"))
        model = Model()
        model.want(tmp_path / "store.db")
        for _ in range(100):
            if model.state is DOWN:
                break
            await asyncio.sleep(0)  # tidy: lets it try
        assert model.state is DOWN and "down" in model.trouble() and model.pid is None
        model.leave()
        await model.gone()
        assert model.state is OFF

    run(main())


def test_without_scikit_learn_it_is_missing(tmp_path, monkeypatch):
    async def main():
        monkeypatch.setattr("duetime.engine.predictions.model.find_spec", lambda name: None)
        model = Model()
        model.want(tmp_path / "store.db")
        assert model.state == "MISSING" and "scikit-learn" in model.trouble()

    run(main())
