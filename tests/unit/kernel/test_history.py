"""What is told of an intent's life."""

from __future__ import annotations

from duetime.kernel.history import entries_of
from duetime.limits import HISTORY_ENTRIES_MAX
from duetime.protocol.outcome import Rejected, Snoozed
from duetime.protocol.terms import Redelivery
from tests.unit.kernel.bench import T0, Bench, terms


def story(bench: Bench, id: str = "a") -> list[tuple[int, str, str]]:
    return [(e.at_ms - T0, e.status.name, e.note) for e in entries_of(bench.intent(id))]


def test_the_usual_history_needs_no_storage_and_is_complete():
    bench = Bench()
    bench.submit("a", delay=100)
    bench.at(100)
    bench.ms = 130
    bench.done("a")
    assert bench.intent("a").rare is None
    assert story(bench) == [
        (0, "SCHEDULED", ""),
        (100, "DUE", ""),
        (100, "DISPATCHING", ""),
        (130, "ACKED", ""),
    ]


def test_attempts_and_their_reasons_are_kept():
    bench = Bench()
    bench.submit("a")
    bench.ms = 10
    bench.fail("a", "http", "502", http_status=502)
    bench.at(1_050)
    bench.settle("a", Snoozed(200))
    bench.at(1_250)
    bench.settle("a", Rejected("http", "404"))
    assert story(bench) == [
        (0, "SCHEDULED", ""),
        (0, "DUE", ""),
        (0, "DISPATCHING", ""),
        (10, "SCHEDULED", "http: 502"),
        (1_010, "DUE", ""),
        (1_050, "DISPATCHING", ""),
        (1_050, "SCHEDULED", "snoozed for 200 ms"),
        (1_250, "DUE", ""),
        (1_250, "DISPATCHING", ""),
        (1_250, "DEAD_LETTERED", "404"),
    ]
    assert [e.delivery for e in entries_of(bench.intent("a")) if e.status.name == "DISPATCHING"] == [1, 2, 3]


def test_cancel_fire_and_patch_are_in_the_history():
    bench = Bench()
    bench.submit("a", delay=5_000)
    bench.patch("a", priority=1)
    bench.fire("a")
    bench.cancel("a")
    notes = [note for _, _, note in story(bench)]
    assert notes == ["", "patched", "fired now", "", "", ""]
    assert story(bench)[-1][1] == "CANCELED"


def test_a_blocked_life_begins_blocked():
    bench = Bench()
    bench.submit("p")
    bench.submit("a", after=("p",))
    bench.ms = 10
    bench.done("p")
    assert story(bench)[:2] == [
        (0, "BLOCKED", ""),
        (10, "SCHEDULED", "everything it waited for is acknowledged"),
    ]


def test_a_revived_life_keeps_the_one_before():
    bench = Bench()
    bench.submit("a")
    bench.settle("a", Rejected("bad", "never"))
    bench.ms = 50
    bench.revive("a")
    bench.done("a")
    assert [(status, note) for _, status, note in story(bench)] == [
        ("SCHEDULED", ""),
        ("DUE", ""),
        ("DISPATCHING", ""),
        ("DEAD_LETTERED", "never"),
        ("SCHEDULED", "revived"),
        ("DUE", ""),
        ("DISPATCHING", ""),
        ("ACKED", ""),
    ]


def test_a_long_life_keeps_its_beginning_and_its_newest_part():
    bench = Bench()
    policy = Redelivery(max_attempts=10_000, initial_delay_ms=0, jitter=False)
    bench.submit("a", on=terms(redelivery=policy))
    for n in range(200):
        bench.fail("a", message=f"try {n}")
        bench.later(100)
    rare = bench.intent("a").rare
    assert rare is not None and rare.history is not None
    assert len(rare.history) == HISTORY_ENTRIES_MAX
    notes = [entry.note for entry in rare.history]
    assert "error: try 0" in notes and notes[-1] == "error: try 199"


def test_a_life_that_has_only_begun():
    bench = Bench()
    bench.submit("a", delay=100)
    assert story(bench) == [(0, "SCHEDULED", "")]


def test_a_life_that_ended_before_it_was_due():
    bench = Bench()
    bench.submit("a", delay=100)
    bench.ms = 5
    bench.cancel("a")
    assert story(bench) == [(0, "SCHEDULED", ""), (5, "CANCELED", "")]


def test_an_intent_of_the_near_past_is_due_when_it_is_made_not_before():
    bench = Bench()
    bench.ms = 5_000
    bench.submit("a", delay=-4_000)
    bench.ms = 5_010
    bench.fail("a", "http", "502", delay_ms=0)
    bench.at(5_020)
    bench.done("a")
    told = story(bench)
    assert [status for _, status, _ in told[:3]] == ["SCHEDULED", "DUE", "DISPATCHING"]
    assert [at_ms for at_ms, _, _ in told] == sorted(at_ms for at_ms, _, _ in told), told
    assert bench.intent("a").late_ms == 4_000, "its lateness is still counted from its planned time"
