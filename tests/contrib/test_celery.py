"""Celery's interface on the real engine, with virtual time: the meaning of each call is that of Celery."""

from __future__ import annotations

import logging
import threading
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from duetime import limits
from duetime.contrib.celery import (
    Celery,
    Task,
    chain,
    chord,
    current_app,
    current_task,
    exceptions,
    group,
    maybe_signature,
    shared_task,
    signals,
    signature,
    states,
)
from duetime.contrib.celery.exceptions import ChordError, ImproperlyConfigured, NotSupported, TaskRevokedError
from duetime.contrib.celery.result import AsyncResult, GroupResult, allow_join_result, result_from_tuple
from duetime.contrib.celery.schedules import crontab, rule_of, schedule, solar
from duetime.contrib.celery.utils.log import get_task_logger
from duetime.errors import NoSuchIntent
from duetime.protocol.command import Pause

SOON = 10  # seconds: a result that is due arrives long before


class Declined(Exception):
    """An error of the project."""


class TwoParts(Exception):
    """An error whose constructor takes other arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)


@pytest.fixture
def celery() -> Celery:
    return Celery("proj", broker="amqp://guest@localhost//")


@pytest.fixture
def duetime_app(celery: Celery) -> Celery:
    return celery


@pytest.fixture
def said() -> list[Any]:
    """What tasks did."""
    return []


@pytest.fixture
def jobs(celery, said) -> SimpleNamespace:
    """Some tasks."""

    @celery.task
    def add(x, y):
        return x + y

    @celery.task
    def total(numbers):
        return sum(numbers)

    @celery.task
    def echo(value):
        said.append(value)
        return value

    @celery.task
    def decline():
        raise Declined("no money")

    @celery.task
    def old_errback(id):
        said.append(("old", id))

    @celery.task
    def new_errback(request, error, traceback, more="-"):
        said.append(("new", request.id, request.task, repr(error), more))

    @celery.task(bind=True, max_retries=2, default_retry_delay=60)
    def flaky(self, failures):
        said.append(self.request.retries)
        if self.request.retries < failures:
            raise self.retry(exc=ValueError("not yet"))
        return self.request.retries

    found = (add, total, echo, decline, old_errback, new_errback, flaky)
    return SimpleNamespace(**{task.__name__: task for task in found})


# Calls and results.


def test_delay_sends_and_get_returns_the_result(jobs, app):
    result = jobs.add.delay(2, y=3)
    assert result.get(timeout=SOON) == 5
    assert (result.state, result.result, result.successful(), result.ready()) == ("SUCCESS", 5, True, True)
    assert (result.args, result.kwargs, result.name) == ([2], {"y": 3}, jobs.add.name)
    assert AsyncResult(result.id) == result
    assert jobs.add.AsyncResult(result.id).get(timeout=SOON) == 5
    assert jobs.add(2, 2) == 4  # here, without a task


def test_arguments_and_results_keep_the_types_of_celery_s_json(jobs, app):
    value = {
        "at": datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        "day": date(2030, 1, 2),
        "id": uuid.UUID(int=7),
        "price": Decimal("1.10"),
        "raw": b"\x00\xff",
        "list": [1, (2, 3), None, True],
        5: "key",
    }
    assert jobs.echo.delay(value).get(timeout=SOON) == {
        **{key: each for key, each in value.items() if key != 5},
        "list": [1, [2, 3], None, True],
        "5": "key",
    }
    with pytest.raises(exceptions.EncodeError, match="set is not JSON"):
        jobs.echo.delay({1, 2})


def test_wrong_arguments_are_refused_before_anything_is_sent(jobs, app):
    with pytest.raises(TypeError):
        jobs.add.delay(1)
    with pytest.raises(TypeError):
        jobs.add.apply_async((1, 2, 3))
    with pytest.raises(TypeError, match="list or tuple"):
        jobs.add.apply_async("ab")


def test_countdown_and_eta_are_times(jobs, app, clock):
    first = jobs.add.apply_async((1, 1), countdown=100)
    second = jobs.add.apply_async((2, 2), eta=datetime(2030, 1, 1, 0, 3))
    clock.advance("99s")
    assert (first.state, second.state) == ("PENDING", "PENDING")
    clock.advance("1s")
    assert (first.get(timeout=SOON), second.state) == (2, "PENDING")
    clock.advance("80s")
    assert second.get(timeout=SOON) == 4


def test_an_expired_task_is_revoked(jobs, app, clock, celery):
    blocked = [
        jobs.add.apply_async((1, 1), countdown=10, expires=20),
        jobs.add.apply_async((1, 1), expires=5),
    ]
    assert blocked[1].get(timeout=SOON) == 2
    clock.advance("10s")
    assert blocked[0].get(timeout=SOON) == 2

    celery.ask(Pause("task:celery")).wait()
    late = jobs.add.apply_async((1, 1), expires=timedelta(seconds=30))
    clock.advance("31s")
    assert late.state == "REVOKED"
    with pytest.raises(TaskRevokedError, match="expired"):
        late.get(timeout=SOON)


def test_a_revoked_task_does_not_run(jobs, app, clock, said, celery):
    results = [jobs.echo.apply_async((n,), countdown=60) for n in range(3)]
    results[0].revoke()
    celery.control.revoke([results[1].id, "unknown"])
    clock.advance("61s")
    assert said == [2]
    assert [each.state for each in results] == ["REVOKED", "REVOKED", "SUCCESS"]
    with pytest.raises(TaskRevokedError, match="revoked"):
        results[0].get(timeout=SOON)


def test_an_error_is_raised_again_with_its_class(jobs, app, celery):
    @celery.task
    def two_parts():
        raise TwoParts(7, "text")

    result = jobs.decline.delay()
    with pytest.raises(Declined, match="no money"):
        result.get(timeout=SOON)
    assert result.failed()
    assert result.state == "FAILURE"
    assert isinstance(result.result, Declined)
    assert isinstance(result.get(timeout=SOON, propagate=False), Declined)
    with pytest.raises(TwoParts):
        two_parts.delay().get(timeout=SOON)


def test_an_error_of_a_class_that_is_not_loaded_keeps_its_name(celery, app):
    @celery.task
    def strange():
        raise type("Strange", (Exception,), {"__module__": "no.such.module"})("odd")

    with pytest.raises(Exception, match="odd") as caught:
        strange.delay().get(timeout=SOON)
    assert type(caught.value).__name__ == "Strange"


def test_an_unknown_id_is_pending(celery, app):
    result = celery.AsyncResult("nobody")
    assert (result.state, result.ready(), result.result, result.traceback) == ("PENDING", False, None, None)
    with pytest.raises(NoSuchIntent):
        result.get(timeout=1)


def test_get_times_out(jobs, app):
    with pytest.raises(exceptions.TimeoutError):
        jobs.add.apply_async((1, 1), countdown=60).get(timeout=0.01)


def test_a_task_can_be_sent_by_name_and_with_an_id_and_to_a_queue(jobs, app, celery):
    result = celery.send_task(jobs.add.name, (1, 2), task_id="my-id", queue="other")
    assert (result.id, result.get(timeout=SOON), result.queue) == ("my-id", 3, "other")


def test_a_signature_by_name_runs(jobs, app, celery):
    assert celery.signature(jobs.add.name, args=(1,)).delay(5).get(timeout=SOON) == 6
    assert signature(jobs.add.name, args=(1, 1), app=celery).apply_async().get(timeout=SOON) == 2


def test_get_inside_a_task_is_refused_unless_it_is_allowed(celery, jobs, app):
    @celery.task
    def outer(allowed):
        result = jobs.add.delay(1, 2)
        if allowed:
            with allow_join_result():
                return result.get(timeout=SOON)
        return result.get(timeout=SOON)

    assert outer.delay(True).get(timeout=SOON) == 3
    with pytest.raises(RuntimeError, match="Never call"):
        outer.delay(False).get(timeout=SOON)


# Retries.


def test_retry_waits_and_counts(jobs, app, clock, said):
    result = jobs.flaky.delay(2)
    clock.drain()
    assert result.state == "RETRY"
    clock.advance("59s")
    assert said == [0]
    clock.advance("61s")
    assert result.get(timeout=SOON) == 2
    assert said == [0, 1, 2]


def test_a_task_without_retries_left_fails_with_its_error(jobs, app, clock, said):
    result = jobs.flaky.delay(9)
    clock.advance("10m")
    assert said == [0, 1, 2]
    with pytest.raises(ValueError, match="not yet"):
        result.get(timeout=SOON)


def test_an_exception_without_retry_fails_at_once(jobs, app, clock, said, celery):
    @celery.task(autoretry_for=(KeyError,), dont_autoretry_for=(ZeroDivisionError,))
    def once():
        said.append(1)
        raise ValueError("no")

    result = once.delay()
    clock.advance("1h")
    assert (said, result.state) == ([1], "FAILURE")


def test_autoretry_with_back_off(celery, app, clock, said):
    @celery.task(
        autoretry_for=(ConnectionError,),
        retry_backoff=10,
        retry_jitter=False,
        retry_kwargs={"max_retries": 3},
    )
    def call():
        said.append(current_app.now().timestamp())
        raise ConnectionError("down")

    result = call.delay()
    clock.advance("10m")
    assert [later - earlier for earlier, later in pairwise(said)] == [10, 20, 40]
    with pytest.raises(ConnectionError):
        result.get(timeout=SOON)


def test_retry_without_a_limit_and_at_a_time(celery, app, clock, said):
    @celery.task(bind=True, max_retries=None)
    def patient(self):
        said.append(self.request.retries)
        if len(said) < 8:
            self.retry(eta=celery.now() + timedelta(seconds=5))

    patient.delay()
    clock.advance("34s")
    assert len(said) == 7
    clock.advance("1s")
    assert said == list(range(8))


def test_max_retries_without_an_error_has_its_own_error(celery, app, clock):
    @celery.task(bind=True, max_retries=1)
    def again(self):
        self.retry(countdown=1)

    result = again.delay()
    clock.advance("5s")
    with pytest.raises(exceptions.MaxRetriesExceededError, match="Can't retry"):
        result.get(timeout=SOON)


def test_retry_with_other_arguments_is_refused(celery, app):
    @celery.task(bind=True)
    def change(self, number):
        raise self.retry(args=(number + 1,))

    with pytest.raises(NotSupported, match="retry"):
        change.delay(1).get(timeout=SOON)


def test_reject_with_requeue_runs_again(celery, app, clock, said):
    @celery.task
    def pass_on():
        said.append(1)
        if len(said) == 1:
            raise exceptions.Reject("later", requeue=True)
        raise exceptions.Reject("never")

    result = pass_on.delay()
    clock.advance("1s")
    assert (len(said), result.state) == (2, "FAILURE")


def test_ignore_ends_a_task_without_a_result(celery, app):
    @celery.task
    def skip():
        raise exceptions.Ignore

    assert skip.delay().get(timeout=SOON) is None


# Chains, groups and chords.


def test_a_chain_hands_results_on(jobs, app):
    assert chain(jobs.add.s(1, 2), jobs.add.s(10), jobs.add.s(100))().get(timeout=SOON) == 113
    flow = jobs.add.s(1) | jobs.add.s(2)
    result = flow.delay(5)
    assert (result.get(timeout=SOON), result.parent.get(timeout=SOON)) == (8, 6)


def test_an_immutable_step_takes_no_result(jobs, app):
    assert (jobs.add.s(1, 2) | jobs.add.si(5, 5)).delay().get(timeout=SOON) == 10


def test_a_countdown_in_a_chain_counts_from_the_end_of_the_step_before(jobs, app, clock):
    first = jobs.add.s(1, 1).set(countdown=30)
    result = (first | jobs.add.s(1).set(countdown=50)).delay()
    clock.advance("79s")
    assert result.state == "PENDING"
    clock.advance("1s")
    assert result.get(timeout=SOON) == 3


def test_a_failed_step_ends_the_chain_with_its_error(jobs, app, said):
    result = (jobs.decline.s() | jobs.echo.s() | jobs.echo.s()).delay()
    with pytest.raises(Declined):
        result.get(timeout=SOON)
    assert said == []


def test_a_group_has_all_results_in_order(jobs, app):
    result = group(jobs.add.s(n, n) for n in range(4)).delay()
    assert isinstance(result, GroupResult)
    assert result.get(timeout=SOON) == [0, 2, 4, 6]
    assert (len(result), result.successful(), result.completed_count(), result.waiting()) == (
        4,
        True,
        4,
        False,
    )
    assert group(jobs.add.s(1), jobs.add.s(2)).delay(10).join(timeout=SOON) == [11, 12]


def test_a_chord_calls_its_body_with_the_list_of_results(jobs, app):
    assert chord([jobs.add.s(n, n) for n in range(5)])(jobs.total.s()).get(timeout=SOON) == 20
    assert chord(group(jobs.add.s(1, 1)), jobs.total.s()).delay().get(timeout=SOON) == 2
    assert (group(jobs.add.s(1, 1), jobs.add.s(2, 2)) | jobs.total.s() | jobs.add.s(1)).delay().get(
        timeout=SOON
    ) == 7
    assert chord([])(jobs.total.s()).get(timeout=SOON) == 0


def test_groups_and_chains_nest(jobs, app):
    inner = chain(jobs.add.s(1), jobs.add.s(1))
    flow = chain(jobs.add.s(1, 1), group(inner, jobs.add.s(5)), jobs.total.s())
    assert flow().get(timeout=SOON) == 11
    nested = chain(group(group(jobs.add.s(1, 1), jobs.add.s(2, 2)), jobs.add.s(3, 3)), jobs.echo.s())
    assert nested().get(timeout=SOON) == [2, 4, 6]
    branches = chain(group(chain(jobs.add.s(1, 1), group(jobs.add.s(1), jobs.add.s(2)))), jobs.echo.s())
    assert branches().get(timeout=SOON) == [[3, 4]]
    assert group([]).delay().get(timeout=SOON) == []
    assert chain(jobs.add.s(1, 1), group([]), jobs.add.s(1))().get(timeout=SOON) == 3


def test_a_chain_of_many_groups_is_sent_at_once(jobs, app):
    levels = [group(jobs.total.s() for _ in range(4)) for _ in range(12)]
    result = chain(group(jobs.add.si(1, 1) for _ in range(4)), *levels, jobs.total.s())()
    assert result.get(timeout=SOON) == 2 * 4**13
    assert len(result.parent) == 4
    assert len(result.parent.parent) == 4
    result = chain(jobs.add.s(1, 1), group(jobs.add.s(1), jobs.add.s(2)))()
    assert result.get(timeout=SOON) == [3, 4]
    assert result.parent.get(timeout=SOON) == 2


def test_a_chord_may_have_more_members_than_an_intent_may_wait_for(jobs, app):
    size = limits.AFTER_MAX + 100
    result = chord([jobs.add.s(n, 0) for n in range(size)])(jobs.total.s())
    assert result.get(timeout=60) == sum(range(size))
    with pytest.raises(NotSupported, match="task_id"):
        chord([jobs.add.s(n, 0).set(task_id=f"t{n}") for n in range(size)])(jobs.total.s())


def test_a_chord_with_a_failed_member_fails(jobs, app):
    result = chord([jobs.add.s(1, 1), jobs.decline.s()])(jobs.total.s())
    with pytest.raises(ChordError, match="Declined"):
        result.get(timeout=SOON)


def test_callbacks_get_the_result_and_error_callbacks_the_failure(jobs, app, clock, said):
    jobs.add.apply_async(
        (1, 2), link=[jobs.echo.s(), jobs.add.s(1) | jobs.echo.s()], link_error=jobs.old_errback.s()
    )
    clock.drain()
    assert sorted(said) == [3, 4]
    said.clear()
    failed = jobs.decline.apply_async(
        link=jobs.echo.s(), link_error=[jobs.old_errback.s(), jobs.new_errback.s(more="x")]
    )
    clock.drain()
    assert sorted(said) == [
        ("new", failed.id, jobs.decline.name, "Declined('no money')", "x"),
        ("old", failed.id),
    ]


def test_an_error_callback_of_a_chain_is_called_once(jobs, app, clock, said):
    flow = jobs.add.s(1, 1) | jobs.decline.si() | jobs.echo.s() | jobs.echo.s()
    flow.apply_async(link_error=jobs.old_errback.s())
    clock.drain()
    assert [each[0] for each in said] == ["old"]


def test_an_error_callback_of_a_chord_is_called_when_a_member_fails(jobs, app, clock, said):
    body = jobs.total.s().on_error(jobs.new_errback.s())
    chord([jobs.decline.s(), jobs.decline.s(), jobs.add.s(1, 1)])(body)
    clock.drain()
    assert len(said) == 1
    assert "ChordError" in said[0][3]


def test_a_signature_is_data_and_can_be_an_argument(celery, jobs, app):
    @celery.task
    def run_later(call, value):
        found = maybe_signature(call)
        return found.delay(value).id

    flow = chain(jobs.add.s(1), chord([jobs.add.s(1), jobs.add.s(2)], jobs.total.s()))
    id = run_later.delay(flow, 10).get(timeout=SOON)
    assert celery.AsyncResult(id).get(timeout=SOON) == 25
    assert repr(jobs.add.s(1, y=2)) == f"{jobs.add.name}(1, y=2)"
    assert jobs.add.s(1).clone((2,)).args == (2, 1)
    assert maybe_signature(None) is None
    with pytest.raises(TypeError, match="not a signature"):
        chain(jobs.add.s(1, 1), 5)


def test_a_frozen_signature_knows_the_ids_of_its_tasks(jobs, app):
    members = [jobs.add.s(1), jobs.add.s(2)]
    flow = chain(jobs.add.s(1, 1), chord(members, jobs.total.s()), jobs.add.s(10))
    last = flow.freeze()
    assert flow.delay() == last
    assert last.get(timeout=SOON) == 17
    assert last.parent.get(timeout=SOON) == 7
    frozen = group(members).freeze()
    assert len({each.id for each in frozen}) == 2


def test_a_result_can_be_stored_and_found_again(jobs, app):
    result = chain(jobs.add.s(1, 1), group(jobs.add.s(1), jobs.add.s(2)))()
    found = result_from_tuple(result.as_tuple())
    assert found.get(timeout=SOON) == [3, 4]
    assert found.parent.get(timeout=SOON) == 2


# Options of tasks.


def test_bind_gives_the_task_and_its_request(celery, app):
    @celery.task(bind=True, name="proj.me")
    def me(self, x, y=1):
        request = self.request
        assert current_task.name == self.name
        return [
            request.id,
            request.args,
            request.kwargs,
            request.retries,
            request.called_directly,
            request.task,
        ]

    result = me.delay(1, y=2)
    assert result.get(timeout=SOON) == [result.id, [1], {"y": 2}, 0, False, "proj.me"]
    assert me.request.called_directly
    assert not current_task


def test_a_base_class_has_handlers(celery, app, clock, said):
    class Base(Task):
        def before_start(self, task_id, args, kwargs):
            said.append("before")

        def on_success(self, retval, task_id, args, kwargs):
            said.append(("success", retval))

        def on_retry(self, exc, task_id, args, kwargs, einfo):
            said.append(("retry", repr(exc)))

        def on_failure(self, exc, task_id, args, kwargs, einfo):
            said.append(("failure", repr(exc), "Traceback" in str(einfo)))

        def after_return(self, status, retval, task_id, args, kwargs, einfo):
            said.append(status)

    @celery.task(base=Base, bind=True, max_retries=1)
    def work(self, what):
        if what == "retry" and not self.request.retries:
            self.retry(countdown=1, exc=KeyError("k"))
        if what == "fail":
            raise ValueError("v")
        return what

    work.delay("fine").get(timeout=SOON)
    assert said == ["before", ("success", "fine"), "SUCCESS"]
    said.clear()
    work.delay("retry")
    clock.advance("2s")
    assert said == ["before", ("retry", "KeyError('k')"), "before", ("success", "retry"), "SUCCESS"]
    said.clear()
    work.delay("fail")
    clock.drain()
    assert said == ["before", ("failure", "ValueError('v')", True), "FAILURE"]


def test_a_class_with_run_is_a_task(celery, app):
    class Multiply(Task):
        name = "proj.multiply"

        def run(self, x, y):
            return x * y

    multiply = celery.register_task(Multiply())
    assert multiply.delay(3, 4).get(timeout=SOON) == 12
    assert celery.tasks["proj.multiply"] is multiply
    with pytest.raises(exceptions.NotRegistered):
        celery.tasks["proj.nothing"]


def test_an_ignored_result_is_not_stored_but_handed_on(celery, jobs, app):
    @celery.task(ignore_result=True)
    def quiet(x):
        return x + 1

    assert quiet.delay(1).get(timeout=SOON) is None
    assert (quiet.s(1) | jobs.add.s(1)).delay().get(timeout=SOON) == 3


def test_update_state_is_the_state_while_a_task_runs(celery, app):
    running, go = threading.Event(), threading.Event()

    @celery.task(bind=True)
    def slow(self):
        self.update_state(state="PROGRESS", meta={"current": 1, "total": 3})
        running.set()
        assert go.wait(SOON)
        with pytest.raises(NotSupported, match="characters"):
            self.update_state(state="PROGRESS", meta={"text": "x" * 300})

    result = slow.delay()
    assert running.wait(SOON)
    found = (result.state, result.info)
    go.set()
    result.get(timeout=SOON)
    assert found == ("PROGRESS", {"current": 1, "total": 3})
    assert result.state == "SUCCESS"


def test_a_soft_time_limit_is_an_exception_inside_the_task(celery, app):
    @celery.task(soft_time_limit=0.05, time_limit=SOON)
    def endless():
        try:
            while True:
                sum(range(100))
        except exceptions.SoftTimeLimitExceeded:
            return "cleaned up"

    assert endless.delay().get(timeout=SOON) == "cleaned up"


def test_signals_tell_of_runs(jobs, app, clock, said):
    heard: list[str] = []

    def hear(sender=None, signal=None, **_):
        heard.append(signal.name)

    found = [
        signals.before_task_publish, signals.after_task_publish, signals.task_prerun, signals.task_postrun,
        signals.task_success, signals.task_failure, signals.task_retry,
    ]  # fmt: skip
    for signal in found:
        signal.connect(hear)
    try:
        jobs.add.delay(1, 1).get(timeout=SOON)
        clock.drain()
        published = ["before_task_publish", "after_task_publish"]
        assert heard == [*published, "task_prerun", "task_success", "task_postrun"]
        heard.clear()
        jobs.decline.delay()
        clock.drain()
        assert heard == [*published, "task_prerun", "task_failure", "task_postrun"]
        heard.clear()
        jobs.flaky.delay(1)
        clock.drain()
        assert heard == [*published, "task_prerun", "task_retry", "task_postrun"]
    finally:
        assert all(signal.disconnect(hear) for signal in found)
    with pytest.raises(NotSupported, match="worker_ready"):
        signals.worker_ready.connect(hear)


def test_headers_travel_and_receivers_may_add_some(celery, app):
    @celery.task(bind=True)
    def read(self):
        return [self.request.get("tenant"), self.request.headers["trace"]]

    def add_header(headers=None, **_):
        headers["trace"] = "t-1"

    signals.before_task_publish.connect(add_header, sender=read.name)
    try:
        assert read.apply_async(headers={"tenant": "acme"}).get(timeout=SOON) == ["acme", "t-1"]
    finally:
        signals.before_task_publish.disconnect(add_header, sender=read.name)


def test_a_failing_receiver_changes_nothing(jobs, app, caplog):
    @signals.task_prerun.connect
    def broken(**_):
        raise ValueError("receiver")

    try:
        assert jobs.add.delay(1, 1).get(timeout=SOON) == 2
    finally:
        signals.task_prerun.disconnect(broken)
    assert "A receiver of task_prerun failed" in caplog.text


# Settings.


def test_beat_entries_run_at_their_times(celery, jobs, clock_of, said):
    celery.conf.timezone = "Europe/Paris"
    celery.conf.beat_schedule = {
        "often": {"task": jobs.echo.name, "schedule": 30.0, "args": ("often",)},
        "hourly": {"task": jobs.echo.name, "schedule": timedelta(hours=1), "kwargs": {"value": "hourly"}},
        "night": {"task": jobs.echo.name, "schedule": crontab(hour=3, minute=0), "args": ("night",)},
    }

    @celery.on_after_configure.connect
    def more(sender, **_):
        sender.add_periodic_task(schedule(60), jobs.echo.s("minute"), name="minute", expires=10)

    clock = clock_of()
    clock.advance("2h")  # 03:00 in Paris
    assert {each: said.count(each) for each in sorted(set(said))} == {
        "often": 240, "hourly": 2, "minute": 120, "night": 1,
    }  # fmt: skip


@pytest.fixture
def clock_of(request):
    """Starts the app after the test has changed its settings, and returns the clock."""
    return lambda: request.getfixturevalue("clock")


def test_settings_come_from_a_module_a_namespace_and_the_program(celery):
    source = SimpleNamespace(
        CELERY_TIMEZONE="Asia/Tokyo", CELERY_TASK_DEFAULT_QUEUE="jobs", CELERY_BROKER_POOL_LIMIT=3, OTHER=1
    )
    celery.conf.task_default_queue = "mine"
    celery.config_from_object(source, namespace="CELERY")
    assert (celery.conf.timezone, celery.conf.task_default_queue) == ("Asia/Tokyo", "mine")
    assert celery.conf["CELERY_TIMEZONE"] == "Asia/Tokyo"
    old = Celery("old", set_as_current=False)
    old.config_from_object({"CELERY_ALWAYS_EAGER": True, "CELERYBEAT_SCHEDULE": {}, "secret": "x"})
    assert old.conf.task_always_eager is True
    assert "secret" not in old.conf


def test_settings_without_effect_are_logged_once(celery, caplog):
    celery.conf.update(worker_prefetch_multiplier=1, broker_pool_limit=3)
    with caplog.at_level(logging.WARNING):
        celery.finalize()
        celery.finalize()
    assert caplog.text.count("broker_pool_limit, worker_prefetch_multiplier") == 1
    assert "The broker amqp:// is replaced by the Duetime server" in caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_serializer", "pickle"),
        ("result_serializer", "yaml"),
        ("accept_content", ["pickle"]),
        ("task_annotations", {"*": {"rate_limit": "1/s"}}),
        ("beat_scheduler", "django_celery_beat.schedulers:DatabaseScheduler"),
    ],
)
def test_a_setting_that_would_change_tasks_is_refused_by_name(celery, name, value):
    with pytest.raises(ImproperlyConfigured, match=name):
        celery.conf[name] = value


@pytest.mark.parametrize(
    ("broker", "where"),
    [
        ("http://jobs:7928", "http://jobs:7928"),
        ("memory://", ":memory:"),
        ("some-folder", "some-folder"),
        ("redis://localhost", "http://from-environment:1"),
        (None, "http://from-environment:1"),
    ],
)
def test_the_broker_is_a_place_of_duetime(monkeypatch, broker, where):
    monkeypatch.setenv("DUETIME_URL", "http://from-environment:1")
    app = Celery(broker=broker, set_as_current=False)
    app.finalize()
    assert app.where == where


def test_routes_choose_the_queue(celery, said):
    celery.conf.task_routes = {"proj.mail.*": "mail", "proj.report": {"queue": "reports"}}
    celery.conf.task_queues = ["urgent"]

    for name in ("proj.mail.send", "proj.report", "proj.other"):
        celery.task(name=name)(lambda: None)
    assert celery.queues() == ["celery", "mail", "reports", "urgent"]
    assert celery.functions.queues["proj.mail.send"] == "mail"


def test_eager_tasks_run_here(celery, jobs, said):
    celery.conf.task_always_eager = True
    assert jobs.add.delay(1, 2).get() == 3
    assert chain(jobs.add.s(1, 1), jobs.add.s(2))().get() == 4
    assert chord([jobs.add.s(1, 1)] * 3)(jobs.total.s()).get() == 6
    assert group(jobs.add.s(1, 1), jobs.add.s(2, 2)).delay().get() == [2, 4]
    assert jobs.flaky.delay(2).get() == 2

    @celery.task
    def outer():
        return chord([jobs.add.s(1, 1)] * 2)(jobs.total.s()).get()

    assert outer.delay().get() == 4
    failed = jobs.decline.apply_async(link_error=jobs.old_errback.s())
    assert (failed.state, failed.failed(), said[-1]) == ("FAILURE", True, ("old", failed.id))
    with pytest.raises(Declined):
        failed.get()
    celery.conf.task_eager_propagates = True
    with pytest.raises(Declined):
        jobs.decline.delay()


def test_a_shared_task_belongs_to_every_app(said):
    @shared_task(name="shared.double")
    def double(x):
        return 2 * x

    one = Celery("one", broker="memory://")
    assert double.app is one
    assert double.delay(4).get(timeout=SOON) == 8
    one.close()
    two = Celery("two", broker="memory://")
    assert "shared.double" in two.tasks


def test_an_app_starts_itself_and_closes(said):
    app = Celery("plain", broker="memory://")

    @app.task
    def add(x, y):
        return x + y

    try:
        assert add.delay(1, 2).get(timeout=SOON) == 3
    finally:
        app.close()


# What is missing.


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (lambda jobs: jobs.add.apply_async((1, 1), exchange="x"), "exchange"),
        (lambda jobs: jobs.add.apply_async((1, 1), soft_time_limit=5), "soft_time_limit"),
        (lambda jobs: jobs.add.apply_async((1, 1), serializer="pickle"), "pickle"),
        (lambda jobs: jobs.add.apply_async((1, 1), colour="red"), "colour"),
        (lambda jobs: jobs.add.chunks([(1, 1)], 2), "chunks"),
        (lambda jobs: jobs.add.replace(jobs.add.s(1, 1)), "replace"),
        (lambda jobs: jobs.add.s(1, 1).stamp(), "stamp"),
        (lambda jobs: jobs.add.app.control.inspect(), "inspect"),
        (lambda jobs: jobs.add.app.start(), "start"),
        (lambda jobs: jobs.add.app.worker_main(), "worker_main"),
        (lambda jobs: jobs.add.delay(1, 1).forget(), "forget"),
        (lambda jobs: jobs.add.delay(1, 1).collect(), "collect"),
        (lambda jobs: group([jobs.add.s(1, 1)]).delay().save(), "save"),
        (lambda jobs: solar("sunset", 1, 2), "solar"),
        (lambda jobs: crontab(day_of_week=1, day_of_month=1), "day_of_month"),
        (lambda jobs: rule_of("noon"), "noon"),
        (lambda jobs: Celery(loader="x"), "loader"),
    ],
)
def test_a_missing_part_is_refused_by_name(jobs, app, use, named):
    with pytest.raises(NotSupported, match=named):
        use(jobs)


def test_options_that_are_missing_are_refused_at_the_decorator(celery):
    with pytest.raises(NotSupported, match="pydantic"):
        celery.task(pydantic=True)(lambda: None)
    with pytest.raises(NotSupported, match="coroutine"):

        @celery.task
        async def later():
            return None


def test_names_of_celery_are_there():
    assert get_task_logger("x").name == "x"
    assert crontab(minute="*/5", day_of_week="mon-fri").text == "*/5 * * * mon-fri"
    assert crontab(minute={0, 30}, hour=[8, 9]).text == "0,30 8,9 * * *"
    assert rule_of(schedule(5)) == {"every": timedelta(seconds=5)}
    assert {states.SUCCESS, states.FAILURE, states.REVOKED} == states.READY_STATES
