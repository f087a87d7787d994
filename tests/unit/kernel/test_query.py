"""What a reader sees."""

from __future__ import annotations

import pytest

from duetime.kernel import query
from duetime.protocol.command import Pause, Resize
from duetime.protocol.intent import Status
from duetime.protocol.outcome import Rejected
from tests.unit.kernel.bench import T0, Bench, entity, queue, stream


def why(bench: Bench, id: str = "a"):
    return query.why(bench.state, bench.intent(id), T0 + bench.ms)


def test_why_it_waits_for_its_time():
    bench = Bench()
    bench.submit("a", delay=5_000)
    bench.ms = 1_000
    answer = why(bench)
    assert (answer.code, answer.data["wait_ms"]) == ("waiting-for-time", 4_000)
    assert "4000 ms" in answer.sentence


def test_why_it_waits_for_a_retry():
    bench = Bench()
    bench.submit("a")
    bench.fail("a", message="502 Bad Gateway")
    answer = why(bench)
    assert (answer.code, answer.data["attempts"]) == ("waiting-for-retry", 1)
    assert "attempt 2" in answer.sentence and "502 Bad Gateway" in answer.sentence


def test_why_a_lane_is_paused():
    bench = Bench()
    bench.do(Pause("task:default"))
    bench.submit("a")
    assert why(bench).code == "paused"


def test_why_an_entity_is_busy():
    bench = Bench()
    bench.submit("x", "a", on=entity())
    answer = why(bench)
    assert (answer.code, answer.data["held_by"]) == ("entity-busy", "x")


def test_why_nobody_takes_it():
    bench = Bench()
    bench.submit("a", on=stream())
    assert why(bench).code == "no-worker"
    bench.do(Pause("stream:s"))
    bench.demand("w", "stream:s")
    assert why(bench).code == "paused"


def test_why_others_go_first_in_a_pulled_entity():
    bench = Bench(pushed=())
    bench.submit("x", "a", on=entity())
    bench.demand("w", "entity:cart/e1", 5)
    assert why(bench).code == "entity-busy"
    assert why(bench, "x").code == "running"


def test_why_it_waits_for_its_turn():
    """Ready, with a worker that asks, and yet not out: seen only in the middle of a record."""
    bench = Bench()
    bench.submit("a", on=stream())
    bench.state.lanes["stream:s"].turns.append("w")
    assert why(bench).code == "waiting-for-turn"


def test_why_no_permit_is_left():
    bench = Bench()
    for tier in (3, 4):
        bench.do(Resize(tier, 1))
    bench.submit("x", "a")
    answer = why(bench)
    assert (answer.code, answer.data["permits_max"], answer.data["used"]) == ("no-permit", 1, 1)
    assert "STANDARD" in answer.sentence


def test_why_it_is_running():
    bench = Bench()
    bench.submit("a")
    assert "this engine" in why(bench).sentence
    bench.submit("b", on=stream())
    bench.demand("w", "stream:s")
    answer = why(bench, "b")
    assert answer.data["lease_until_ms"] == T0 + 30_000
    assert "'w'" in answer.sentence


def test_why_it_is_blocked():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("a", after=("p", "q"))
    bench.done("p")
    answer = why(bench)
    assert (answer.code, answer.data) == ("blocked", {"after": ["q"]})


def test_why_it_has_ended():
    bench = Bench()
    bench.submit("a", "b", "c")
    bench.done("a")
    bench.cancel("b")
    bench.settle("c", Rejected("http", "404"))
    assert [why(bench, id).code for id in "abc"] == ["acked", "canceled", "dead-lettered"]
    assert why(bench, "c").sentence == "It is a dead letter after 1 attempt(s): 404"


def test_a_view_is_a_copy_that_does_not_change():
    bench = Bench()
    bench.submit("a", key="k", delay=100, traceparent="t", payload=b"1")
    seen = query.view(bench.intent("a"))
    bench.at(100)
    assert (seen.status, seen.next_attempt_at_ms, seen.late_ms) == (Status.SCHEDULED, T0 + 100, None)
    assert (seen.key, seen.traceparent, seen.payload, seen.final) == ("k", "t", b"1", False)
    bench.done("a", b"2")
    ended = query.view(bench.intent("a"))
    assert (ended.final, ended.result, ended.late_ms, ended.next_attempt_at_ms) == (True, b"2", 0, 0)


def test_a_view_without_anything_rare():
    bench = Bench()
    bench.submit("a")
    seen = query.view(bench.intent("a"))
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
    why(bench, id)
    query.overview(bench.state, None)
    assert (bench.intent(id).revision, bench.kernel.checkpoint(1)) == before
