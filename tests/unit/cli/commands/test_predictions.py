"""Predictions and autoscaling as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from duetime.cli.commands.predictions import gained, model, show
from duetime.wire.predictions import (
    FunctionForecast,
    Gain,
    LaneForecast,
    ModelForecast,
    Predictions,
    Replayed,
)

OFF = ModelForecast(
    state="OFF",
    detail="",
    version=None,
    trained_at=None,
    rows=0,
    model_error=None,
    sketch_error=None,
    pid=None,
)


def test_functions_lanes_and_the_model(capsys):
    gain = Gain(
        jobs=1_500,
        servers=4,
        fifo=Replayed(mean_ms=7_213, p99_ms=39_801),
        expected=Replayed(mean_ms=2_247, p99_ms=41_569),
        mean_gain=0.69,
        p99_gain=-0.04,
    )
    mail = FunctionForecast(
        function="task:mail",
        count=12,
        mean_ms=9.0,
        p50_ms=8.0,
        p90_ms=20.0,
        p99_ms=50.0,
        sketch_error=0.25,
        model_error=0.1,
        suggested_timeout_ms=1_000,
    )
    show(
        Predictions(
            functions=[mail],
            more_functions=3,
            lanes=[LaneForecast(lane="task:default", order="SHADOW", source="sketch", gain=gain)],
            model=replace(
                OFF,
                state="IN_USE",
                version="7",
                trained_at=datetime(2030, 1, 1, tzinfo=UTC),
                rows=900,
                model_error=0.1,
                sketch_error=0.4,
            ),
            predicted={},
        )
    )
    said = capsys.readouterr().out
    assert "task:mail" in said and "25%" in said and "10%" in said and "1000" in said
    assert "3 more functions" in said
    assert "task:default: SHADOW, predictions come from: sketch." in said
    assert "the mean 69% shorter and the p99 4% longer than with FIFO order (7,213 ms" in said
    assert "The model is IN_USE (version 7, from 900 intents, 2030-01-01T00:00:00.000Z)" in said
    assert "the sketch by 40%." in said


def test_predictions_without_data(capsys):
    show(Predictions(functions=[], more_functions=0, lanes=[], model=OFF, predicted={}))
    said = capsys.readouterr().out
    assert "No durations were measured yet" in said and "no lane's order is EXPECTED or SHADOW" in said


@pytest.mark.parametrize("detail", ["", "its process is gone"])
def test_the_state_of_a_model_is_shown_with_its_detail(detail):
    assert (
        model(replace(OFF, state="DOWN", detail=detail))
        == f"The model is DOWN{'; ' + detail if detail else ''}."
    )
    assert gained(None).startswith("Too few intents")
