"""Errors over gRPC: a gRPC status, and Duetime's code and problem in the trailer."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Final, NoReturn

import grpc
import grpc.aio
import msgspec
from msgspec.structs import replace

from duetime import errors
from duetime.api.http import problems
from duetime.errors import DuetimeError
from duetime.limits import GRPC_ERROR_CHARS_MAX, GRPC_PROBLEM_BYTES_MAX
from duetime.v1 import intents_pb2 as pb
from duetime.wire.problem import Problem

Context = grpc.aio.ServicerContext[object, object]

CODE: Final = "duetime-error-code"
PROBLEM: Final = "duetime-problem-bin"

_BY_STATUS: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    405: grpc.StatusCode.UNIMPLEMENTED,
    409: grpc.StatusCode.ALREADY_EXISTS,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    431: grpc.StatusCode.INVALID_ARGUMENT,
    503: grpc.StatusCode.UNAVAILABLE,
}
# Statuses that gRPC distinguishes and HTTP does not.
_BY_CLASS: Final[Mapping[type[DuetimeError], grpc.StatusCode]] = {
    errors.RevisionMoved: grpc.StatusCode.ABORTED,
    errors.StateForbids: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotDeadLettered: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotPatchable: grpc.StatusCode.FAILED_PRECONDITION,
}
_logger = logging.getLogger("duetime.api")


def status_of(error: DuetimeError) -> grpc.StatusCode:
    """The gRPC status of an error."""
    return _BY_CLASS.get(type(error)) or _BY_STATUS.get(error.status, grpc.StatusCode.INTERNAL)


def trailer(error: DuetimeError) -> tuple[tuple[str, str | bytes], ...]:
    """The trailer of an error."""
    text = problems.encode(error)
    if len(text) > GRPC_PROBLEM_BYTES_MAX:
        short = replace(
            problems.problem(error),
            detail=str(error)[:GRPC_ERROR_CHARS_MAX],
            message=error.message[:GRPC_ERROR_CHARS_MAX],
            details={},
        )
        text = msgspec.json.encode(short)
    return ((CODE, str(error.code)), (PROBLEM, text))


def problem(shown: Problem) -> pb.Problem:
    """A problem as a message, for responses with several."""
    return pb.Problem(
        error_code=shown.error_code,
        status=shown.status,
        message=shown.message,
        retryable=shown.retryable,
        json=msgspec.json.encode(shown),
    )


async def refuse(context: Context, error: Exception, place: str) -> NoReturn:
    """End a call with an error. An error that is not Duetime's is a bug, and is logged with a trace id."""
    if not isinstance(error, DuetimeError):
        trace = secrets.token_hex(8)
        _logger.error("Bug %s in %s", trace, place, exc_info=error)
        error = DuetimeError("Something went wrong in Duetime itself.", traceId=trace)
    await context.abort(status_of(error), str(error)[:GRPC_ERROR_CHARS_MAX], trailer(error))
    raise AssertionError("abort raises")
