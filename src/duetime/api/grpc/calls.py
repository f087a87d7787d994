"""Common to all gRPC calls: the token, the limits of size and number, and errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.message import Message

from duetime.api.access.auth import Gate, Role
from duetime.api.access.call_slots import Places
from duetime.api.access.quotas import bearer
from duetime.api.grpc.errors import Context, refuse
from duetime.api.grpc.reading import Reading, read
from duetime.api.http.endpoint import Call, Load
from duetime.api.http.exchange import Answer, Head
from duetime.api.http.request_ids import Repeats, request_id
from duetime.errors import DuetimeError
from duetime.limits import GRPC_UNREAD_MAX
from duetime.v1.stub import SERVICE

Handler = Callable[[Any, str | None], Awaitable[Message]]
"""Takes a request and its request id, returns the response."""


class Unary:
    """One unary call."""

    def __init__(self, name: str, kind: type[Message], handler: Handler, role: Role | None) -> None:
        self.name = name
        self.kind = kind
        self.handler = handler
        self.role = role

    @property
    def writes(self) -> bool:
        return self.role is Role.submit


class Door:
    """Admits calls."""

    def __init__(self, gate: Gate, load: Load, repeats: Repeats) -> None:
        self._gate = gate
        self._load = load
        self._repeats = repeats
        self.reading = Reading()
        self._unread = Places(GRPC_UNREAD_MAX, "calls without a message")
        """Calls with an unread message. They are counted separately from running calls."""

    def check(self, context: Context, role: Role) -> None:
        """Raise unless the token in the metadata has the role."""
        self._gate.check_token(token_of(context), role)

    async def message(self, context: Context) -> bytes:
        """The first message of a call with a valid token."""
        with self._unread.one(bearer.get()):
            return await self.reading.one(context)

    def behaviour(self, unary: Unary) -> Callable[[object, Context], Awaitable[bytes]]:
        """The handler for grpc. It runs when the headers have arrived, before the message is read."""

        async def call(requests: object, context: Context) -> bytes:
            try:
                return await self._answer(unary, context)
            except Exception as error:
                if isinstance(error, DuetimeError):
                    self._load.refused(error)
                await refuse(context, error, unary.name)

        return call

    async def _answer(self, unary: Unary, context: Context) -> bytes:
        if unary.role is None:  # health must be available under any load
            return await self._handled(unary, await self.reading.stranger(context), context)
        self.check(context, unary.role)
        load, token = self._load, bearer.get()
        load.check(token)
        body = await self.message(context)
        with load.one(token):
            return await self._handled(unary, body, context)

    async def _handled(self, unary: Unary, body: bytes, context: Context) -> bytes:
        request = read(unary.kind, body)
        if not unary.writes:
            return (await unary.handler(request, None)).SerializeToString()
        return await self._once(unary, request, body, context)

    async def _once(self, unary: Unary, request: Message, body: bytes, context: Context) -> bytes:
        """Run a write. A repetition with the same request id has no second effect."""
        call = _as_call(unary, body, context)

        async def handle(call: Call) -> Answer:
            return Answer((await unary.handler(request, request_id(call))).SerializeToString())

        answer = await self._repeats.once(call, handle)
        if answer.headers:
            context.set_trailing_metadata(
                tuple((name.decode(), value.decode()) for name, value in answer.headers)
            )
        return answer.body


def _as_call(unary: Unary, body: bytes, context: Context) -> Call:
    """The call in the form of an HTTP call, so that both share the stored responses of request ids."""
    id = header(context, "x-duetime-request-id")
    headers = [] if id is None else [(b"x-duetime-request-id", id.encode())]
    return Call(Head("GRPC", f"/{SERVICE}/{unary.name}", b"", headers), body)


def header(context: Context, name: str) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == name:
            return value if isinstance(value, str) else value.decode("latin-1")
    return None


def token_of(context: Context) -> str | None:
    token = header(context, "x-duetime-token")
    if token is not None:
        return token
    bearer = header(context, "authorization")
    return bearer[7:].strip() if bearer is not None and bearer[:7].lower() == "bearer " else None
