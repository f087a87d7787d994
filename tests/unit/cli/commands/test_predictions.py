"""Predictions and autoscaling as people read them."""

from __future__ import annotations

import pytest

from duetime.cli.commands.predictions import gained, model, show
from duetime.client.http.prediction_models import (
    FunctionForecast,
    Gain,
    LaneForecast,
    ModelForecast,
    Predictions,
    Replayed,
)


def test_functions_lanes_and_the_model(capsys):
    gain = Gain(1_500, 4, Replayed(7_213, 39_801), Replayed(2_247, 41_569), 0.69, -0.04)
    show(
        Predictions(
            functions=[FunctionForecast("task:mail", 12, 9.0, 8.0, 20.0, 50.0, 0.25, 0.1, 1_000)],
            more_functions=3,
            lanes=[LaneForecast("task:default", "SHADOW", "sketch", gain)],
            model=ModelForecast("IN_USE", "", "7", "2030-01-01T00:00:00.000Z", 900, 0.1, 0.4),
        )
    )
    said = capsys.readouterr().out
    assert "task:mail" in said and "25%" in said and "10%" in said and "1000" in said
    assert "3 more functions" in said
    assert "task:default: SHADOW, predictions come from: sketch." in said
    assert "the mean 69% shorter and the p99 4% longer than with FIFO order (7,213 ms" in said
    assert "The model is IN_USE (version 7, from 900 intents" in said and "the sketch by 40%." in said


def test_nothing_known_yet(capsys):
    show(Predictions(model=ModelForecast("OFF")))
    said = capsys.readouterr().out
    assert "No durations were measured yet" in said and "no lane's order is EXPECTED or SHADOW" in said


@pytest.mark.parametrize("detail", ["", "its process is gone"])
def test_the_state_of_a_model_is_shown_with_its_detail(detail):
    assert model(ModelForecast("DOWN", detail)) == f"The model is DOWN{'; ' + detail if detail else ''}."
    assert gained(None).startswith("Too few intents")
