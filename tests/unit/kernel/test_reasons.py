"""Why an intent has not run yet: each situation has its own code, and a sentence that is true."""

from __future__ import annotations

import re

import pytest

from duetime.kernel import query
from duetime.limits import DAY_MS, MINUTE_MS
from duetime.protocol.command import Drain, Pause, Purge, Resize
from duetime.protocol.outcome import Failed, Rejected, Snoozed
from duetime.protocol.terms import Callback
from duetime.protocol.view import Why
from tests.unit.kernel.bench import T0, Bench, entity, queue, stream, terms

HOOK = terms(Callback("http://shop:80/paid"))


def why(bench: Bench, id: str = "a") -> Why:
    answer = query.why(bench.state, bench.intent(id), T0 + bench.ms)
    assert not re.search(r"\d{6}", answer.sentence), "no raw milliseconds for people"
    assert re.fullmatch(r"[A-Z0-9'].*\.", answer.sentence)
    return answer


def test_an_intent_waits_for_its_time():
    bench = Bench()
    bench.submit("a", delay=251_000)
    bench.ms = 1_000
    assert why(bench) == Why(
        "waiting-for-time",
        "Its time has not come; it is due in 4 min 10 s.",
        {"wake_at_ms": T0 + 251_000, "wait_ms": 250_000},
    )


def test_an_intent_past_its_time_before_the_next_advance():
    bench = Bench()
    bench.submit("a", delay=5)
    bench.ms = 7
    assert why(bench).sentence == "Its time has not come; it is due now."


def test_an_intent_waits_for_a_retry():
    bench = Bench()
    bench.submit("a")
    bench.settle("a", Failed("http", "502 Bad Gateway", delay_ms=4_200))
    bench.ms = 1_000
    answer = why(bench)
    assert answer.code == "waiting-for-retry"
    assert answer.sentence == (
        "Attempt 1 of 5 failed 1 s ago (http: 502 Bad Gateway); attempt 2 is due in 3.2 s."
    )
    assert answer.data == {
        "wake_at_ms": T0 + 4_200,
        "wait_ms": 3_200,
        "attempts": 1,
        "failed_at_ms": T0,
        "kind": "http",
    }


def test_an_intent_will_expire_before_its_retry():
    bench = Bench()
    bench.submit("a", deadline=2_000)
    bench.settle("a", Failed("http", "502", delay_ms=4_200))
    answer = why(bench)
    assert answer.sentence == (
        "Attempt 1 of 5 failed 0 ms ago (http: 502); its deadline comes first, and it expires in 2 s."
    )
    assert answer.data["deadline_at_ms"] == T0 + 2_000


def test_an_intent_was_snoozed():
    bench = Bench()
    bench.submit("a", "b")
    bench.settle("a", Snoozed(90_000, "http://h:1 failed too often in a row"))
    bench.settle("b", Snoozed(500))
    text = "snoozed for 1 min 30 s (http://h:1 failed too often in a row)"
    assert why(bench).code == "snoozed"
    assert why(bench).sentence == f"It was {text}; it is due again in 1 min 30 s."
    assert why(bench, "b").sentence == "It was snoozed for 500 ms; it is due again in 500 ms."
    bench.patch("a", priority=3)
    assert why(bench).code == "snoozed", "a patch is no news about the delivery"


def test_a_snooze_of_an_earlier_life_is_no_reason():
    bench = Bench()
    bench.submit("a")
    bench.settle("a", Snoozed(10))
    bench.at(100)
    bench.fail("a", message="no")
    assert why(bench).code == "waiting-for-retry"
    bench.at(100_000)
    bench.settle("a", Rejected("http", "410"))
    bench.revive("a", execute_at_ms=T0 + 200_000)
    assert why(bench).code == "waiting-for-time"


def test_an_intent_waits_for_its_dependencies():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("r", on=stream())
    bench.submit("a", after=("p", "q", "r"))
    bench.done("p")
    answer = why(bench)
    assert (answer.code, answer.data) == ("blocked", {"after": ["q", "r"]})
    assert answer.sentence == (
        "It waits for 2 other intents to be acknowledged: 'q' (DISPATCHING), 'r' (DUE)."
    )


