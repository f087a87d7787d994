"""`X-Duetime-Request-Id`: a write that is repeated gets the first one's answer, and is done once.

An id is its sender's own: the same one of another token names another request.

Answers are kept in memory for as long as the contract says, and the newest only. What must hold across a
restart is kept by the engine itself: commands carry the request's id, and the intent remembers it.
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
from duetime.limits import KEY_CHARS_MAX, REQUEST_ID_MS

# Answers kept at most, and their bytes: what is more than that is a flood, not a repetition.
_KEPT = 20_000
_BYTES = 64 * 1024 * 1024
# Between a token and an id, in which it cannot be; and as much of the hash of a token as is enough.
_BY = "\n"
_TOKEN_CHARS = 16


class _Kept:
    __slots__ = ("answer", "at_ms", "said")

    def __init__(self, said: bytes, at_ms: int) -> None:
        self.said = said
        self.at_ms = at_ms
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()


class Repeats:
    """Answers by the names of requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    async def once(self, call: Call, handler: Callable[[Call], Awaitable[Answer]]) -> Answer:
        """The answer to this call: made now, or made before."""
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
                kept.answer.exception()  # perhaps nobody else waits for it
            raise
        self._bytes += len(answer.body)
        kept.answer.set_result(answer)
        return answer

    def _forget(self, now_ms: int) -> None:
        while self._kept:
            id, oldest = next(iter(self._kept.items()))
            young = now_ms - oldest.at_ms < REQUEST_ID_MS
            if not oldest.answer.done() or (young and len(self._kept) < _KEPT and self._bytes < _BYTES):
                return
            del self._kept[id]
            if oldest.answer.exception() is None:
                self._bytes -= len(oldest.answer.result().body)


def request_id(call: Call) -> str | None:
    """What a request is known by: the id from its client and, where tokens are needed, whose it is."""
    id = call.header(b"x-duetime-request-id")
    if id is None:
        return None
    if not (1 <= len(id) <= KEY_CHARS_MAX and id.isprintable()):
        raise InvalidField(f"X-Duetime-Request-Id must have 1 to {KEY_CHARS_MAX} printable characters.")
    token = bearer.get()
    return f"{token[:_TOKEN_CHARS]}{_BY}{id}" if token else id
