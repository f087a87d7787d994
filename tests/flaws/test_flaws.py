"""Flaws of earlier systems of this kind, on time and delivery: none may exist here.

Numbers are those of the list of flaws. Each test stands at the lowest layer that can show its flaw.
"""

from __future__ import annotations

import pytest

from duetime.engine.dispatcher import Dispatcher
from duetime.limits import TIER_NAMES, TIER_WINDOW_MS
from duetime.protocol import record as codec
from duetime.protocol.command import Advance, Resize, Settle, Submit
from duetime.protocol.intent import Item, Status
from duetime.protocol.outcome import Done, Failed, Rejected, Settlement
from duetime.protocol.terms import Callback, ExpiredAction, Redelivery, lane_of
from duetime.store.sqlite.store import SqliteStore
from tests.unit.kernel.bench import (
    T0,
    Bench,
    delivered,
    deliveries,
    entity,
    errors,
    queue,
    stream,
    terms,
    thawed,
)


def test_flaw_01_a_burst_over_all_tiers_on_few_permits_is_worked_off():
    """Consumers took their permits one by one and deadlocked, each holding some of what the others needed."""
    bench = Bench()
    for tier in range(5):
        bench.do(Resize(tier, 3))
    waiting: list[str] = []
    for tier in range(5):
        waiting += delivered(bench.submit(*(f"{tier}-{n}" for n in range(2_000)), on=queue("q", tier=tier)))
    finished = 0
    while waiting:
        batch, waiting = waiting, []
        applied = bench.do(Settle(tuple(Settlement(id, 1, Done()) for id in batch)))
        finished += len(batch)
        waiting = delivered(applied) or delivered(bench.do(Advance()))  # one moment has its bound
    assert finished == 10_000
    assert bench.state.counts[Status.ACKED] == 10_000
    assert [permits.used for permits in bench.state.tiers.all] == [0] * 5


@pytest.mark.parametrize("tier", range(5), ids=TIER_NAMES)
def test_flaw_02_lateness_is_a_small_part_of_the_window_and_idle_asks_for_nothing(tier):
    """Lateness equalled the scan window even when nothing was going on, and scanning burnt half a core."""
    bench = Bench()
    assert bench.next() is None, "idle: no alarm at all"
    bench.state.timers.extend(T0 + 10**9, 10)
    late = []
    wake_ups = 0
    for n in range(100):
        bench.submit(f"i{n}", on=queue("q", tier=tier), delay=10_007 + 13 * n)
        while (wake := bench.next()) is not None:
            wake_ups += 1
            for id in delivered(bench.at(wake)):
                late.append(bench.intent(id).late_ms)
                bench.done(id)
    assert len(late) == 100
    assert wake_ups == 100, "one wake-up each, none in between"
    assert max(late) <= TIER_WINDOW_MS[tier] // 8
    assert bench.next() is None


def test_flaw_03_nothing_is_delivered_after_its_deadline_and_no_action_is_an_action():
    """An overdue intent was delivered after its deadline; without `expiredAction` the scan failed."""
    bench = Bench()
    bench.submit("default", delay=1_000, deadline=2_000)
    bench.submit("dead", delay=1_000, deadline=2_000, on=terms(expired_action=ExpiredAction.DEAD_LETTER))
    bench.submit("pulled", deadline=2_000, on=stream())
    assert delivered(bench.at(500_000)) == []
    assert bench.statuses("default", "dead", "pulled") == ["EXPIRED", "DEAD_LETTERED", "EXPIRED"]
    assert delivered(bench.demand("w", "stream:s")) == []


def test_flaw_04_no_intent_is_lost_between_registering_and_waking():
    """A cohort was flushed while intents were added to it: one in 100,000 was lost."""
    bench = Bench()
    for tier in range(5):
        bench.do(Resize(tier, 100_000))
    seen: list[str] = []
    count = 20_000
    for start in range(0, count, 40):
        bench.ms += 7
        items = tuple(Item(f"i{n}", n % 5, T0 + bench.ms + n % 97) for n in range(start, start + 40))
        applied = bench.do(Submit(tuple(queue("q", tier=tier) for tier in range(5)), items))
        seen += delivered(applied)
        if start % 3_000 == 0:
            bench.state.timers.extend(T0 + bench.ms + start % 200, 30)
    while (wake := bench.next()) is not None:
        seen += delivered(bench.at(wake))
    assert len(seen) == count, "none twice"
    assert len(set(seen)) == count, "none lost"


@pytest.mark.parametrize("attempts", [1, 3, 7])
def test_flaw_05_server_errors_are_retried_up_to_the_maximum_also_after_a_restart(tmp_path, attempts):
    """5xx went to the dead letters at once; `maxAttempts` was ignored; a restart lost the settings."""
    policy = Redelivery(max_attempts=attempts, initial_delay_ms=300, max_delay_ms=400, jitter=False)
    bench = Bench(SqliteStore(tmp_path / "store.db"))
    bench.submit("a", on=terms(Callback("http://x"), redelivery=policy))
    for attempt in range(1, attempts + 1):
        assert bench.status("a") is Status.DISPATCHING
        bench.settle("a", Failed("http", "503", 503))
        bench.save(attempt)
        bench.store.close()
        bench = thawed(SqliteStore(tmp_path / "store.db"), bench.ms)
        if attempt < attempts:
            wait = (300, 400)[attempt > 1]
            assert delivered(bench.later(wait - 1)) == []
            assert delivered(bench.later(1)) == ["a"]
    assert bench.status("a") is Status.DEAD_LETTERED
    assert bench.intent("a").attempt == attempts
    bench.store.close()


