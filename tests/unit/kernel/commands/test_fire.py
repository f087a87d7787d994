"""Making an intent due before its time."""

from __future__ import annotations

from duetime.protocol.intent import Status
from tests.unit.kernel.bench import T0, Bench, delivered, entity


def test_a_fired_intent_is_delivered_at_once_and_only_once():
    bench = Bench()
    bench.submit("a", delay=60_000)
    bench.ms = 10
    assert delivered(bench.fire("a")) == ["a"]
    assert bench.intent("a").late_ms == 0
    bench.done("a")
    assert delivered(bench.at(60_000)) == []


def test_a_fired_intent_is_due_at_the_time_of_the_command():
    bench = Bench()
    bench.submit("a", delay=60_000)
    bench.ms = 10
    bench.fire("a")
    assert bench.intent("a").execute_at_ms == T0 + 10


def test_a_retry_can_be_fired_and_keeps_its_time():
    bench = Bench()
    bench.submit("a")
    bench.ms = 10
    bench.fail("a")
    assert delivered(bench.fire("a")) == ["a"]
    intent = bench.intent("a")
    assert (intent.execute_at_ms, intent.attempt, intent.delivery) == (T0, 2, 2)


def test_after_its_deadline_it_ends_instead():
    bench = Bench()
    bench.submit("a")
    bench.fail("a")
    bench.patch("a", deadline_ms=T0 + 510)
    bench.ms = 520
    assert delivered(bench.fire("a")) == []
    assert bench.status("a") is Status.EXPIRED


def test_a_fired_message_waits_for_its_entity():
    bench = Bench()
    bench.submit("a", on=entity())
    bench.submit("b", on=entity(), delay=60_000)
    assert delivered(bench.fire("b")) == []
    assert delivered(bench.done("a")) == ["b"]
