"""Who counts as idle: three ways, and what is none of them."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.channels.pull import Connected
from duetime.engine.phase import Phase
from duetime.engine.predictions.durations import Durations
from duetime.engine.reads.progress import Progresses
from duetime.engine.reads.reader import Reader
from duetime.insight.workers import idle, unserved
from duetime.protocol.checkpoint import Consumer
from duetime.protocol.command import LaneSettings, Pause, SetLane
from duetime.testing.time import ManualClock
from tests.unit.kernel.bench import Bench, entity, queue

LANE = "task:mail"


def reads(bench: Bench) -> Reader:
    """The reads of an engine, over a kernel driven by hand."""
    clock = ManualClock()
    durations = Durations(clock, bench.store)
    return Reader(bench.kernel, Phase(), clock, Progresses(bench.store), durations)


def seen(bench: Bench, **changes: Any) -> dict[str, str]:
    base: dict[str, Any] = {
        "name": "w~1f", "sources": frozenset({LANE}), "held": 0, "silent_ms": 100,
        "draining": False,
    }  # fmt: skip
    return idle(reads(bench), [Connected(**(base | changes))])


@pytest.fixture
def ready() -> Bench:
    bench = Bench(pushed=())
    bench.submit("a", on=queue("mail"))
    return bench


def test_no_worker_is_idle_without_work():
    bench = Bench(pushed=())
    assert seen(bench) == {} and seen(bench, silent_ms=60_000) == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "asks for nothing"),
        ({"silent_ms": 60_000}, "no sign of life for 1 min"),
        ({"silent_ms": 60_000, "held": 2}, "holds 2 deliveries"),
    ],
)
def test_an_idle_worker_is_reported_while_work_is_ready(ready, changes, words):
    assert words in seen(ready, **changes)["w"]


def test_a_worker_with_credits_that_gets_no_ready_work_is_idle(ready):
    ready.state.consumers["w~1f"] = Consumer("w~1f", 0, {LANE: 3})  # as if the kernel had forgotten its turn
    assert "is handed nothing" in seen(ready)["w"]


def test_a_silent_worker_that_holds_deliveries_is_reported_without_more_work():
    assert "holds 1 delivery" in seen(Bench(pushed=()), silent_ms=60_000, held=1)["w"]


@pytest.mark.parametrize("changes", [{"held": 1}, {"draining": True}, {"sources": frozenset({"task:other"})}])
def test_workers_that_are_busy_or_leaving_or_of_other_queues_are_not_reported(ready, changes):
    assert seen(ready, **changes) == {}


def test_work_that_may_not_start_makes_no_worker_idle(ready):
    ready.do(SetLane(LANE, LaneSettings(concurrency=1)))
    assert seen(ready) == {}
    ready.do(SetLane(LANE, LaneSettings()))
    ready.do(Pause(LANE))
    assert seen(ready) == {}
    bench = Bench(pushed=())
    bench.submit("a", on=queue("mail"))
    bench.state.draining = True
    assert seen(bench) == {}


def test_entities_are_work_too():
    bench = Bench(pushed=())
    sources = frozenset({"entities:cart"})
    assert seen(bench, sources=sources) == {}
    bench.submit("a", on=entity("e1"))
    assert "entities:cart" in seen(bench, sources=sources)["w"]


def test_entity_types_without_a_worker():
    bench = Bench(pushed=())
    engine = reads(bench)
    assert unserved(engine, []) == {}
    bench.submit("a", "b", on=entity("e1"))
    bench.submit("c", on=entity("e2"))
    assert unserved(engine, []) == {"entities:cart": 2}

    def worker(source: str) -> Connected:
        return Connected("w~1", frozenset({source}), 0, 0, False)

    assert unserved(engine, [worker("entities:other")]) == {"entities:cart": 2}
    assert unserved(engine, [worker("entities:cart")]) == unserved(engine, [worker("entity:cart/e1")]) == {}
    bench.do(Pause("entities:cart"))
    assert unserved(engine, []) == {}
