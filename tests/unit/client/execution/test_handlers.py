"""Every way a function may end has its outcome."""

from __future__ import annotations

import asyncio
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from math import inf, nan

import msgspec
import pytest

from duetime import Reject, RetryAfter, Snooze, SoftTimeout, current, errors
from duetime.client.app.ids import Ids
from duetime.client.app.middleware import Middlewares
from duetime.client.app.payload import Signature
from duetime.client.execution.handlers import FunctionHandler
from duetime.client.execution.reports import Reports
from duetime.client.execution.run_policy import RunPolicy
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Failed, Lost, Rejected, Snoozed
from duetime.protocol.terms import Task, Terms

DELIVERY = Deliver("i", 3, 2, Terms(Task("t"), "task:default", tags={"k": "v"}), b"", 100, 7, 0, "trace", "")


def handler(function, decide=None, limit=1_000, **policy):
    declared = RunPolicy(decide, **policy)
    return FunctionHandler(
        function, Signature(function, "f"), None, declared, limit, 0, Reports(), Middlewares()
    )


def ended(function, decide=None, limit=1_000, **policy):
    return asyncio.run(handler(function, decide, limit, **policy).run(DELIVERY))


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("even this fails")


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (ValueError("bad"), Failed("ValueError", "bad")),
        (ValueError(), Failed("ValueError", "ValueError")),
        (Snooze("1m"), Snoozed(60_000)),
        (Reject("no"), Rejected("rejected", "no")),
        (Reject(), Rejected("rejected", "the function rejected it")),
        (RetryAfter("2s", "busy"), Failed("retry-after", "busy", delay_ms=2_000)),
        (BrokenProcessPool(), Lost("the process that ran it died")),
        (Mute(), Failed("RuntimeError", "Mute could not be read: even this fails")),
    ],
)
def test_the_outcome_of_each_error(raised, outcome):
    async def function():
        raise raised

    assert ended(function) == outcome


@pytest.mark.parametrize("raised", [Reject("no such order"), RetryAfter("2s", "no such order")])
def test_an_error_message_is_one_line_of_the_log(raised, caplog):
    async def function():
        raise raised

    ended(function)
    [record] = caplog.records
    assert record.getMessage().endswith(": no such order") and record.exc_info is None


def test_an_unexpected_error_is_logged_with_its_traceback(caplog):
    async def function():
        raise KeyError("k")

    ended(function)
    [record] = caplog.records
    assert record.exc_info is not None and record.exc_info[0] is KeyError


def test_a_delay_that_is_none_is_a_failure():
    async def function():
        raise Snooze("whenever")

    outcome = ended(function)
    assert isinstance(outcome, Failed) and "'whenever' is not a duration" in outcome.message


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (ConnectionResetError("gone"), Failed("ConnectionResetError", "gone")),
        (ValueError("bad"), Rejected("ValueError", "bad")),
        (SoftTimeout(), Rejected("SoftTimeout", "the soft time limit has passed")),
        (RetryAfter("2s", "busy"), Failed("retry-after", "busy", delay_ms=2_000)),
        (Snooze("1m"), Snoozed(60_000)),
        (BrokenProcessPool(), Lost("the process that ran it died")),
        (Mute(), Failed("RuntimeError", "Mute could not be read: even this fails")),
    ],
)
def test_only_errors_of_the_function_are_given_up(raised, outcome):
    async def function():
        raise raised

    assert ended(function, retry_on=(ConnectionError,)) == outcome


def test_a_cancelled_wait_inside_the_function_is_retried():
    """It is no `Exception`: something from outside ended the wait."""
    outcome = handler(print, retry_on=(ConnectionError,)).outcome(DELIVERY, None, asyncio.CancelledError())
    assert outcome == Failed("CancelledError", "CancelledError")


@dataclass(frozen=True)
class Measured:
    value: float
    note: str | None = None


class Sized(msgspec.Struct):
    value: float


def test_results():
    async def nothing(): ...

    async def something():
        return [1]

    async def opaque():
        return object()

    async def long():
        return "x" * 10

    assert ended(nothing) == Done() and ended(something) == Done(b"[1]")
    assert ended(opaque).kind == "result" and "object" in ended(opaque).message
    for value in (nan, -inf, [1, inf], {"a": (nan,)}, {nan}, Measured(inf), Sized(nan), {"x": Measured(nan)}):

        async def no_number(value=value):
            return value

        assert ended(no_number).kind == "result" and "NaN or infinite" in ended(no_number).message
    assert ended(long, limit=12) == Done(b'"xxxxxxxxxx"')
    assert ended(long, limit=11) == Rejected("result", "the result has 12 bytes; 11 are kept")


def test_a_decision_is_asked_about_errors_only():
    asked = []

    def decide(error, context):
        asked.append((error, context.attempt))
        return Snooze(1)

    async def fails():
        raise KeyError("k")

    async def snoozes():
        raise Reject("mine")

    assert ended(fails, decide) == Snoozed(1_000)
    assert ended(snoozes, decide) == Rejected("rejected", "mine")
    assert [(type(error), attempt) for error, attempt in asked] == [(KeyError, 2)]


def test_the_context():
    async def function():
        context = current()
        return [context.intent_id, context.delivery, context.attempt, context.late_ms, context.tags]

    assert ended(function) == Done(b'["i",3,2,7,{"k":"v"}]')
    with pytest.raises(errors.Closed, match="No intent is running"):
        current()


def test_ids_are_new_and_in_the_order_of_time():
    ids = Ids()
    made = [ids.new(1_893_456_000_000 + n // 100) for n in range(1_000)]
    assert len(set(made)) == 1_000 and len({id.split("-")[0] for id in made}) == 10
    assert made[0] < made[-1] and Ids().new(0) != Ids().new(0)
