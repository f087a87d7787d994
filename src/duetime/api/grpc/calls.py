"""What every call shares: its token, its size, how many there may be, and its errors."""

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
"""A request and the id it was given, to an answer."""


class Unary:
    """One call with one answer."""

    def __init__(self, name: str, kind: type[Message], handler: Handler, role: Role | None) -> None:
        self.name = name
        self.kind = kind
        self.handler = handler
        self.role = role

    @property
    def writes(self) -> bool:
        return self.role is Role.submit


class Door:
    """Where calls come in."""

    def __init__(self, gate: Gate, load: Load, repeats: Repeats) -> None:
        self._gate = gate
        self._load = load
        self._repeats = repeats
        self.reading = Reading()
        self._unread = Places(GRPC_UNREAD_MAX, "calls without a message")
        """Calls without their message: they take no place of those that are answered."""

    def check(self, context: Context, role: Role) -> None:
        """Raise unless the token in the call's metadata allows it."""
        self._gate.check_token(token_of(context), role)

    async def message(self, context: Context) -> bytes:
        """The first message of a call whose token is known."""
        with self._unread.one(bearer.get()):
            return await self.reading.one(context)

    def behaviour(self, unary: Unary) -> Callable[[object, Context], Awaitable[bytes]]:
        """What grpc calls, when the headers are there and before the message is read."""

        async def call(requests: object, context: Context) -> bytes:
            try:
                return await self._answer(unary, context)
            except Exception as error:
                if isinstance(error, DuetimeError):
                    self._load.refused(error)
                await refuse(context, error, unary.name)

        return call

    async def _answer(self, unary: Unary, context: Context) -> bytes:
        if unary.role is None:  # health is asked under any load
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
        """A write: repeated with the id of the first, it is done once."""
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
    """The call as the HTTP side sees one, so that both share what they remember of requests."""
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
