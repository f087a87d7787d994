"""One HTTP request and its answer: what every route shares (token, limits, body, errors), in one place.

A route's handler takes a `Call` and gives an `Answer`; it raises errors of `duetime.errors`, and they become
problems here. Nothing a client sends may end in a 500: what does is a bug, logged with a trace id.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from duetime import errors
from duetime.api import problems
from duetime.api.auth import Gate, Role
from duetime.errors import Busy, DuetimeError, TooLarge

T = TypeVar("T")
JSON = b"application/json"
_logger = logging.getLogger("duetime.api")


class Answer(Struct):
    """What goes back."""

    body: bytes
    status: int = 200
    headers: list[tuple[bytes, bytes]] = []
    media_type: bytes = JSON


class Call:
    """One request, as a handler sees it."""

    __slots__ = ("_query", "body", "headers", "method", "params", "path", "receive", "scope", "send")

    def __init__(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.params: dict[str, str] = scope.get("path_params", {})
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.body = body
        self.receive = receive
        self.send = send
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        if self._query is None:
            text = self.scope["query_string"].decode("latin-1")
            try:
                pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100)
            except ValueError:
                raise errors.BadQuery(
                    "The query cannot be read.", hint="Write it as name=value in UTF-8."
                ) from None
            self._query = {}
            for name, value in pairs:
                if name in self._query:
                    raise errors.BadQuery(f"The parameter {name[:64]!r} is given twice.", parameter=name[:64])
                self._query[name] = value
        return self._query

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def read(self, decoder: msgspec.json.Decoder[T]) -> T:
        """The body as a Struct."""
        body = self.body
        try:
            if not body.isascii():
                body.decode()  # what is passed on unread must be text, too
            return decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise problems.unreadable(error, decoder.type) from None


Handler = Callable[[Call], Awaitable[Answer | None]]
"""None: the handler has answered by itself (a stream)."""


class Load(Struct):
    """How many requests are under way, and how many may be."""

    requests_max: int
    bytes_max: int
    under_way: int = 0
    refused: Callable[[DuetimeError], None] = problems.nobody_counts
    """Told of every caller who is refused."""


class Endpoint:
    """An ASGI application around one handler."""

    def __init__(
        self, handler: Handler, role: Role | None, gate: Gate, load: Load, *, stream: bool = False
    ) -> None:
        self._handler = handler
        self._role = role
        self._gate = gate
        self._load = load
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        load = self._load
        counted = (
            self._role is not None and not self._stream
        )  # health is asked, and streams stay, under any load
        load.under_way += counted
        try:
            if self._role is not None:
                self._gate.check(scope["headers"], self._role)
            if counted and load.under_way > load.requests_max:
                raise Busy(f"{load.requests_max} requests are under way, the most there may be.", waitMs=100)
            body = await _body(scope, receive, load.bytes_max)
            answer = await self._handler(Call(scope, body, receive, send))
        except DuetimeError as error:
            load.refused(error)
            answer = refusal(error)
        except Exception as error:
            answer = bug(error, scope["method"], scope["path"])
        finally:
            load.under_way -= counted
        if answer is not None:
            await reply(send, answer)


async def reply(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.media_type),
        (b"content-length", str(len(answer.body)).encode()),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _body(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    """The whole body, and never more than is allowed."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > bytes_max:
            raise _too_large(bytes_max)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise errors.NotJson("The connection was closed before the body was complete.")
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > bytes_max:
            raise _too_large(bytes_max)
        if not message.get("more_body", False):
            return part if not parts else b"".join((*parts, part))
        parts.append(part)


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"The request is larger than {bytes_max} bytes.",
        hint="Send fewer intents at a time (the setting server.request_bytes_max).",
    )


def refusal(error: DuetimeError) -> Answer:
    """An error as an answer."""
    headers: list[tuple[bytes, bytes]] = []
    wait_s = problems.retry_after_s(error)
    if wait_s is not None:
        headers.append((b"retry-after", str(wait_s).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.status >= 500 and error.code == errors.DuetimeError.code:
        _logger.error("An answer of %s: %s", error.status, error)
    return Answer(problems.encode(error), error.status, headers, problems.MEDIA_TYPE)


def bug(error: Exception, method: str, path: str) -> Answer:
    trace = secrets.token_hex(8)
    _logger.error("Bug %s in %s %s", trace, method, path, exc_info=error)
    return refusal(DuetimeError("Something went wrong in Duetime itself.", traceId=trace))
