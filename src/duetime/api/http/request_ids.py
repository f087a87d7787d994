"""`X-Duetime-Request-Id`: a repeated write gets the first response and has no second effect.

A request id belongs to its token: the same id with another token is another request.

Responses are kept in memory for 15 minutes, and only the newest ones. After a restart the engine still
recognizes a repeated request: commands contain the request id, and the intent stores it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b

from duetime.api.access.quotas import bearer
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.clock import Clock
from duetime.errors import InvalidField, KeyReused
from duetime.limits import ANSWERS_KEPT, ANSWERS_KEPT_BYTES_MAX, KEY_CHARS_MAX, REQUEST_ID_MS

# The separator between token and id, which an id cannot contain; and the used length of the token's hash.
_BY = "\n"
_TOKEN_CHARS = 16


class _Kept:
    __slots__ = ("answer", "at_ms", "said")

    def __init__(self, said: bytes, at_ms: int) -> None:
        self.said = said
        self.at_ms = at_ms
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()


class Repeats:
    """The responses by request id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    async def once(self, call: Call, handler: Callable[[Call], Awaitable[Answer]]) -> Answer:
        """The response to this call: the stored one, or a new one."""
        id = request_id(call)
        if id is None:
            return await handler(call)
        said = blake2b(
            b"\0".join((call.method.encode(), call.path.encode(), call.head.query, call.body)),
            digest_size=16,
        ).digest()
        now_ms = self._clock.now_ms()
        self._forget(now_ms)
        known = self._kept.get(id)
        if known is not None:
            if known.said != said:
                own = id.rpartition(_BY)[2]
                raise KeyReused(f"The request id {own!r} was used before for another request.")
            answer = await asyncio.shield(known.answer)
            return Answer(
                answer.body,
                answer.status,
                [*answer.headers, (b"idempotent-replayed", b"true")],
                answer.media_type,
            )
        kept = self._kept[id] = _Kept(said, now_ms)
        try:
            answer = await handler(call)
        except BaseException as error:
            # Refused or failed: nothing was done, so the same request may be tried again.
            if self._kept.get(id) is kept:
                del self._kept[id]
            if not kept.answer.done():
                kept.answer.set_exception(error)
                kept.answer.exception()  # there may be no other waiter
            raise
        self._bytes += len(answer.body)
        kept.answer.set_result(answer)
        return answer

    def _forget(self, now_ms: int) -> None:
        while self._kept:
            id, oldest = next(iter(self._kept.items()))
            young = now_ms - oldest.at_ms < REQUEST_ID_MS
            if not oldest.answer.done() or (
                young and len(self._kept) < ANSWERS_KEPT and self._bytes < ANSWERS_KEPT_BYTES_MAX
            ):
                return
            del self._kept[id]
            if oldest.answer.exception() is None:
                self._bytes -= len(oldest.answer.result().body)


def request_id(call: Call) -> str | None:
    """The key of a request: the id from its client and, if tokens are required, its token."""
    id = call.header(b"x-duetime-request-id")
    if id is None:
        return None
    if not (1 <= len(id) <= KEY_CHARS_MAX and id.isprintable()):
        raise InvalidField(f"X-Duetime-Request-Id must have 1 to {KEY_CHARS_MAX} printable characters.")
    token = bearer.get()
    return f"{token[:_TOKEN_CHARS]}{_BY}{id}" if token else id
