"""What a lane costs: there may be a million entities with one message each, or a hundred thousand queues."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from duetime.kernel.queues.lanes import Lane
from duetime.protocol.command import Pause
from duetime.protocol.intent import DUE
from duetime.testing.contracts.store_tools import make
from tests.unit.kernel.bench import T0, Bench, entity, queue

COUNT = 2_000


@pytest.mark.parametrize("on", [entity, queue], ids=["entities", "queues"])
def test_a_lane_with_one_intent_that_waits_is_small(on):
    bench = Bench(pushed=("callback",))
    terms = [on(f"n{number}") for number in range(COUNT)]
    bench.submit("first", on=on("first"))
    gc.collect()
    tracemalloc.start(1)
    try:
        for number, each in enumerate(terms):
            bench.submit(f"i{number}", on=each)
        gc.collect()
        found = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    ours = [
        tracemalloc.Filter(True, f"*/kernel/{name}.py") for name in ("lanes", "kinds", "state", "readying")
    ]
    size = sum(each.size for each in found.filter_traces(ours).statistics("filename"))
    assert size / COUNT < 450, f"{size / COUNT:.0f} bytes for a lane besides its intent"


class Walked(dict):
    """Counts how often somebody begins to walk it."""

    walks = 0

    def values(self):
        self.walks += 1
        return super().values()

    def items(self):
        self.walks += 1
        return super().items()


def test_a_checkpoint_walks_the_lanes_once_and_sorts_only_what_has_shares():
    bench = Bench(pushed=())
    for number in range(50):
        bench.submit(f"q{number}", on=queue(f"n{number:02}", fairness_key="k" if number % 20 == 7 else None))
        bench.submit(f"e{number}", on=entity(f"n{number}"))
    bench.do(Pause("task:n03"))
    bench.do(Pause("entity:cart/n4"))
    state = bench.state
    state.lanes, state.queues = lanes, queues = Walked(state.lanes), Walked(state.queues)
    checkpoint = bench.kernel.checkpoint(1)
    assert (lanes.walks, queues.walks) == (1, 1)
    assert [turns.lane for turns in checkpoint.shares] == ["task:n07", "task:n27", "task:n47"]
    assert checkpoint.paused == ("task:n03", "entity:cart/n4")
    assert len(checkpoint.pending) == 50


def test_a_track_keeps_its_order_while_it_grows_and_shrinks():
    """Few stand in a heap, more in a queue beside it; the order is the same."""
    chance = random.Random(7)
    lane = Lane("task:q", serial=False, pushed=False)
    there: list[tuple[int, int]] = []
    track, seq = lane.track(0), 0
    for most in (3, 40, 2, 100, 0):
        while len(there) < most:
            seq += 1
            due_at_ms = T0 + (seq if chance.random() < 0.8 else chance.randrange(seq + 1))
            intent = make(seq, 0, status=DUE, due_at_ms=due_at_ms, terms=queue("q"))
            track.push(intent)
            there.append((due_at_ms, seq))
        there.sort()
        assert sorted(entry[:2] for entry in track.ready) == there
        while len(there) > most // 2:
            head = track.head()
            assert head is not None and head[:2] == there.pop(0)
            track.pop()
            assert len(track) == len(there)
    assert track.head() is None
