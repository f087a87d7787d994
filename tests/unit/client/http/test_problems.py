"""A problem document becomes the exception it was made from."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from duetime import errors
from duetime.api.http import problems as server
from duetime.client.http import problems
from duetime.errors import DuetimeError


def there_and_back(error: DuetimeError) -> DuetimeError:
    found = problems.read(server.encode(error))
    assert found is not None
    return problems.error_of(found)


@pytest.mark.parametrize("kind", errors.EVERY, ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_itself(kind):
    error = there_and_back(kind("what happened", hint="what to do", intentId="a-1"))
    assert type(error) is kind
    assert (error.message, error.hint, error.code, error.status) == (
        "what happened", "what to do", kind.code, kind.status,
    )  # fmt: skip
    assert error.details["intentId"] == "a-1"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (42208, errors.InvalidField),
        (42204, errors.StateForbids),
        (40401, errors.NoSuchIntent),
        (50304, errors.NotReady),
        (50305, errors.NoSpace),
        (50001, DuetimeError),
        (42900, errors.Busy),
    ],
)
def test_a_code_that_older_servers_share_is_its_main_class(code, kind):
    assert errors.BY_CODE[code] is kind


@pytest.mark.parametrize("kind", errors.EVERY, ids=lambda kind: kind.__name__)
def test_the_code_alone_chooses_the_class(kind):
    shown = replace(server.problem(kind("no")), title="Another title.", status=400)
    error = problems.error_of(shown)
    assert type(error) is kind
    assert (error.status, error.retryable, error.hint) == (kind.status, kind.retryable, kind.hint)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Refused),
        (409, errors.Refused),
        (418, errors.Refused),
        (422, errors.Refused),
        (429, errors.Unavailable),
        (500, DuetimeError),
        (503, errors.Unavailable),
    ],
)
def test_an_unknown_code_falls_back_on_the_status(status, kind):
    code = status * 100 + 77
    error = problems.error_of(replace(server.problem(kind("new")), error_code=code, status=status))
    assert type(error) is kind
    assert (error.code, error.status, error.retryable) == (code, status, kind.retryable)


@pytest.mark.parametrize("retryable", [True, False])
def test_an_unknown_code_is_retryable_if_the_response_marks_it(retryable):
    shown = replace(server.problem(errors.Unavailable("new")), error_code=50377, retryable=retryable)
    assert problems.error_of(shown).retryable is retryable
    assert errors.Unavailable.retryable, "the class itself is not changed"


def test_retry_after_is_kept():
    error = there_and_back(errors.Busy("full", waitMs=1500))
    assert error.details["retryAfterMs"] == 1500


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"{}", b"[1]", b"\xff"])
def test_a_body_that_is_no_problem_is_none(body):
    assert problems.read(body) is None


def test_another_servers_page_is_quoted_in_part():
    error = problems.error_of_text(502, "http://x", b"<html>" + b"long " * 1000)
    assert isinstance(error, errors.Unavailable) and "HTTP 502" in error.message
    assert len(error.message) < 300


def test_fields_of_a_later_version_are_ignored():
    body = msgspec.json.decode(server.encode(errors.NoSuchIntent("m")))
    body["later"] = body["recoveryHint"]["later"] = 1
    found = problems.read(msgspec.json.encode(body))
    assert found is not None and type(problems.error_of(found)) is errors.NoSuchIntent
