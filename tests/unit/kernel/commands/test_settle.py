"""What an outcome does: the fence, the retry, the end."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from duetime.limits import ERROR_CHARS_MAX
from duetime.protocol.command import Drain, Settle, Start
from duetime.protocol.intent import Status
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Returned, Settlement, Snoozed
from duetime.protocol.terms import Backoff, ExpiredAction, Guarantee, OnInterrupt, Redelivery
from tests.unit.kernel.bench import T0, Bench, delivered, stream, terms


def last_error(bench: Bench, id: str = "a"):
    rare = bench.intent(id).rare
    assert rare is not None and rare.last_error is not None
    return rare.last_error


def test_done_ends_it_with_its_result():
    bench = Bench()
    bench.submit("a", "b")
    bench.ms = 7
    bench.done("a", b'{"x":1}')
    bench.done("b")
    assert bench.statuses("a", "b") == ["ACKED", "ACKED"]
    assert bench.intent("a").rare.result == b'{"x":1}'  # type: ignore[union-attr]
    assert bench.intent("b").rare is None
    assert bench.intent("a").finished_at_ms == T0 + 7
    assert [bench.intent(id).ended for id in "ab"] == [1, 2]


def test_an_outcome_of_another_delivery_changes_nothing():
    bench = Bench()
    bench.submit("a")
    bench.fail("a")
    bench.at(1_000)
    for number in (0, 1, 3):
        applied = bench.settle("a", Done(), number)
        assert (applied.answer, applied.effects, applied.changes) == ([False], [], [])
    assert bench.status("a") is Status.DISPATCHING
    assert bench.state.stale == 3
    assert bench.settle("a", Done(), 2).answer == [True]


def test_only_the_consumer_that_holds_a_delivery_settles_it():
    bench = Bench(pushed=("callback",))
    bench.submit("a", on=stream())
    bench.demand("mine", "stream:s")
    for stranger in ("other", "", "mine "):
        applied = bench.do(Settle((Settlement("a", 1, Done(b"1"), "a log", stranger),)))
        assert (applied.answer, applied.effects, applied.changes) == ([False], [], [])
    assert bench.status("a") is Status.DISPATCHING
    assert bench.intent("a").rare is None, "no log of a stranger is kept"
    assert bench.state.stale == 3
    assert bench.do(Settle((Settlement("a", 1, Done(), consumer="mine"),))).answer == [True]


def test_no_consumer_settles_what_the_engine_pushes():
    bench = Bench()
    bench.submit("a")
    assert bench.do(Settle((Settlement("a", 1, Done(), consumer="other"),))).answer == [False]
    assert bench.do(Settle((Settlement("a", 1, Done()),))).answer == [True]


def test_by_the_first_rules_the_number_of_the_delivery_is_enough():
    bench = Bench(pushed=("callback",))
    bench.do(Start(2, rules=1))
    bench.submit("a", on=stream())
    bench.demand("mine", "stream:s")
    assert bench.do(Settle((Settlement("a", 1, Done()),))).answer == [True]


def test_an_outcome_that_comes_twice_counts_once():
    bench = Bench()
    bench.submit("a")
    twice = Settlement("a", 1, Done())
    assert bench.do(Settle((twice, twice, Settlement("nobody", 1, Done())))).answer == [True, False, False]


def test_of_contradicting_outcomes_the_first_counts():
    bench = Bench()
    bench.submit("a")
    outcomes = (Settlement("a", 1, Rejected("bad", "no")), Settlement("a", 1, Done()))
    assert bench.do(Settle(outcomes)).answer == [True, False]
    assert bench.status("a") is Status.DEAD_LETTERED


def test_each_item_of_a_batch_has_its_own_end():
    bench = Bench()
    bench.submit("a", "b", "c")
    outcomes: list[Outcome] = [Done(), Failed("http", "500", 500), Rejected("http", "404", 404)]
    settlements = tuple(Settlement(id, 1, outcome) for id, outcome in zip("abc", outcomes, strict=True))
    bench.do(Settle(settlements))
    assert bench.statuses("a", "b", "c") == ["ACKED", "SCHEDULED", "DEAD_LETTERED"]


def test_a_failure_is_tried_again_as_often_as_allowed():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(max_attempts=4, jitter=False)))
    waits = []
    for attempt in range(1, 5):
        intent = bench.intent("a")
        assert (intent.attempt, intent.delivery) == (attempt, attempt)
        bench.fail("a", "http", f"try {attempt}", http_status=503)
        if attempt < 4:
            waits.append(bench.intent("a").wake_at_ms - T0 - bench.ms)
            assert delivered(bench.later(waits[-1] - 1)) == []
            assert delivered(bench.later(1)) == ["a"]
    assert waits == [1_000, 2_000, 4_000]
    assert bench.status("a") is Status.DEAD_LETTERED
    error = last_error(bench)
    assert (error.kind, error.message, error.http_status, error.delivery) == ("http", "try 4", 503, 4)
    assert error.at_ms == T0 + 7_000


def test_a_maximum_of_one_attempt_is_not_retried():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(max_attempts=1)))
    bench.fail("a")
    assert bench.status("a") is Status.DEAD_LETTERED
    assert delivered(bench.later(100_000)) == []


def test_a_custom_delay_replaces_the_policy_s():
    bench = Bench()
    bench.submit("a")
    bench.fail("a", delay_ms=12_350)
    assert delivered(bench.at(12_349)) == []
    assert delivered(bench.at(12_350)) == ["a"]


def test_a_custom_delay_of_zero_is_at_once():
    bench = Bench()
    bench.submit("a")
    bench.fail("a", delay_ms=0)
    assert bench.next() == 0
    assert delivered(bench.at(0)) == ["a"]


@pytest.mark.parametrize(("not_before", "at"), [(500, 1_000), (30_000, 30_000)])
def test_a_retry_is_not_before_the_moment_the_other_side_named(not_before, at):
    bench = Bench()
    bench.submit("a")
    bench.fail("a", not_before_ms=T0 + not_before)
    assert delivered(bench.at(at - 1)) == []
    assert delivered(bench.at(at)) == ["a"]


@pytest.mark.parametrize("action", ExpiredAction)
def test_no_retry_comes_after_the_deadline(action):
    bench = Bench()
    bench.submit("a", on=terms(expired_action=action), deadline=700)
    bench.fail("a")
    assert delivered(bench.at(700)) == []
    assert bench.status("a") is (Status.EXPIRED if action is ExpiredAction.DISCARD else Status.DEAD_LETTERED)
    assert last_error(bench).kind == "expired"
    assert delivered(bench.at(2_000)) == []


def test_a_failure_that_comes_after_the_deadline_ends_it():
    bench = Bench()
    bench.submit("a", deadline=700)
    bench.ms = 5_000
    bench.fail("a")
    bench.at(5_000)
    assert bench.status("a") is Status.EXPIRED


def test_done_after_the_deadline_is_still_done():
    bench = Bench()
    bench.submit("a", deadline=700)
    bench.at(5_000)
    assert bench.status("a") is Status.DISPATCHING
    bench.done("a")
    assert bench.status("a") is Status.ACKED


def test_a_snooze_gives_the_attempt_back_but_never_the_delivery_number():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(max_attempts=1)))
    for turn in range(1, 21):
        intent = bench.intent("a")
        assert (intent.attempt, intent.delivery) == (1, turn)
        bench.settle("a", Snoozed(500))
        assert intent.attempt == 0
        assert delivered(bench.later(499)) == []
        assert delivered(bench.later(1)) == ["a"]
    assert bench.settle("a", Done(), 20).answer == [False]
    bench.fail("a")
    assert bench.status("a") is Status.DEAD_LETTERED


def test_a_snooze_keeps_the_failures_counted_before_it():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(max_attempts=2, jitter=False)))
    bench.fail("a")
    bench.at(1_000)
    bench.settle("a", Snoozed(1_000))
    bench.at(2_000)
    bench.fail("a")
    assert bench.status("a") is Status.DEAD_LETTERED


def test_a_rejection_is_the_end_whatever_the_budget():
    bench = Bench()
    bench.submit("a")
    bench.settle("a", Rejected("http", "404 Not Found", 404))
    assert bench.status("a") is Status.DEAD_LETTERED
    error = last_error(bench)
    assert (error.kind, error.message, error.http_status) == ("http", "404 Not Found", 404)


def test_a_lost_delivery_counts_as_an_attempt():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(2, Backoff.FIXED, 100, jitter=False)))
    bench.settle("a", Lost("gone"))
    assert (bench.status("a"), bench.intent("a").attempt) == (Status.SCHEDULED, 1)
    assert last_error(bench).kind == "lost"
    assert delivered(bench.at(0)) == ["a"]
    bench.settle("a", Lost("gone"))
    assert bench.status("a") is Status.DEAD_LETTERED


def test_an_interruption_may_be_the_end():
    bench = Bench()
    bench.submit("a", on=terms(on_interrupt=OnInterrupt.DEAD_LETTER))
    bench.settle("a", Lost("gone"))
    assert bench.status("a") is Status.DEAD_LETTERED


def test_with_on_interrupt_a_plain_failure_is_still_tried_again():
    bench = Bench()
    bench.submit("a", on=terms(on_interrupt=OnInterrupt.DEAD_LETTER))
    bench.fail("a")
    assert bench.status("a") is Status.SCHEDULED


@pytest.mark.parametrize("outcome", [Failed("x", "no"), Lost("gone"), Rejected("x", "no"), Returned("stop")])
@pytest.mark.parametrize("on_interrupt", OnInterrupt)
def test_at_most_once_is_never_run_again(outcome, on_interrupt):
    bench = Bench()
    bench.submit("a", on=terms(guarantee=Guarantee.AT_MOST_ONCE, on_interrupt=on_interrupt))
    bench.settle("a", outcome)
    assert bench.status("a") is Status.DEAD_LETTERED
    assert delivered(bench.later(1_000_000)) == []


@pytest.mark.parametrize("pulled", [False, True])
def test_at_most_once_is_not_run_again_by_a_new_engine_or_a_lost_lease(pulled):
    bench = Bench()
    if pulled:
        bench.submit("a", on=stream(guarantee=Guarantee.AT_MOST_ONCE))
        assert delivered(bench.demand("w", "stream:s")) == ["a"]
        bench.later(30_000)
    else:
        bench.submit("a", on=terms(guarantee=Guarantee.AT_MOST_ONCE))
        bench.start()
    assert bench.status("a") is Status.DEAD_LETTERED


def test_at_most_once_may_be_snoozed_for_its_handler_asked_for_it():
    bench = Bench()
    bench.submit("a", on=terms(guarantee=Guarantee.AT_MOST_ONCE))
    bench.settle("a", Snoozed(100))
    assert delivered(bench.at(100)) == ["a"]


def test_an_error_has_a_length():
    bench = Bench()
    bench.submit("a")
    bench.fail("a", message="x" * (ERROR_CHARS_MAX + 1))
    assert len(last_error(bench).message) == ERROR_CHARS_MAX


def test_the_permit_and_the_lane_are_free_after_every_outcome():
    ends = (Done(), Failed("x", "no"), Snoozed(5), Rejected("x", "no"), Lost("gone"), Returned("stop"))
    for outcome in ends:
        bench = Bench()
        bench.submit("a")
        assert bench.state.tiers.all[3].used == 1
        bench.settle("a", outcome)
        assert (bench.state.tiers.all[3].used, bench.state.out) == (0, {"": {}})
        assert bench.intent("a").permit == -1


def test_the_log_of_the_newest_attempt_is_kept():
    bench = Bench()
    bench.submit("a")
    bench.do(Settle((Settlement("a", 1, Failed("error", "no"), "the first"),)))
    assert bench.intent("a").rare.log == "the first"  # type: ignore[union-attr]
    bench.at(1_000)
    bench.do(Settle((Settlement("a", 1, Done(), "late"),)))
    assert bench.intent("a").rare.log == "the first"  # type: ignore[union-attr]
    bench.fail("a")
    assert bench.intent("a").rare.log is None, "the newest attempt logged nothing"  # type: ignore[union-attr]
    bench.later(2_000)
    bench.do(Settle((Settlement("a", 3, Done(), "the last"),)))
    assert bench.intent("a").rare.log == "the last"  # type: ignore[union-attr]


TEN_MINUTES = Redelivery(3, Backoff.FIXED, 600_000, 600_000, jitter=False)


def test_a_delivery_that_is_handed_back_costs_no_attempt_and_no_delay():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=TEN_MINUTES))
    bench.settle("a", Returned("its worker was stopped"))
    intent = bench.intent("a")
    assert (intent.status, intent.attempt) == (Status.SCHEDULED, 0)
    assert intent.rare is not None and intent.rare.last_error is None, "nothing went wrong"
    assert intent.rare.history is not None
    assert intent.rare.history[-1].note == "handed back: its worker was stopped"
    assert bench.next() == 0
    assert delivered(bench.at(0)) == ["a"]
    assert (bench.intent("a").attempt, bench.intent("a").delivery) == (1, 2)


def test_with_one_attempt_a_delivery_that_is_handed_back_is_no_dead_letter():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(max_attempts=1)))
    for delivery in (2, 3, 4):
        bench.settle("a", Returned("its worker was stopped"))
        assert delivered(bench.at(0)) == ["a"]
        assert (bench.intent("a").attempt, bench.intent("a").delivery) == (1, delivery)


@pytest.mark.parametrize(
    "once", [{"guarantee": Guarantee.AT_MOST_ONCE}, {"on_interrupt": OnInterrupt.DEAD_LETTER}]
)
def test_an_at_most_once_run_stopped_on_purpose_is_a_dead_letter(once):
    bench = Bench()
    bench.submit("a", on=terms(**once))
    bench.settle("a", Returned("its worker was stopped"))
    assert bench.status("a") is Status.DEAD_LETTERED
    assert (last_error(bench).kind, last_error(bench).message) == ("lost", "its worker was stopped")


def test_a_lost_delivery_is_tried_again_at_once_the_first_time_then_with_back_off():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=TEN_MINUTES))
    bench.settle("a", Lost("gone"))
    assert bench.next() == 0
    assert delivered(bench.at(0)) == ["a"]
    assert bench.intent("a").attempt == 2, "its budget counts"
    bench.settle("a", Lost("gone"))
    assert bench.next() == 600_000
    assert delivered(bench.at(600_000)) == ["a"]
    bench.settle("a", Lost("gone"))
    assert bench.status("a") is Status.DEAD_LETTERED


def test_a_failure_between_two_losses_makes_the_next_loss_a_first_one():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=replace(TEN_MINUTES, max_attempts=9)))
    bench.settle("a", Lost("gone"))
    bench.at(0)
    bench.fail("a", delay_ms=0)
    bench.at(0)
    bench.settle("a", Lost("gone"))
    assert bench.next() == 0


def test_after_a_revival_the_first_loss_is_the_first_again():
    bench = Bench()
    bench.submit("a", on=terms(redelivery=Redelivery(1, Backoff.FIXED, 600_000, 600_000, jitter=False)))
    bench.settle("a", Lost("gone"))
    assert bench.status("a") is Status.DEAD_LETTERED
    bench.revive("a", redelivery=TEN_MINUTES)
    bench.settle("a", Lost("gone"))
    assert bench.next() == 0


def test_under_the_first_rules_a_lost_delivery_waits_for_its_delay():
    bench = Bench()
    bench.do(Start(1, 1))
    bench.submit("a", on=terms(redelivery=TEN_MINUTES))
    bench.settle("a", Lost("gone"))
    assert bench.next() == 600_000


@pytest.mark.parametrize(("drained", "attempt", "next_ms"), [(True, 1, 0), (False, 2, 0)])
def test_runs_of_a_draining_engine_are_returned(drained, attempt, next_ms):
    bench = Bench()
    bench.submit("a", on=terms(redelivery=TEN_MINUTES))
    if drained:
        bench.do(Drain())
    bench.start()
    assert bench.next() == next_ms
    assert delivered(bench.at(0)) == ["a"]
    assert bench.intent("a").attempt == attempt


def test_under_the_first_rules_a_stopped_engine_lost_what_it_ran():
    bench = Bench()
    bench.do(Start(1, 1))
    bench.submit("a", on=terms(redelivery=TEN_MINUTES))
    bench.do(Drain())
    bench.do(Start(2, 1))
    assert (bench.intent("a").attempt, bench.next()) == (1, 600_000)
