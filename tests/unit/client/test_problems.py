"""A problem document becomes the exception it was made from."""

from __future__ import annotations

import msgspec
import pytest

from duetime import errors
from duetime.api import problems as server
from duetime.client import problems
from duetime.errors import DuetimeError
from tools.generate_docs import every_error


def there_and_back(error: DuetimeError) -> DuetimeError:
    found = problems.read(server.encode(error))
    assert found is not None
    return problems.error_of(found)


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
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
        (50305, errors.LogUnavailable),
        (50001, DuetimeError),
        (42900, errors.Busy),
    ],
)
def test_a_code_alone_is_enough(code, kind):
    error = problems.error_of(problems.Problem(error_code=code, message="no", status=code // 100))
    assert type(error) is kind


@pytest.mark.parametrize(
    ("status", "kind"), [(418, errors.Refused), (503, errors.Unavailable), (500, DuetimeError)]
)
def test_a_code_of_a_later_version_keeps_its_number(status, kind):
    error = problems.error_of(problems.Problem(error_code=status * 100 + 77, message="new", status=status))
    assert type(error) is kind and error.code == status * 100 + 77


def test_how_long_to_wait_is_kept():
    error = there_and_back(errors.Busy("full", waitMs=1500))
    assert error.details["retryAfterMs"] == 1500


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"{}", b"[1]", b"\xff"])
def test_what_is_no_problem_is_none(body):
    assert problems.read(body) is None


def test_another_servers_page_is_quoted_in_part():
    error = problems.error_of_text(502, "http://x", b"<html>" + b"long " * 1000)
    assert isinstance(error, errors.Unavailable) and "HTTP 502" in error.message
    assert len(error.message) < 300


def test_fields_of_a_later_version_are_passed_over():
    body = msgspec.json.encode({"errorCode": 40401, "message": "m", "later": 1, "recoveryHint": {"later": 2}})
    found = problems.read(body)
    assert found is not None and found.message == "m"
