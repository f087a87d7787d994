"""Limits by a key: as people write them, as the engine keeps them, as a server is told."""

from __future__ import annotations

import asyncio

import pytest

from duetime import App, Limit
from duetime.client.app.plan import Options, stored_limits
from duetime.errors import InvalidField
from duetime.protocol.terms import Limit as Kept
from duetime.wire import rates


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Limit(key="k", rate="20/s", burst=5, concurrency=3), Kept("k", 20, 1_000, 5, 3)),
        ({"key": "k", "rate": "5/10m"}, Kept("k", 5, 600_000, 1, 0)),
        ({"key": "k", "rate": "1/250ms"}, Kept("k", 1, 250, 1, 0)),
        ({"key": "k", "concurrency": 7}, Kept("k", 0, 1_000, 1, 7)),
    ],
)
def test_a_limit_goes_there_and_back(given, kept):
    assert stored_limits([given]) == (kept,)
    assert stored_limits([rates.limit(kept)]) == (kept,)


def test_no_limit_is_none():
    assert stored_limits([]) is None


@pytest.mark.parametrize(
    "limits",
    [
        [{"key": "k", "rate": "fast"}],
        [{"key": "k", "rate": 5}],
        [{"key": "k"}],
        [{"key": "k", "rate": "1/s"}] * 2,
        [{"key": "k", "rate": "1/2d"}],
        [{"kee": "k"}],
        {"key": "k", "rate": "1/s"},
        Limit(key="k", rate="1/s"),
        7,
    ],
)
def test_an_invalid_limit_is_refused_where_it_is_written(limits):
    app = App(":memory:")
    with pytest.raises(InvalidField):

        @app.task(limits=limits)
        def function() -> None: ...


def test_limits_may_be_read_more_than_once():
    assert Options().merged(limits=iter([Limit(key="k", rate="1/s")])).limits == (Limit(key="k", rate="1/s"),)


def test_a_limit_of_concurrency_holds():
    app, most, now = App(":memory:"), 0, 0

    @app.task(limits=[Limit(key="two", concurrency=2)])
    async def work(number: int) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        for _ in range(10):
            await asyncio.sleep(0)  # tidy: gives the others their turn
        now -= 1

    with app:
        for handle in work.schedule_many([(number,) for number in range(20)]).wait():
            handle.result("30s").wait()
    assert most == 2
