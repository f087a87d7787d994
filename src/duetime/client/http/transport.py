"""Sends requests to one server, retries them if that is safe, and returns a body or raises an error.

A write has a request id, so a repeated write has no second effect. Retried are failed connections and the
statuses 503 and 429: a few times, and never sooner than the server asked.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import secrets
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from duetime.client.http import problems
from duetime.client.http.address import token_of, url_of
from duetime.client.http.connections import Connections
from duetime.client.http.sse import Event, Parser
from duetime.errors import Closed, DuetimeError, Unreachable
from duetime.limits import CLIENT_RETRY_AFTER_S_MAX, CLIENT_RETRY_S, CLIENT_RETRY_S_MAX, CLIENT_SILENCE_S

T = TypeVar("T")


NOT_NOW = (429, 503)
_NUMBER = re.compile(r"^Multiple exceptions: \[Errno (\d+)\]")
OPEN_HINT = "Use it inside `with client:` or `async with client:`."


# Called when a stream of events is open; True ends the stream.
Connected = Callable[[], Awaitable[bool]]


class Request(Struct, frozen=True):
    """One request. A `write` gets a request id, which makes it safe to repeat."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    accept: str = "application/json"
    welcome: tuple[int, ...] = ()
    """Statuses besides 2xx that are successful responses."""
    named: bool = True
    """False: its content makes it safe to repeat, so it needs no request id."""

    @property
    def write(self) -> bool:
        return self.method != "GET"


