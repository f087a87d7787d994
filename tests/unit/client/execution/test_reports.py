"""What functions say is kept within bounds, and told once."""

from __future__ import annotations

import logging

import pytest

from duetime import progress
from duetime.client.app.control import current_context
from duetime.client.execution.handlers import running
from duetime.client.execution.reports import Lines, LogHandler, Reports, note_of
from duetime.errors import Closed, InvalidField
from duetime.limits import ATTEMPT_LOG_BYTES_MAX, ATTEMPT_LOG_LINES_MAX, ATTEMPT_LOGS_KEPT, NOTE_CHARS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import Task, Terms

DELIVERY = Deliver("i", 3, 1, Terms(Task("t"), "task:default"), b"", 0, 0, 0, None, "")


@pytest.fixture
def reports():
    reports = Reports()
    token = current_context.set(running(DELIVERY, reports))
    yield reports
    current_context.reset(token)


def test_the_newest_report_is_kept_and_its_listener_called_once(reports):
    told = []
    reports.on_news(lambda: told.append(1))
    for number in range(1_000):
        progress(number, 1_000)
    assert len(told) == 1
    assert reports.take() == {("i", 3): (999, 1_000, "")}
    progress(1_000, 1_000, "done")
    assert len(told) == 2 and reports.take() == {("i", 3): (1_000, 1_000, "done")}
    assert reports.take() == {}


@pytest.mark.parametrize("wrong", ["x", None, float("nan"), float("inf"), 2**60])
def test_an_invalid_number_is_refused_at_once(reports, wrong):
    with pytest.raises(InvalidField, match="done="):
        progress(wrong)


def test_outside_of_a_function_there_is_no_progress():
    with pytest.raises(Closed, match="No intent is running"):
        progress(1)


def test_a_note_is_text_of_bounded_length():
    assert note_of("x" * 1_000) == "x" * NOTE_CHARS_MAX
    assert note_of("a\ud800b") == "a\\ud800b"


def test_lines_are_the_newest():
    lines = Lines()
    for number in range(ATTEMPT_LOG_LINES_MAX + 50):
        lines.add(f"line {number}")
    text = lines.text().splitlines()
    assert text[0] == "(50 earlier lines were not kept)" and text[1] == "line 50"
    assert len(text) == ATTEMPT_LOG_LINES_MAX + 1


def test_bytes_are_bounded_too():
    lines = Lines()
    lines.add("é" * ATTEMPT_LOG_BYTES_MAX)
    lines.add("\ud800")
    assert len(lines.text().encode()) <= ATTEMPT_LOG_BYTES_MAX
    many = Lines()
    for _ in range(100):
        many.add("x" * 1_000)
    assert len(many.text().encode()) <= ATTEMPT_LOG_BYTES_MAX


def test_log_lines_go_with_the_outcome(reports):
    handler = LogHandler()
    handler.handle(logging.LogRecord("shop", logging.INFO, "", 0, "sold %d", (7,), None))
    (settlement,) = reports.with_logs([Settlement("i", 3, Done())])
    assert settlement.log is not None and settlement.log.endswith("INFO shop: sold 7")
    assert reports.with_logs([Settlement("i", 3, Done())]) == [Settlement("i", 3, Done())], "once"


def test_outcomes_without_lines_are_the_same_objects(reports):
    """A function that says nothing costs nothing: the list goes through as it is."""
    settlements = [Settlement("a", 1, Done())]
    assert reports.with_logs(settlements) is settlements
    reports.log(("other", 1), "x")
    assert reports.with_logs(settlements)[0] is settlements[0]


def test_a_log_line_that_cannot_be_formatted_is_skipped(reports, capsys):
    LogHandler().handle(logging.LogRecord("shop", logging.INFO, "", 0, "sold %d", ("x",), None))
    assert "TypeError" in capsys.readouterr().err
    assert reports.text(("i", 3)) is None


def test_log_lines_outside_of_a_function_are_not_kept():
    LogHandler().handle(logging.LogRecord("shop", logging.INFO, "", 0, "x", (), None))


def test_logs_of_ended_deliveries_are_forgotten():
    reports = Reports()
    for number in range(3_000):
        reports.log((f"i{number}", 1), "late")
    kept = [number for number in range(3_000) if reports.text((f"i{number}", 1)) is not None]
    assert kept == list(range(3_000 - ATTEMPT_LOGS_KEPT, 3_000))
