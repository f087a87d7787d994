"""Sends new intents to a server: one by one, gathered from concurrent callers, or in bulk.

A single caller sends immediately. Callers that arrive while a response is awaited share the next request,
like a group commit: sixty callers cost a server little more than one. Each caller gets its own result. If a
request fails as a whole, each intent in it is sent again alone and gets its own error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from duetime.bounded_cache import BoundedCache
from duetime.client.http.problems import error_of
from duetime.client.http.transport import NOT_NOW, Request, Transport
from duetime.client.remote import translate
from duetime.errors import DuetimeError, IdExists, Unreachable
from duetime.limits import SUBMIT_BYTES_MAX, SUBMIT_ITEMS_MAX, SUBMIT_REQUESTS_MAX, SUBMIT_TERMS_KEPT
from duetime.protocol.intent import Intent, Item, Status
from duetime.protocol.terms import Terms
from duetime.refusals import Submitted
from duetime.wire.problem import Problem

# The approximate size of an intent without its payload.
_HEAD_BYTES = 512
# The number of intents that are encoded before the event loop gets a turn.
_STEP = 100
# The caller knows the fields of its intent; the response needs only the id.
_BRIEF = {"Prefer": "return=minimal"}

_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class _Named(Struct, rename="camel"):
    """The fields of a response that are used."""

    intent_id: str


class _Made(Struct):
    """The result of one intent of a batch."""

    intent: _Named | None = None
    error: Problem | None = None


class _Batch(Struct):
    items: list[_Made]


class _Waiting(Struct, eq=False):
    """An intent that waits for the next request."""

    terms: Terms
    item: Item
    body: bytes
    reply: asyncio.Future[Intent]


class Submits:
    """Sends new intents to one server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._texts = BoundedCache[int, tuple[Terms, bytes]](SUBMIT_TERMS_KEPT)
        self._waiting: deque[_Waiting] = deque()
        self._out = 0
        self._going = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def one(self, terms: Terms, item: Item, asked_ms: int) -> Intent:
        """Submit one intent. A refusal is raised."""
        body = self._body(terms, item, asked_ms)
        if self._out or self._waiting:
            return await self._in_company(terms, item, body)
        self._out += 1
        try:
            return await self._alone(terms, item, body)
        finally:
            self._out -= 1
            self._go_soon()

    async def many(self, terms: Sequence[Terms], items: Iterable[Item], asked_ms: int) -> list[Submitted]:
        """Submit many intents, in order. The next request is encoded while the server processes the one
        before, and a response is read while it processes the next."""
        replies: list[Submitted] = []
        sent: asyncio.Task[bytes] | None = None
        before: list[Item] = []
        try:
            for part in parts(items, _size):
                request = await self._written(terms, part, asked_ms)
                answer = await sent if sent is not None else None
                sent = asyncio.create_task(self._transport.send(request))
                if answer is not None:
                    await asyncio.sleep(0)  # the next request is sent first
                    replies += self._replies(terms, before, answer)
                before = part
            if sent is not None:
                replies += self._replies(terms, before, await sent)
        finally:
            if sent is not None:
                sent.cancel()
        return replies

    async def bodies(self, bodies: Iterable[bytes]) -> list[DuetimeError | None]:
        """Submit encoded intents. Returns the error of each, or None."""
        said: list[DuetimeError | None] = []
        for part in parts(bodies, len):
            batch = self._transport.read(await self._transport.send(_batch(part)), _Batch)
            said += [None if each.error is None else error_of(each.error) for each in batch.items]
        return said

    # One.

    async def _alone(self, terms: Terms, item: Item, body: bytes) -> Intent:
        request = Request("POST", "/v1/intents", body=body, named=not _names_itself(item))
        try:
            answer = await self._transport.send(request)
        except IdExists:
            if not item.fresh:
                raise
            # Only this client generates this id: an earlier attempt arrived, but its response was lost.
            return _taken(item.id, terms, item)
        return _taken(self._transport.read(answer, _Named).intent_id, terms, item)

    async def _in_company(self, terms: Terms, item: Item, body: bytes) -> Intent:
        reply: asyncio.Future[Intent] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(terms, item, body, reply))
        self._go_soon()
        return await reply

    def _go_soon(self) -> None:
        """Send at the end of this turn of the event loop, so that all concurrent callers are included."""
        if self._waiting and not self._going and self._out < SUBMIT_REQUESTS_MAX:
            self._going = True
            asyncio.get_running_loop().call_soon(self._go)

    def _go(self) -> None:
        self._going = False
        together: list[_Waiting] = []
        size = 0
        while self._waiting and len(together) < SUBMIT_ITEMS_MAX:
            size += len(self._waiting[0].body)
            if together and size > SUBMIT_BYTES_MAX:
                break
            waiting = self._waiting.popleft()
            if not waiting.reply.done():  # the caller was cancelled
                together.append(waiting)
        if together:
            self._out += 1
            task = asyncio.get_running_loop().create_task(self._together(together))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _together(self, together: list[_Waiting]) -> None:
        try:
            if len(together) == 1:
                await self._settle_alone(together[0])
            else:
                await self._settle(together)
        finally:
            self._out -= 1
            self._go_soon()
            for each in together:
                if not each.reply.done():
                    each.reply.cancel()  # the app was closed

    async def _settle(self, together: list[_Waiting]) -> None:
        try:
            named = not all(_names_itself(each.item) for each in together)
            request = _batch([each.body for each in together], named)
            batch = self._transport.read(await self._transport.send(request), _Batch)
        except Unreachable as error:
            for each in together:
                _fail(each, error)
            return
        except DuetimeError:
            await asyncio.gather(*map(self._settle_alone, together))
            return
        again = []
        for each, made in zip(together, batch.items, strict=True):
            if made.intent is not None:
                _settle(each, made.intent.intent_id)
                continue
            assert made.error is not None, "a batch has a result for each intent"
            problem = error_of(made.error)
            if isinstance(problem, IdExists) and each.item.fresh:
                _settle(each, each.item.id)  # an earlier attempt of this request arrived
            elif made.error.status in NOT_NOW:
                again.append(each)
            else:
                _fail(each, problem)
        await asyncio.gather(*map(self._settle_alone, again))

    async def _settle_alone(self, waiting: _Waiting) -> None:
        try:
            reply = await self._alone(waiting.terms, waiting.item, waiting.body)
        except Exception as error:
            _fail(waiting, error)
        else:
            if not waiting.reply.done():
                waiting.reply.set_result(reply)

    # Many.

    async def _written(self, terms: Sequence[Terms], items: Sequence[Item], asked_ms: int) -> Request:
        bodies: list[bytes] = []
        for place, item in enumerate(items):
            if not place % _STEP:
                await asyncio.sleep(0)  # the request before is sent in the meantime
            bodies.append(self._body(terms[item.terms], item, asked_ms))
        return _batch(bodies, not all(map(_names_itself, items)))

    def _replies(self, terms: Sequence[Terms], items: Sequence[Item], answer: bytes) -> list[Submitted]:
        batch = self._transport.read(answer, _Batch)
        replies: list[Submitted] = []
        for item, made in zip(items, batch.items, strict=True):
            if made.intent is not None:
                replies.append(_taken(made.intent.intent_id, terms[item.terms], item))
                continue
            assert made.error is not None, "a batch has a result for each intent"
            error = error_of(made.error)
            if isinstance(error, IdExists) and item.fresh:
                replies.append(_taken(item.id, terms[item.terms], item))
            else:
                replies.append(error)
        return replies

    def _body(self, terms: Terms, item: Item, asked_ms: int) -> bytes:
        """The JSON of an intent. The part from its terms is cached."""
        kept = self._texts.get(id(terms))
        if kept is None:
            kept = terms, _encode(translate.terms_fields(terms))[:-1] + b","
            self._texts.keep(id(terms), kept)
        return kept[1] + _encode(translate.item_fields(item, asked_ms))[1:]