def test_flaw_05_an_answer_without_a_body_is_an_answer():
    """A 204 was delivered again for ever."""
    bench = Bench()
    bench.submit("a", on=terms(Callback("http://x")))
    bench.settle("a", Done(None))
    assert bench.status("a") is Status.ACKED
    assert delivered(bench.later(10**9)) == []


def test_flaw_06_a_callback_arrives_as_it_was_given(tmp_path):
    """`method` and `body` were ignored; a callback over 256 bytes was an error."""
    headers = {f"X-{n}": "v" * 200 for n in range(20)}
    callback = Callback("http://x/" + "p" * 1_900, "PUT", headers, b"\x00body" * 4_000, True)
    command = Submit((terms(callback),), (Item("a", 0, T0 + 500_000),))
    bench = Bench(SqliteStore(tmp_path / "store.db"))
    bench.do(codec.decode(codec.encode((command,)))[0])
    bench.save()
    bench.store.close()
    again = thawed(SqliteStore(tmp_path / "store.db"), 0)
    (deliver,) = deliveries(again.at(500_000))
    assert deliver.terms.target == callback
    assert deliver.terms.lane == lane_of(callback)
    again.store.close()


def test_flaw_07_each_item_of_a_batch_has_its_own_outcome_and_none_keeps_its_permit():
    """An item answered FAILED counted as success; an empty answer held its permits for half a minute."""
    bench = Bench()
    bench.do(Resize(3, 3))
    bench.submit("ok", "retry", "dead", on=terms(Callback("http://x", batch=True)))
    outcomes = (
        Settlement("ok", 1, Done()),
        Settlement("retry", 1, Failed("batch", "FAILED")),
        Settlement("dead", 1, Rejected("batch", "DEAD_LETTER")),
    )
    assert bench.do(Settle(outcomes)).answer == [True, True, True]
    assert bench.statuses("ok", "retry", "dead") == ["ACKED", "SCHEDULED", "DEAD_LETTERED"]
    assert bench.state.tiers.all[3].used == 0
    bench.do(Settle(()))
    assert bench.state.stale == 0


def test_flaw_09_the_same_id_twice_is_one_intent():
    """The same id twice fired twice."""
    bench = Bench()
    assert errors(bench.submit("a", "a", delay=100)) == ["", "IdExists"]
    assert errors(bench.submit("a", delay=100)) == ["IdExists"]
    assert delivered(bench.at(100)) == ["a"]
    bench.done("a")
    assert errors(bench.submit("a")) == ["IdExists"]
    assert delivered(bench.later(10**8)) == []


def test_flaw_17_a_failed_handler_leaves_no_lock_behind():
    """The lock of a handler that failed was still there when its retry came: it was skipped and lost."""
    bench = Bench()
    bench.submit("a", "b", on=entity())
    for attempt in range(1, 5):
        bench.fail("a")
        assert delivered(bench.later(60_000)) == ["a"], f"attempt {attempt + 1}"
    assert delivered(bench.fail("a")) == ["b"], "out of attempts, and the entity goes on"
    assert bench.statuses("a", "b") == ["DEAD_LETTERED", "DISPATCHING"]


def test_flaw_21_a_long_job_beats_and_a_silent_one_counts():
    """A long job blocked its own heartbeat; the reaper counted no attempt, so poison looped for ever."""
    bench = Bench()
    on = stream(lease_ms=10_000, redelivery=Redelivery(max_attempts=3, jitter=False))
    bench.submit("long", on=on)
    bench.demand("w", "stream:s")
    for _ in range(200):
        bench.later(9_999)
        bench.beat("w")
    assert bench.status("long") is Status.DISPATCHING
    assert bench.intent("long").attempt == 1
    bench.done("long")
    bench.submit("poison", on=on)
    for life in range(1, 4):
        assert delivered(bench.demand(f"w{life}", "stream:s", standing=False)) == ["poison"]
        bench.later(10_000)
        assert bench.intent("poison").attempt == life
        bench.later(60_000)
    assert bench.status("poison") is Status.DEAD_LETTERED
    assert delivered(bench.demand("w9", "stream:s")) == []


def test_flaw_22_a_missing_channel_is_a_dead_letter_with_its_reason():
    """A missing handler was a silent success."""
    bench = Bench()
    dispatcher = Dispatcher({})
    outcomes: list[Settlement] = []
    dispatcher.open(outcomes.extend)
    dispatcher.act(bench.submit("a").effects)
    bench.do(Settle(tuple(outcomes)))
    rare = bench.intent("a").rare
    assert bench.status("a") is Status.DEAD_LETTERED
    assert rare is not None and rare.last_error is not None
    assert "no channel" in rare.last_error.message


@pytest.mark.parametrize("pulled", [False, True])
def test_flaw_23_priority_counts_on_every_path_and_low_priority_does_not_starve(pulled):
    """Priority was honoured on one path and ignored on the other, and low priority starved."""
    bench = Bench(pushed=() if pulled else ("task",))
    for tier in (3, 4):
        bench.do(Resize(tier, 1))
    bench.submit("first")
    if pulled:
        assert delivered(bench.demand("w", "task:default")) == ["first"]
    bench.submit("low", on=terms(priority=-60))
    running, order = "first", []
    for second in range(1, 200):
        bench.ms = 1_000 * second
        bench.submit(f"high{second}", on=terms(priority=60))
        given = delivered(bench.done(running))
        (running,) = given if not pulled else delivered(bench.demand("w", "task:default"))
        order.append(running)
        if running == "low":
            break
    assert len(order) == 120, "its turn comes when it has waited as long as the others' head start"
    assert all(id.startswith("high") for id in order[:-1])
