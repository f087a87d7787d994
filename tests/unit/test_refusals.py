"""Every reason for which the kernel refuses a command has an error that callers see."""

from __future__ import annotations

import pytest

from duetime import errors
from duetime.protocol.reply import Reason, Refusal
from duetime.refusals import ERRORS, error_of


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_an_error(reason):
    error = error_of(Refusal(reason, "What happened.", {"intentId": "a"}), waitMs=5)
    assert type(error) is ERRORS[reason]
    assert (error.message, error.details) == ("What happened.", {"intentId": "a", "waitMs": 5})


def test_reasons_that_differ_have_errors_that_differ():
    assert set(ERRORS) == set(Reason) and len(set(ERRORS.values())) == len(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_the_caller_is_refused_or_told_to_wait(reason):
    assert issubclass(ERRORS[reason], errors.Refused | errors.Unavailable)


def test_the_details_of_a_refusal_are_not_shared():
    refusal = Refusal(Reason.BUSY, "Full.")
    error_of(refusal).details["waitMs"] = 5
    assert refusal.details == {} and error_of(refusal).details == {}