def parts(things: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """The intents in order, in parts that each fit one request."""
    part: list[T] = []
    size = 0
    for thing in things:
        more = size_of(thing)
        if len(part) >= SUBMIT_ITEMS_MAX or (part and size + more > SUBMIT_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(thing)
        size += more
    if part:
        yield part


def _size(item: Item) -> int:
    return len(item.payload) + _HEAD_BYTES


def _batch(bodies: Sequence[bytes], named: bool = True) -> Request:
    body = b"[" + b",".join(bodies) + b"]"
    return Request("POST", "/v1/intents/batch", body=body, headers=_BRIEF, named=named)


def _taken(id: str, terms: Terms, item: Item) -> Intent:
    """An intent on the server, of which only the id is known here."""
    at_ms = item.execute_at_ms
    return Intent(0, id, terms, item.payload, Status.SCHEDULED, at_ms, at_ms, 0, 0)


def _names_itself(item: Item) -> bool:
    """Whether the id alone makes it safe to repeat: a second intent with the id is refused. With a key or a
    tie, the server may answer before it checks the id."""
    return item.fresh and item.key is None and item.ties is None


def _settle(waiting: _Waiting, id: str) -> None:
    if not waiting.reply.done():
        waiting.reply.set_result(_taken(id, waiting.terms, waiting.item))


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.reply.done():
        waiting.reply.set_exception(error)