def test_an_intent_waits_for_many_dependencies_until_its_deadline():
    bench = Bench()
    ids = tuple(f"p{n}" for n in range(8))
    bench.submit(*ids, delay=9_000)
    bench.submit("a", after=ids, deadline=5_000)
    answer = why(bench)
    assert answer.sentence.endswith("'p4' (SCHEDULED) and 3 more; it expires in 5 s.")
    assert answer.data == {"after": list(ids), "deadline_at_ms": T0 + 5_000}


def test_a_parent_that_is_forgotten_was_acknowledged():
    bench = Bench(retention_ms=1)
    bench.submit("p", "q")
    bench.submit("a", after=("p", "q"))
    bench.done("p")
    bench.at(2 * MINUTE_MS)
    assert bench.store.get("p") is None
    assert why(bench).data == {"after": ["q"]}


def test_the_lane_is_paused():
    bench = Bench()
    bench.do(Pause("task:default"))
    bench.submit("a", deadline=60_000)
    bench.ms = 3_000
    answer = why(bench)
    assert answer.code == "paused"
    assert answer.sentence == (
        "Its lane 'task:default' is paused. It has been due for 3 s, and expires in 57 s."
    )
    assert answer.data["due_at_ms"] == T0 and answer.data["deadline_at_ms"] == T0 + 60_000


@pytest.mark.parametrize("pushed", [("entity",), ()])
def test_the_entity_is_busy(pushed):
    bench = Bench(pushed=pushed)
    bench.submit("x", "a", on=entity())
    if not pushed:
        bench.demand("w", "entity:cart/e1", 5)
    answer = why(bench)
    assert (answer.code, answer.data["held_by"]) == ("entity-busy", "x")
    assert answer.sentence.startswith(
        "It waits for 'x' (DISPATCHING): its entity runs one message at a time, in order."
    )


@pytest.mark.parametrize(
    ("on", "text"),
    [
        (stream(), "No subscriber is ready for the stream 's'."),
        (queue("mail"), "No worker is ready for the queue 'mail'."),
        (entity(), "No worker is ready for the entity 'cart/e1'."),
    ],
)
def test_no_consumer_takes_its_queue(on, text):
    bench = Bench(pushed=())
    bench.submit("a", on=on)
    answer = why(bench)
    assert answer.code == "no-worker" and answer.sentence == f"{text} It has been due for 0 ms."


def test_all_consumers_are_busy():
    bench = Bench()
    bench.submit("x", "y", "a", on=stream())
    bench.demand("w", "stream:s")
    bench.demand("v", "stream:s")
    answer = why(bench)
    assert answer.code == "workers-busy"
    assert answer.sentence.startswith(
        "Every subscriber of the stream 's' is busy: 2 deliveries running, with 'v', 'w'."
    )
    assert (answer.data["running"], answer.data["busy"]) == (2, ["v", "w"])


def test_others_go_first():
    """Ready, with a worker that asks, and yet not out: seen only in the middle of a record."""
    bench = Bench()
    bench.submit("a", on=stream())
    bench.state.lanes["stream:s"].ask("w")
    assert why(bench).code == "waiting-for-turn"
    bench.do(Resize(3, 1))
    bench.do(Resize(4, 1))
    bench.submit("x", "b")
    bench.state.tiers.all[3].used = 0
    assert why(bench, "b").code == "waiting-for-turn"


def test_no_permit_is_left():
    bench = Bench()
    for tier in (3, 4):
        bench.do(Resize(tier, 1))
    bench.submit("x", "a")
    answer = why(bench)
    assert (answer.code, answer.data["permits_max"], answer.data["used"]) == ("no-permit", 1, 1)
    assert answer.sentence.startswith("All 1 permits of STANDARD are in use.")
    bench.state.tiers.all[3].lent = 1
    assert "in use, 1 of them lent to higher tiers." in why(bench).sentence


