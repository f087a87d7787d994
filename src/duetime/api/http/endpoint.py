"""One HTTP request and its answer: what every route shares (token, limits, body, errors), in one place.

A route's handler takes a `Call` and gives an `Answer`; it raises errors of `duetime.errors`, and they become
problems here. Nothing a client sends may end in a 500: what does is a bug, logged with a trace id.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from duetime import errors
from duetime.api.access.admission import held_budget
from duetime.api.access.auth import Gate, Role
from duetime.api.access.byte_budget import Budget
from duetime.api.access.call_slots import Places
from duetime.api.access.quotas import bearer
from duetime.api.http import problems
from duetime.api.http.body_parts import check_parts
from duetime.errors import Busy, DuetimeError, NotJsonType, TooLarge
from duetime.limits import (
    ANSWER_COUNTED_BYTES,
    ANSWER_PIECE_BYTES,
    REQUEST_ONE_BYTES_MAX,
    UNREAD_BYTES_MAX,
)

T = TypeVar("T")
JSON = b"application/json"
NDJSON = frozenset({b"application/x-ndjson", b"application/ndjson", b"application/jsonl"})
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
                raise errors.BadQuery("The query cannot be read.", hint="Use name=value in UTF-8.") from None
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
            check_parts(body)
            return decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise problems.unreadable(error, decoder.type) from None


Handler = Callable[[Call], Awaitable[Answer | None]]
"""None: the handler has answered by itself (a stream)."""


class Load(Places):
    """How many requests are under way, and how many may be; and the bytes that they hold."""

    def __init__(
        self,
        requests_max: int,
        bytes_max: int,
        refused: Callable[[DuetimeError], None] = problems.nobody_counts,
    ) -> None:
        """`bytes_max`: of one request. `refused` is told of every caller who is refused."""
        super().__init__(requests_max, "requests")
        self.bytes_max = bytes_max
        self.one_bytes_max = min(bytes_max, REQUEST_ONE_BYTES_MAX)
        """Of a request that is not about many."""
        self.refused = refused
        self.held = held_budget(bytes_max)
        """Bytes of bodies by token."""
        self.unread = Budget(UNREAD_BYTES_MAX, UNREAD_BYTES_MAX // 2)
        """Bytes of large answers that are on their way, by token."""


class Endpoint:
    """An ASGI application around one handler."""

    def __init__(
        self,
        handler: Handler,
        role: Role | None,
        gate: Gate,
        load: Load,
        *,
        stream: bool = False,
        ndjson: bool = False,
        bulk: bool = False,
    ) -> None:
        """`bulk`: a request may be about many, and as large as any."""
        self._handler = handler
        self._role = role
        self._gate = gate
        self._load = load
        self._counted = role is not None and not stream
        """Health is asked, and streams stay, under any load."""
        self._ndjson = ndjson
        self._bytes_max = load.bytes_max if bulk else load.one_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._role is None:
                answer = await self._open(scope, receive, send)
            else:
                self._gate.check(scope["headers"], self._role)
                answer = await self._admitted(scope, receive, send, bearer.get())
        except DuetimeError as error:
            self._load.refused(error)
            answer = refusal(error)
        except Exception as error:
            answer = bug(error, scope["method"], scope["path"])
        if answer is None:
            return
        if len(answer.body) <= ANSWER_COUNTED_BYTES or self._role is None:
            await reply(send, answer)
        else:
            await self._reply_counted(send, answer, reads=scope["method"] == "GET")

    async def _reply_counted(self, send: Send, answer: Answer, *, reads: bool) -> None:
        """Clients that do not read must not fill the memory. What was done is told in any case."""
        unread, token, size = self._load.unread, bearer.get(), len(answer.body)
        if not reads:
            unread.force(token, size)
        elif not unread.take(token, size):
            error = _unread()
            self._load.refused(error)
            await reply(send, refusal(error))
            return
        try:
            await reply(send, answer)
        finally:
            unread.give(token, size)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """Strangers may ask, and may not make us keep what they send."""
        if _has_body(scope["headers"]):
            raise TooLarge(f"{scope['path'][:200]} accepts no body.", hint="Send the request without a body.")
        return await self._handler(Call(scope, b"", receive, send))

    async def _admitted(self, scope: Scope, receive: Receive, send: Send, token: str) -> Answer | None:
        load = self._load
        if self._counted:
            load.check(token)
        if not load.unread.has_room(token):
            raise _unread()
        check_type(scope["headers"], ndjson=self._ndjson)
        body = Body(load, token, self._bytes_max)
        try:
            call = Call(scope, await body.read(scope, receive), receive, send)
            if not self._counted:
                return await self._handler(call)
            load.check(token)
            load.begin(token)  # not before the body is there: a head alone keeps nobody out
            try:
                return await self._handler(call)
            finally:
                load.end(token)
        finally:
            body.release()


async def reply(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.media_type),
        (b"content-length", str(len(answer.body)).encode()),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    body, start = answer.body, 0
    while len(body) - start > ANSWER_PIECE_BYTES:  # each waits until the one before it is read
        part = body[start : start + ANSWER_PIECE_BYTES]
        await send({"type": "http.response.body", "body": part, "more_body": True})
        await asyncio.sleep(0)  # tidy: it goes out with the end of the turn
        start += ANSWER_PIECE_BYTES
    await send({"type": "http.response.body", "body": body[start:]})


class Body:
    """The body of one request, and never more of it than is allowed."""

    __slots__ = ("_bytes_max", "_held", "_load", "_token")

    def __init__(self, load: Load, token: str, bytes_max: int) -> None:
        self._load = load
        self._bytes_max = bytes_max
        self._token = token
        self._held = 0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        bytes_max = self._bytes_max
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > bytes_max:
                raise _too_large(bytes_max)
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise errors.NotJson("The connection was closed before the body was complete.")
            part: bytes = message.get("body", b"")
            if self._held + len(part) > bytes_max:
                raise _too_large(bytes_max)
            if not self._load.held.take(self._token, len(part)):
                raise Busy("Requests of this token use too much memory.", waitMs=1_000)
            self._held += len(part)
            if not message.get("more_body", False):
                return part if not parts else b"".join((*parts, part))
            parts.append(part)

    def release(self) -> None:
        """It is answered."""
        if self._held:
            self._load.held.give(self._token, self._held)
            self._held = 0


def _has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0") != b"")
        for name, value in headers
    )


def check_type(headers: Iterable[tuple[bytes, bytes]], *, ndjson: bool) -> None:
    """Raise unless a body is JSON by its content type. One that says nothing is taken for JSON."""
    for name, value in headers:
        if name == b"content-type" and value != JSON and _has_body(headers):
            kind = value.partition(b";")[0].strip().lower()
            if kind == JSON or (kind.startswith(b"application/") and kind.endswith(b"+json")):
                continue
            if not (ndjson and kind in NDJSON):
                raise NotJsonType(f"The body is {value[:100].decode('latin-1')!r}, and not JSON.")


def _unread() -> Busy:
    return Busy(
        "Unread responses for this token use too much memory.",
        hint="Read the pending responses, then send the request again.",
        waitMs=1_000,
    )


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"The request is larger than {bytes_max} bytes.",
        hint="Send less at a time. Only what is about many may have server.request_bytes_max.",
    )


def refusal(error: DuetimeError) -> Answer:
    """An error as an answer."""
    headers: list[tuple[bytes, bytes]] = []
    wait_s = problems.retry_after_s(error)
    if wait_s is not None:
        headers.append((b"retry-after", str(wait_s).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.status == 500:
        _logger.error("An answer of %s: %s", error.status, error)
    return Answer(problems.encode(error), error.status, headers, problems.MEDIA_TYPE)


def bug(error: Exception, method: str, path: str) -> Answer:
    trace = secrets.token_hex(8)
    _logger.error("Bug %s in %s %s", trace, method, path, exc_info=error)
    return refusal(DuetimeError("Something went wrong in Duetime itself.", traceId=trace))
