"""What callers read about a body that cannot be taken."""

from __future__ import annotations

import msgspec
import pytest

from duetime import errors
from duetime.api.http import problems
from duetime.wire.intent import NewIntent, PatchIntent
from duetime.wire.lane import LanePatch


def refused(kind, body: bytes) -> errors.DuetimeError:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=kind)
    return problems.unreadable(caught.value, kind)


@pytest.mark.parametrize(
    ("kind", "body", "meant"),
    [
        (NewIntent, b'{"delayMS": 5}', "delayMs"),
        (NewIntent, b'{"delay_ms": 5}', "delayMs"),
        (NewIntent, b'{"callbak": {}}', "callback"),
        (NewIntent, b'{"callback": {"url": "http://x", "header": {}}}', "headers"),
        (NewIntent, b'{"limits": [{"key": "a", "rates": "1/s"}]}', "rate"),
        (NewIntent, b'{"redelivery": {"maxAttempt": 1}}', "maxAttempts"),
        (PatchIntent, b'{"deadlines": 5}', "deadline"),
        (list[NewIntent], b'[{"tag": {}}]', "tags"),
    ],
)
def test_a_misspelt_field_name_gets_the_right_one_as_a_hint(kind, body, meant):
    error = refused(kind, body)
    assert isinstance(error, errors.InvalidField) and error.hint.startswith(f"Did you mean {meant}?")


@pytest.mark.parametrize("body", [b'{"nonsense": 5}', b'{"callback": {"url": "x", "delayMs": 1}}'])
def test_an_unfamiliar_field_name_gets_no_suggestion(body):
    assert refused(NewIntent, body).hint == errors.InvalidField.hint


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"delayMs": "5"}', "Expected `int`, got `str`, at $.delayMs."),
        (b'{"executeAt": []}', "Expected `int | float | str`, got `array`, at $.executeAt."),
        (b'{"callback": {"url": null}}', "Expected `str`, got `null`, at $.callback.url."),
    ],
)
def test_null_is_not_what_was_expected(body, message):
    assert refused(NewIntent, body).message == message


def test_a_bad_address_has_a_title_and_a_code_of_its_own():
    shown = problems.problem(errors.BadUrl("The url has no host."))
    assert shown.error_code == errors.BadUrl.code and "target" not in shown.title


def test_a_missing_time_is_named_as_the_api_names_it():
    title = problems.problem(errors.TimeMissing("There is none.")).title
    assert "executeAt" in title and "delayMs" in title


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (LanePatch, b'{"rate": "5"}', "Expected a rate such as 20/s, 100/m or 5/10s, at $.rate."),
        (
            NewIntent,
            b'{"intentId": "a b"}',
            "Expected letters, digits and _ . : - as in order-7, at $.intentId.",
        ),
        (
            NewIntent,
            b'{"entity": {"type": "a/b"}}',
            "Expected a name without a slash, such as Account, at $.entity.type.",
        ),
    ],
)
def test_a_refusal_names_a_form_that_works(kind, body, message):
    assert refused(kind, body).message == message
