"""How far deliveries are: only of those that are out, and nothing is left behind."""

from __future__ import annotations

from duetime.engine.reads.progress import Progresses
from duetime.protocol.view import Progress
from tests.unit.kernel.bench import Bench, queue

HALF = Progress(1, 2, "", 7)


def test_only_the_delivery_that_is_out_counts():
    bench = Bench(pushed=())
    progress = Progresses(bench.store)
    bench.submit("a", on=queue("q"))
    assert progress.put(bench.state, "w", {("a", 1): HALF}) == 0, "nobody has it"
    bench.demand("w", "task:q")
    assert progress.put(bench.state, "v", {("a", 1): HALF}) == 0, "somebody else has it"
    assert progress.put(bench.state, "w", {("a", 2): HALF, ("b", 1): HALF}) == 0
    assert progress.of(bench.intent("a")) is None
    assert progress.put(bench.state, "w", {("a", 1): HALF}) == 1
    assert progress.of(bench.intent("a")) == HALF
    bench.fail("a")
    assert progress.of(bench.intent("a")) is None, "it is over"
    bench.at(1_000)
    bench.demand("w", "task:q")
    assert progress.of(bench.intent("a")) is None, "the next one has said nothing"


def test_progress_of_ended_deliveries_is_removed():
    bench = Bench(pushed=())
    progress = Progresses(bench.store)
    bench.demand("w", "task:q", 10_000)
    for number in range(1_000):
        id = f"i{number}"
        bench.submit(id, on=queue("q"))
        progress.put(bench.state, "w", {(id, 1): HALF})
        if number:
            bench.done(id)
    assert len(progress) < 100
    assert progress.of(bench.intent("i0")) == HALF, "it is still out"
