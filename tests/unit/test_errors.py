"""The tree of errors: every class has a code, a title and a hint of its own."""

from __future__ import annotations

import pickle  # tidy: concurrent.futures does it, so we must know that it works

import pytest

from duetime import errors
from duetime.errors import DuetimeError, LaneFull, Refused, Unavailable, one_stop

each_error = pytest.mark.parametrize("error", errors.EVERY, ids=lambda error: error.__name__)


@each_error
def test_every_error_has_a_title_and_a_hint(error):
    assert "__doc__" in vars(error) and error.__doc__.endswith("."), "the title is a sentence of its own"
    assert "hint" in vars(error) and error.hint.endswith("."), "the hint is a sentence of its own"


def test_every_class_has_a_code_of_its_own():
    bearers: dict[int, list[str]] = {}
    for error in errors.EVERY:
        bearers.setdefault(error.code, []).append(error.__name__)
    assert not {code: names for code, names in bearers.items() if len(names) > 1}
    assert set(errors.BY_CODE.values()) == set(errors.EVERY)


@each_error
def test_the_code_is_the_status_and_two_digits(error):
    assert "code" in vars(error) and error.code // 100 == error.status


PUBLIC_CODES = {
    40001: "BadRevision", 40002: "BadQuery", 40003: "NotJson", 40004: "MissingParameter", 40005: "BadHttp",
    40101: "NoToken", 40301: "Forbidden", 40302: "ForeignPage", 40303: "ForeignHost", 40401: "NoSuchIntent",
    40402: "NoSuchRoute", 40403: "NoSuchSchedule", 40501: "NoSuchMethod", 40901: "KeyFinished",
    40902: "RevisionMoved", 40903: "KeyReused", 40904: "IdExists", 40905: "KeyHeld", 41301: "TooLarge",
    41501: "NotJsonType", 42200: "Refused", 42201: "TimeMissing", 42204: "StateForbids",
    42205: "DeadlineTooEarly", 42206: "InThePast", 42207: "NotDeadLettered", 42208: "InvalidField",
    42209: "BadTarget", 42210: "UnknownTier", 42211: "NotPatchable", 42212: "NotAcked", 42213: "ResultGone",
    42214: "UnknownTask", 42215: "BadConfig", 42216: "BadUrl", 42900: "Busy", 42901: "RateLimited",
    42902: "LaneFull", 42903: "EntityFull", 43101: "HeadTooLarge", 50001: "DuetimeError", 50002: "Fatal",
    50003: "Damaged", 50004: "Mixed", 50005: "Denied", 50006: "DiskFailed", 50007: "TooNew",
    50300: "Unavailable", 50304: "NotReady", 50305: "NoSpace", 50306: "Closed", 50307: "Unreachable",
    50308: "Held", 50309: "WaitTimedOut", 50310: "LogUnavailable", 50311: "Exhausted", 50312: "Moved",
    50313: "InDoubt",
}  # fmt: skip


def test_a_code_that_was_published_keeps_its_class():
    """A new class adds a row; no row is ever changed."""
    assert {code: error.__name__ for code, error in errors.BY_CODE.items()} == PUBLIC_CODES


def test_only_unavailable_errors_are_retryable():
    refused = [error for error in errors.EVERY if issubclass(error, Refused)]
    unavailable = [error for error in errors.EVERY if issubclass(error, Unavailable)]
    assert not any(error.retryable for error in refused)
    # A closed app stays closed; everything else that is unavailable may come back.
    assert [error for error in unavailable if not error.retryable] == [errors.Closed]


def test_the_text_is_message_and_hint():
    error = LaneFull("The lane 'mail' holds 5 intents, its limit.")
    assert str(error) == "The lane 'mail' holds 5 intents, its limit. " + LaneFull.hint
    assert error.message == "The lane 'mail' holds 5 intents, its limit."


@each_error
def test_an_error_that_quotes_another_repeats_neither_its_full_stop_nor_its_hint(error):
    for quoted in (other(text) for other in errors.EVERY for text in ("What happened.", "It happened")):
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
def test_an_error_can_be_pickled(error):
    # Tasks run in other processes, and concurrent.futures sends what they raise by pickle.
    there = error("What happened.")
    back = pickle.loads(pickle.dumps(there))
    assert type(back) is error and str(back) == str(there)


def test_hint_and_details_survive_the_way_between_processes():
    back = pickle.loads(pickle.dumps(DuetimeError("A.", hint="B.", place=3)))
    assert (back.message, back.hint, back.details) == ("A.", "B.", {"place": 3})
