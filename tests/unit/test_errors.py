"""The tree of errors: each has a code, a title and a hint, and the codes do not contradict each other."""

from __future__ import annotations

import pickle  # tidy: concurrent.futures does it, so we must know that it works

import pytest

from duetime import errors
from duetime.errors import Busy, DuetimeError, Fatal, LaneFull, Refused, Unavailable
from duetime.sentence import one_stop
from tools.generate_docs import every_error

each_error = pytest.mark.parametrize("error", every_error(), ids=lambda error: error.__name__)


@each_error
def test_it_says_what_it_is_and_what_to_do(error):
    assert "__doc__" in vars(error) and error.__doc__.endswith("."), "the title is a sentence of its own"
    assert error.hint.endswith("."), "the hint is a sentence"


@each_error
def test_the_code_begins_with_the_status(error):
    # 50001 is "a bug"; all others are the status and two digits.
    assert error.code // 100 == error.status or error.code == 50001 or issubclass(error, Fatal | errors.Moved)


def test_whose_move_it_is_says_whether_to_try_again():
    refused = [error for error in every_error() if issubclass(error, Refused)]
    unavailable = [error for error in every_error() if issubclass(error, Unavailable)]
    assert not any(error.retryable for error in refused)
    # A closed app stays closed; everything else that is unavailable may come back.
    assert [error for error in unavailable if not error.retryable] == [errors.Closed]


def test_the_text_is_message_and_hint():
    error = LaneFull("The lane 'mail' holds 5 intents, its limit.")
    assert str(error) == "The lane 'mail' holds 5 intents, its limit. " + Busy.hint
    assert error.message == "The lane 'mail' holds 5 intents, its limit."


@each_error
def test_one_that_quotes_another_doubles_neither_stop_nor_hint(error):
    for quoted in (other(text) for other in every_error() for text in ("What happened.", "It happened")):
        told = error(f"It failed: {quoted}.")
        assert ".." not in str(told) and str(told).endswith(".")
        assert str(told).count(error.hint) == 1
        assert told.advice in ("", error.hint)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (".", "."),
        ("a..", "a."),
        ("a?.", "a?"),
        ("a!.", "a!"),
        ("a...", "a..."),
        ("a....", "a..."),
        ("a", "a"),
    ],
)
def test_a_sentence_has_one_stop(text, told):
    assert one_stop(text) == told


def test_without_a_message_the_title_speaks():
    assert errors.NoSuchIntent().message == "There is no intent with this id."


def test_an_instance_may_hint_more_exactly():
    error = errors.BadConfig("No.", hint="Yes.")
    assert error.hint == "Yes." and errors.BadConfig.hint != "Yes."
    assert str(error) == "No. Yes."


def test_details_are_kept():
    assert errors.TooLarge("Too large.", bytes=9, limit=8).details == {"bytes": 9, "limit": 8}


@each_error
def test_it_survives_the_way_between_processes(error):
    # Tasks run in other processes, and concurrent.futures sends what they raise by pickle.
    there = error("What happened.")
    back = pickle.loads(pickle.dumps(there))
    assert type(back) is error and str(back) == str(there)


def test_hint_and_details_survive_the_way_between_processes():
    back = pickle.loads(pickle.dumps(DuetimeError("A.", hint="B.", place=3)))
    assert (back.message, back.hint, back.details) == ("A.", "B.", {"place": 3})
