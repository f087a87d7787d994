"""Common to all routes: the token, the limits, the body and the errors of a request.

The handler of a route takes a `Call` and returns an `Answer`. It raises errors of `duetime.errors`, which
become problem documents here. No request may cause a 500: if one does, it is a bug, and is logged with a
trace id.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from duetime import errors
from duetime.api.access.admission import held_budget
from duetime.api.access.auth import Gate, Role
from duetime.api.access.byte_budget import Budget
from duetime.api.access.call_slots import Places
from duetime.api.access.quotas import bearer
from duetime.api.http import problems
from duetime.api.http.body_parts import check_parts
from duetime.api.http.exchange import JSON, Answer, ClientGone, Exchange, Head
from duetime.errors import Busy, DuetimeError, NotJsonType, TooLarge
from duetime.limits import (
    ANSWER_COUNTED_BYTES,
    REQUEST_ONE_BYTES_MAX,
    UNREAD_BYTES_MAX,
)

T = TypeVar("T")
NDJSON = frozenset({b"application/x-ndjson", b"application/ndjson", b"application/jsonl"})
_logger = logging.getLogger("duetime.api")


class Call:
    """One request, for a handler."""

    __slots__ = ("_query", "body", "exchange", "head", "headers", "method", "params", "path")

    def __init__(
        self,
        head: Head,
        body: bytes,
        params: Mapping[str, str] | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        """`params`: the parameters in the path. `exchange`: for handlers that respond with a stream."""
        self.head = head
        self.method = head.method
        self.path = head.path
        self.params = params if params is not None else {}
        self.headers = dict(head.headers)
        self.body = body
        self.exchange = exchange
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        if self._query is None:
            text = self.head.query.decode("latin-1")
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
                body.decode()  # parts that are passed on undecoded must be valid UTF-8 too
            check_parts(body)
            return decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise problems.unreadable(error, decoder.type) from None


Handler = Callable[[Call], Awaitable[Answer | None]]
"""Returns None if it has responded itself, with a stream."""


class Load(Places):
    """Counts running requests and their bytes, and limits both."""

    def __init__(
        self,
        requests_max: int,
        bytes_max: int,
        refused: Callable[[DuetimeError], None] = problems.nobody_counts,
    ) -> None:
        """`bytes_max`: the maximum size of one request. `refused` is called for every refused request."""
        super().__init__(requests_max, "requests")
        self.bytes_max = bytes_max
        self.one_bytes_max = min(bytes_max, REQUEST_ONE_BYTES_MAX)
        """The maximum size of a request that is not a batch."""
        self.refused = refused
        self.held = held_budget(bytes_max)
        """Bytes of bodies by token."""
        self.unread = Budget(UNREAD_BYTES_MAX, UNREAD_BYTES_MAX // 2)
        """Bytes of large unread responses, by token."""


class Endpoint:
    """One handler, with the checks that come before it and the responses to its errors."""

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
        """`bulk`: a batch, which may have the maximum size."""
        self._handler = handler
        self._role = role
        self._gate = gate
        self._load = load
        self._counted = role is not None and not stream
        """Whether it is exempt from the limits: health and open streams must work under any load."""
        self._ndjson = ndjson
        self._bytes_max = load.bytes_max if bulk else load.one_bytes_max

    async def __call__(self, exchange: Exchange, params: Mapping[str, str]) -> None:
        head = exchange.head
        try:
            if self._role is None:
                answer = await self._open(exchange, params)
            else:
                self._gate.check(head.headers, self._role)
                answer = await self._admitted(exchange, params, bearer.get())
        except DuetimeError as error:
            self._load.refused(error)
            answer = refusal(error)
        except Exception as error:
            answer = bug(error, head.method, head.path)
        if answer is None:
            return
        try:
            if len(answer.body) <= ANSWER_COUNTED_BYTES or self._role is None:
                await exchange.respond(answer)
            else:
                await self._respond_counted(exchange, answer)
        finally:
            if answer.ended is not None:
                answer.ended(exchange.answered)

    async def _respond_counted(self, exchange: Exchange, answer: Answer) -> None:
        """Limit unread responses, which use memory. The response of a write is always sent."""
        unread, token, size = self._load.unread, bearer.get(), len(answer.body)
        if exchange.head.method != "GET":
            unread.force(token, size)
        elif not unread.take(token, size):
            error = _unread()
            self._load.refused(error)
            await exchange.respond(refusal(error))
            return
        try:
            await exchange.respond(answer)
        finally:
            unread.give(token, size)

    async def _open(self, exchange: Exchange, params: Mapping[str, str]) -> Answer | None:
        """An open route: no token, and no body is accepted."""
        head = exchange.head
        if _has_body(head.headers):
            raise TooLarge(f"{head.path[:200]} accepts no body.", hint="Send the request without a body.")
        return await self._handler(Call(head, b"", params, exchange))

    async def _admitted(self, exchange: Exchange, params: Mapping[str, str], token: str) -> Answer | None:
        load, head = self._load, exchange.head
        if self._counted:
            load.check(token)
        if not load.unread.has_room(token):
            raise _unread()
        check_type(head.headers, ndjson=self._ndjson)
        body = Body(load, token, self._bytes_max)
        try:
            call = Call(head, await body.read(exchange), params, exchange)
            if not self._counted:
                return await self._handler(call)
            load.check(token)
            load.begin(token)  # after the body has arrived: a head alone must not take a slot
            try:
                return await self._handler(call)
            finally:
                load.end(token)
        finally:
            body.release()


class Body:
    """The body of one request, within its limit."""

    __slots__ = ("_bytes_max", "_held", "_load", "_token")

    def __init__(self, load: Load, token: str, bytes_max: int) -> None:
        self._load = load
        self._bytes_max = bytes_max
        self._token = token
        self._held = 0

    async def read(self, exchange: Exchange) -> bytes:
        bytes_max = self._bytes_max
        for name, value in exchange.head.headers:
            if name == b"content-length" and value.isdigit() and int(value) > bytes_max:
                raise _too_large(bytes_max)
        parts: list[bytes] = []
        try:
            while part := await exchange.read():
                if self._held + len(part) > bytes_max:
                    raise _too_large(bytes_max)
                if not self._load.held.take(self._token, len(part)):
                    raise Busy("Requests of this token use too much memory.", waitMs=1_000)
                self._held += len(part)
                parts.append(part)
        except ClientGone:
            raise errors.NotJson("The connection was closed before the body was complete.") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

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
    """Raise unless the content type of a body is JSON, or missing."""
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
        hint="Send less per request. Only batches and groups may be as large as server.request_bytes_max.",
    )


def refusal(error: DuetimeError) -> Answer:
    """The response for an error."""
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