def test_the_host_has_used_its_share():
    bench = Bench(pushed=("callback",))
    for tier in (3, 4):
        bench.do(Resize(tier, 5))
    bench.submit(*(f"a{n}" for n in range(12)), on=HOOK)
    answer = why(bench, "a11")
    assert answer.code == "host-busy"
    assert re.match(
        r"4 callbacks of STANDARD to \S+ are under way, and 1 of its 5 permits is left to other hosts:"
        r" one host takes at most 4 times what is free, alone 4 of 5\.",
        answer.sentence,
    )
    assert (answer.data["out"], answer.data["free"], answer.data["share_max"]) == (4, 1, 4)
    bench.do(Resize(3, 7))
    assert len(bench.state.out[""]) == why(bench, "a11").data["share_max"] == 6, "it is the number that holds"


def test_the_engine_stops():
    bench = Bench()
    bench.do(Drain())
    bench.submit("a")
    answer = why(bench)
    assert answer.code == "draining" and "after the next start" in answer.sentence


def test_an_intent_is_running():
    bench = Bench(pushed=("task", "callback"))
    bench.submit("a")
    bench.submit("b", on=HOOK)
    bench.submit("c", on=stream())
    bench.demand("w", "stream:s")
    bench.ms = 12_000
    assert why(bench).sentence == "It has been run by this engine for 12 s (delivery 1, attempt 1 of 5)."
    assert re.match(r"It has been on its way to \S+ for 12 s \(delivery 1", why(bench, "b").sentence)
    answer = why(bench, "c")
    assert answer.sentence == (
        "It has been with 'w' for 12 s (delivery 1, attempt 1 of 5);"
        " its lease ends in 18 s unless 'w' sends a heartbeat."
    )
    assert (answer.data["started_at_ms"], answer.data["lease_ends_at_ms"]) == (T0, T0 + 30_000)


def test_a_sign_of_life_is_seen():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.demand("w", "stream:s")
    bench.at(20_000)
    bench.beat("w")
    assert why(bench).data["lease_ends_at_ms"] == T0 + 50_000


def test_an_intent_was_acknowledged():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.at(40)
    bench.demand("w", "stream:s")
    bench.done("a")
    bench.ms = MINUTE_MS
    answer = why(bench)
    assert answer.code == "acked"
    assert answer.sentence == ("It was acknowledged 59 s ago, on attempt 1; it started 40 ms after its time.")
    assert answer.data == {"finished_at_ms": T0 + 40, "attempts": 1, "delivery": 1, "late_ms": 40}


def test_an_intent_was_cancelled():
    bench = Bench()
    bench.submit("a")
    bench.submit("b", delay=50)
    bench.cancel("a")
    bench.cancel("b")
    bench.ms = 2 * DAY_MS
    assert why(bench).sentence == "It was cancelled 2 d ago after 1 attempt."
    assert why(bench, "b").sentence == "It was cancelled 2 d ago, before it ran."


def test_an_intent_expired():
    bench = Bench()
    bench.submit("a", on=stream(), deadline=1_000)
    bench.at(1_000)
    assert why(bench) == Why(
        "expired",
        "It expired 0 ms ago: the deadline passed before it could be handed out.",
        {"finished_at_ms": T0 + 1_000, "attempts": 0, "delivery": 0, "kind": "expired"},
    )


def test_an_intent_is_a_dead_letter():
    bench = Bench()
    bench.submit("a", "p")
    bench.submit("b", after=("p",))
    bench.settle("a", Rejected("http", "404 Not Found", 404))
    bench.cancel("p")
    answer = why(bench)
    assert answer.code == "dead-lettered" and answer.data["kind"] == "http"
    assert answer.sentence == "It became a dead letter 0 ms ago, after 1 attempt: 404 Not Found (http)."
    assert "before it ran: " in why(bench, "b").sentence and "'p'" in why(bench, "b").sentence


def test_a_purged_dead_letter_keeps_its_moment():
    bench = Bench()
    bench.submit("a")
    bench.settle("a", Rejected("http", "404"))
    bench.do(Purge(("a",)))
    if bench.state.store.get("a") is not None:
        assert "0 ms ago" in why(bench).sentence
