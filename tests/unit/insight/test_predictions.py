"""What is told of durations: each function's numbers, the lanes that ask, and the model."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime.engine.predictions.messages import Score, Trained
from duetime.insight.predictions import predictions
from duetime.protocol.command import LaneSettings, Order, SetLane
from duetime.protocol.terms import Task
from tests.unit.insight.rig import as_read, run, world


def test_a_function_and_its_lane(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            assert predictions(w.engine).functions == [] and predictions(w.engine).model.state == "OFF"
            await w.engine.ask(SetLane("task:default", LaneSettings(order=Order.SHADOW)))
            for n in range(12):
                await w.many(f"a{n}-", 1, target=Task("work"))
                await w.pass_ms(500)
                await w.end()
            found = predictions(w.engine)
            [function] = found.functions
            assert (function.function, function.count, function.model_error) == ("task:work", 12, None)
            assert function.p50_ms == function.p99_ms == pytest.approx(500, rel=0.05)
            assert function.suggested_timeout_ms == pytest.approx(1_500, rel=0.05)
            [lane] = found.lanes
            assert (lane.lane, lane.order, lane.source) == ("task:default", "SHADOW", "sketch")
            assert lane.gain is not None and (lane.gain.jobs, lane.gain.servers) == (12, 1)
            assert lane.gain.mean_gain == 0.0, "one after the other, no order gains"
            assert found.predicted == {"model": 0, "sketch": 7, "none": 5}

    run(main())


def test_a_timeout_is_suggested_when_enough_is_known(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 4)
            await w.end()
            assert predictions(w.engine).functions[0].suggested_timeout_ms is None
            await w.many("b", 4)
            await w.end()
            assert predictions(w.engine).functions[0].suggested_timeout_ms == 1_000

    run(main())


def test_the_model_s_error_stands_beside_the_sketch_s(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 5)
            await w.end()
            model = w.engine.predictor.model
            model.trained = Trained(
                "7", 1_800_000_000_000, 900, Score(9, 0.1, 0.4), {"task:work": Score(9, 0.2, 0.3)}
            )
            found = as_read(predictions(w.engine))
            assert found.functions[0].model_error == 0.2
            assert (found.model.version, found.model.rows) == ("7", 900)
            assert (found.model.model_error, found.model.sketch_error) == (0.1, 0.4)
            assert found.model.trained_at == datetime(2027, 1, 15, 8, tzinfo=UTC)

    run(main())
