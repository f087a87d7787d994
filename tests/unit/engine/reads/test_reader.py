"""Reads of consumers and of the log's position, for connections and insight."""

from __future__ import annotations

import pytest

from duetime.errors import Fatal
from duetime.protocol.command import Demand
from duetime.protocol.terms import Stream
from tests.unit.insight.rig import run, world


def test_the_deliveries_and_credits_of_a_consumer(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            engine = w.engine
            assert not engine.reads.held("worker")
            assert not engine.reads.credits("worker")
            await engine.ask(Demand("worker", "stream:s", 3))
            before = engine.position
            await w.many("a", 1, target=Stream("s"))
            assert engine.position > before
            held = engine.reads.held("worker")
            assert [(id, intent.delivery) for id, intent in held.items()] == [("a0", 1)]
            assert engine.reads.credits("worker") == {"stream:s": 2}

    run(main())


def test_after_a_failure_connections_still_read_what_they_hold(tmp_path):
    """They end themselves with it; everything else gets the reason of the failure."""

    async def main():
        async with world(tmp_path) as w:
            engine = w.engine
            await engine.ask(Demand("worker", "stream:s", 3))
            await w.many("a", 1, target=Stream("s"))
            await w.fail()
            assert list(engine.reads.held("worker")) == ["a0"]
            reads = engine.reads
            for read in (reads.overview, reads.next_ms, reads.tally, lambda: engine.store):
                with pytest.raises(Fatal):
                    read()

    run(main())
