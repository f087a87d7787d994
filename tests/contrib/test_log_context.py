"""Every log line of a function names its task, its intent and its attempt."""

from __future__ import annotations

import io
import logging

import pytest

from duetime import App, Retry, current
from duetime.contrib.log_context import LogContext, LogContextFilter

SOON = "30s"
FORMAT = "%(levelname)s %(task)s %(queue)s %(intent_id)s %(attempt)s: %(message)s"
_logger = logging.getLogger("shop.mail")


@pytest.fixture
def out():
    """What a handler of the root logger writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)
    for each in root.handlers:
        each.filters = [kept for kept in each.filters if not isinstance(kept, LogContextFilter)]


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_log_lines_name_the_function(out, kind):
    app = App(":memory:")
    app.add_middleware(LogContext())

    def work() -> None:
        _logger.warning("sending")
        if current().attempt == 1:
            raise ValueError("not yet")

    async def async_work() -> None:
        work()

    soon = Retry(max_attempts=2, initial_delay="1ms", jitter=False)
    task = app.task(name="mail", queue="q", retry=soon)(work if kind == "plain" else async_work)
    with app:
        task.options(id="m-1").schedule().wait().result(SOON).wait()
        _logger.warning("outside")
    lines = [line for line in out.getvalue().splitlines() if line.startswith("WARNING")]
    assert lines == [
        "WARNING mail q m-1 1: sending",
        "WARNING mail q m-1 1: Intent m-1 failed, attempt 1 of 2.",
        "WARNING mail q m-1 2: sending",
        "WARNING - - - -: outside",
    ]


def test_a_handler_that_is_added_later_and_values_of_the_program(out):
    app = App(":memory:")
    app.add_middleware(LogContext(["shop"]))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORMAT))
    shop = logging.getLogger("shop")
    shop.propagate = False
    shop.addHandler(handler)

    @app.task(name="mail")
    def work() -> None:
        _logger.warning("sending", extra={"task": "mine"})

    try:
        with app:
            work.options(id="m-1").schedule().wait().result(SOON).wait()
    finally:
        shop.removeHandler(handler)
        shop.propagate = True
    assert stream.getvalue() == "WARNING mine default m-1 1: sending\n"
    assert not [line for line in out.getvalue().splitlines() if "sending" in line]