class Transport:
    """The connection to one server."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        tries: int = 5,
        timeout_s: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url = url_of(url)
        self._token = token_of(token)
        self._tries = max(1, tries)
        self._timeout_s = timeout_s
        self._tls = tls
        self._name = secrets.token_urlsafe(12)
        """The first part of its request ids; the second is a number."""
        self._number = count().__next__
        self._connections: Connections | None = None
        self._heads: dict[tuple[str, str], bytes] = {}
        """The heads of requests without a request id: they are the same each time."""

    async def open(self) -> None:
        """Prepare; nothing is sent yet."""
        self._connections = Connections(self.url, self._tls)

    @property
    def is_open(self) -> bool:
        return self._connections is not None

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.close()

    async def send(self, request: Request, tries: int | None = None) -> bytes:
        """Send a request and return the body of the response. An error response is raised. `tries`: instead
        of the client's number."""
        head = self._head(request)
        tries = self._tries if tries is None else tries
        for number in range(1, tries + 1):
            after_s: float | None = None
            try:
                status, after_s, body = await self._once(head, request.body)
            except Unreachable as away:
                if number == tries or not away.retryable:
                    raise
            else:
                if 200 <= status < 300 or status in request.welcome:
                    return body
                error = self._error(status, body)
                if number == tries or not _again(status, error, after_s):
                    raise error
            await asyncio.sleep(max(_pause_s(number), after_s or 0))
        raise AssertionError("the last try returns or raises")

    async def events(
        self, request: Request, reconnect_s: float, connected: Connected | None = None, last_id: str = ""
    ) -> AsyncGenerator[Event, None]:
        """An endless stream of events. After a lost connection it resumes after the last event that was read.

        `connected` is called each time the stream is open; True ends it.

        The first connection may fail like any request. Later ones are retried for `reconnect_s` before the
        error is raised.
        """
        clock = asyncio.get_running_loop().time
        parser, number, was_connected = Parser(last_id), 0, False
        cut_at: float | None = None
        while True:
            try:
                async with self._listen(request, parser) as events:
                    was_connected, cut_at = True, None
                    if connected is not None and await connected():
                        return
                    async for event in events:
                        number = 0
                        yield event
                raise Unreachable(f"{self.url} ended the stream of events.")
            except DuetimeError as error:
                number += 1
                cut_at = clock() if cut_at is None else cut_at
                tired = clock() - cut_at > reconnect_s if was_connected else number >= self._tries
                if tired or not error.retryable:
                    raise
            await asyncio.sleep(_pause_s(number))

    @asynccontextmanager
    async def _listen(self, request: Request, parser: Parser) -> AsyncIterator[AsyncIterator[Event]]:
        """One connection to a stream of events. After it is entered, no event is missed."""
        headers = self._headers(request)
        if parser.last_id:
            headers["Last-Event-ID"] = parser.last_id
        parser.restart()
        head = self._opened().head(request.method, _target(request), headers)
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(self._opened().stream(head, CLIENT_SILENCE_S))
            except Exception as error:
                raise self._unreachable(error) from error
            if answer.lines is None:
                raise self._error(answer.status, answer.body)
            yield self._events(answer.lines, parser)

    async def _events(self, lines: asyncio.StreamReader, parser: Parser) -> AsyncIterator[Event]:
        while True:
            try:
                async with asyncio.timeout(CLIENT_SILENCE_S):
                    line = await lines.readline()
            except Exception as error:
                raise self._unreachable(error) from error
            if not line:
                return
            event = parser.line(line)
            if event is not None:
                yield event

    async def _once(self, head: bytes, body: bytes | None) -> tuple[int, float | None, bytes]:
        connections = self._opened()
        try:
            answer = await connections.ask(head, body, self._timeout_s)
        except Exception as error:
            raise self._unreachable(error) from error
        return answer.status, _seconds(answer.headers.get(b"retry-after")), answer.body

    def _opened(self) -> Connections:
        if self._connections is None:
            raise Closed("The client is closed.", hint=OPEN_HINT)
        return self._connections

    def _head(self, request: Request) -> bytes:
        place = request.method, request.path
        head = None if request.named else self._heads.get(place)
        if head is None:
            head = self._opened().head(request.method, _target(request), self._headers(request))
            if not request.named:
                self._heads[place] = head
        return head

    def read(self, answer: bytes, kind: type[T]) -> T:
        """Decode the body of a response. If it has another form, it comes from another program."""
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(
                f"{self.url} does not answer like a Duetime server: {error}.",
                hint="Is this the address of a Duetime server, and of this version or later?",
            ) from error

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"User-Agent": "duetime-client", "Accept": request.accept, **request.headers}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.write and request.named:
            headers["X-Duetime-Request-Id"] = f"{self._name}-{self._number()}"
        return headers

    def _error(self, status: int, body: bytes) -> DuetimeError:
        problem = problems.read(body)
        if problem is None:
            return problems.error_of_text(status, self.url, body)
        return problems.error_of(problem)

    def _unreachable(self, error: Exception) -> Exception:
        """Duetime's error for a failed connection. Other exceptions are bugs and are not converted."""
        if not isinstance(error, TimeoutError | OSError):
            return error
        if isinstance(error, ssl.SSLError):
            refused = Unreachable(
                f"{self.url} does not support TLS or has an untrusted certificate: {error}."
            )
            refused.retryable = False  # a retry would get the same certificate
            refused.hint = "Check the address; SSL_CERT_FILE names further authorities."
            return refused
        return Unreachable(
            f"{self.url} cannot be reached: {_reason(error)}.",
            hint=f"Is `duetime serve` running at {self.url}?",
            url=self.url,
        )


def _reason(error: Exception) -> str:
    """The reason why a connection failed, from the operating system."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    number = _NUMBER.search(str(error))  # for a name with several addresses, the first reason
    if number is not None:
        return os.strerror(int(number.group(1))).lower()
    return (str(error) or type(error).__name__).rstrip(".")


def _again(status: int, error: DuetimeError, after_s: float | None) -> bool:
    """Whether an error response asks to retry soon."""
    if status not in NOT_NOW or not error.retryable:
        return False
    if status == 429 and after_s is None:
        return False  # without a delay, the caller decides
    return after_s is None or after_s <= CLIENT_RETRY_AFTER_S_MAX


def _pause_s(number: int) -> float:
    """The back-off, with jitter, so that clients do not retry at the same time."""
    longer: float = CLIENT_RETRY_S * 2 ** min(number - 1, 10)
    return min(longer, CLIENT_RETRY_S_MAX) * random.uniform(0.8, 1.2)


def _target(request: Request) -> str:
    return f"{request.path}?{urlencode(request.query)}" if request.query else request.path


def _seconds(header: bytes | None) -> float | None:
    """`Retry-After` in seconds. A date is ignored."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        return CLIENT_RETRY_AFTER_S_MAX + 1
