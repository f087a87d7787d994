"""What a reader sees."""

from __future__ import annotations

import pytest

from duetime.kernel import query
from duetime.protocol.intent import Status
from duetime.protocol.view import view_of
from tests.unit.kernel.bench import T0, Bench, entity, queue, stream


def test_a_view_is_a_copy_that_does_not_change():
    bench = Bench()
    bench.submit("a", key="k", delay=100, traceparent="t", payload=b"1")
    seen = view_of(bench.intent("a"))
    bench.at(100)
    assert (seen.status, seen.next_attempt_at_ms, seen.late_ms) == (Status.SCHEDULED, T0 + 100, None)
    assert (seen.key, seen.traceparent, seen.payload, seen.final) == ("k", "t", b"1", False)
    bench.done("a", b"2")
    ended = view_of(bench.intent("a"))
    assert (ended.final, ended.result, ended.late_ms, ended.next_attempt_at_ms) == (True, b"2", 0, 0)


def test_a_view_without_anything_rare():
    bench = Bench()
    bench.submit("a")
    seen = view_of(bench.intent("a"))
    assert (seen.key, seen.after, seen.last_error, seen.result) == (None, (), None, None)


def test_a_lane_in_numbers():
    bench = Bench()
    bench.submit("a", "b", "c", on=stream())
    bench.submit("d", on=stream(), delay=100)
    bench.demand("w", "stream:s")
    seen = query.lane_view(bench.state.lanes["stream:s"])
    assert (seen.name, seen.serial, seen.pushed, seen.paused) == ("stream:s", False, False, False)
    assert (seen.pending, seen.ready, seen.running, seen.consumers) == (4, 2, 1, 0)


def test_the_engine_in_numbers():
    bench = Bench()
    bench.submit("a", "b", delay=500)
    bench.submit("c", on=queue("q", tier=0))
    bench.submit("m", on=entity())
    seen = query.overview(bench.state, bench.kernel.next_ms())
    assert seen.counts["SCHEDULED"] == 2 and seen.counts["DISPATCHING"] == 2
    assert (seen.lanes, seen.entities, seen.records, seen.next_ms) == (3, 1, 3, T0 + 500)
    assert [tier.used for tier in seen.tiers] == [1, 0, 0, 1, 0]
    assert [tier.name for tier in seen.tiers] == ["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"]


@pytest.mark.parametrize("id", ["a", "b"])
def test_reading_changes_nothing(id):
    bench = Bench()
    bench.submit("a", delay=5)
    bench.submit("b", on=stream())
    before = (bench.intent(id).revision, bench.kernel.checkpoint(1))
    query.why(bench.state, bench.intent(id), T0 + bench.ms)
    query.overview(bench.state, None)
    assert (bench.intent(id).revision, bench.kernel.checkpoint(1)) == before
