"""The entry for new intents: one by one, on the shortest path, or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from duetime.engine.catalog import Catalog, Known
from duetime.engine.checkpointer import Checkpointer
from duetime.engine.guard import Guard
from duetime.engine.inbox import Inbox, Single, item_bytes
from duetime.engine.parts import CHUNK_ITEMS, Chunk, chunks, resolver
from duetime.engine.reader import Reader
from duetime.errors import Closed, DuetimeError
from duetime.kernel.kernel import Answer
from duetime.limits import LARGE_PAYLOAD_BYTES
from duetime.protocol.command import Command, Submit
from duetime.protocol.intent import Intent, Item
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.terms import AckLevel, Terms
from duetime.refusals import Submitted, error_of

# Intents cut into chunks in one go: some milliseconds of work.
_CUT = 10 * CHUNK_ITEMS


class Intake(Reader):
    """Takes new intents. A subclass provides the parts named here."""

    guard: Guard
    _catalog: Catalog
    _checkpointer: Checkpointer
    _closing: bool
    _failure: Exception | None
    _inbox: Inbox
    _loop: asyncio.AbstractEventLoop

    def request(
        self, command: Command, ack: AckLevel, reply: Callable[[Answer | Exception], None], size: int = 128
    ) -> None:
        raise AssertionError("the engine has the way in")

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any:
        raise AssertionError("the engine has the way in")

    def submit(
        self, terms: tuple[Terms, ...], items: Iterable[Item], ack: AckLevel
    ) -> Awaitable[list[Submitted]]:
        """New intents; one reply for each. Refused before anything is written, where that is known."""
        items = tuple(items)
        if len(items) == len(terms) == 1:
            return _listed(self.submit_one(terms[0], items[0], ack))
        self._kernel()
        self.guard.admit(terms, len(items))
        payloads = [len(item.payload) for item in items]
        if max(payloads, default=0) >= LARGE_PAYLOAD_BYTES:
            self.guard.admit_large(sum(size for size in payloads if size >= LARGE_PAYLOAD_BYTES))
        now_ms = self.now_ms()
        late_ms = [self.guard.late_ms(each, now_ms) for each in terms]
        for item in items if any(late_ms) else ():
            if item.execute_at_ms < now_ms + late_ms[item.terms]:
                self.guard.refuse_late(terms[item.terms], late_ms[item.terms])
        known = [self._catalog.find(each) for each in terms]
        return self._submit_many(known, items, ack)

    def submit_one(self, terms: Terms, item: Item, ack: AckLevel) -> asyncio.Future[Submitted]:
        """One new intent; its `terms` is 0. Intents that arrive together are written together."""
        lanes = self._kernel().state.lane_settings
        if self._closing:
            raise Closed("The engine is not running.")
        known = self._catalog.find(terms)
        self.guard.admit_one(known)
        if len(item.payload) >= LARGE_PAYLOAD_BYTES:
            self.guard.admit_large(len(item.payload))
        late_ms = self.guard.late_ms(terms, now_ms := self.now_ms())
        if late_ms and item.execute_at_ms < now_ms + late_ms:
            self.guard.refuse_late(terms, late_ms)
        future: asyncio.Future[Submitted] = self._loop.create_future()
        single = Single(known.terms, item, ack, future, known.bytes + item_bytes(item))
        if lanes and (settings := lanes.get(terms.lane)) is not None and settings.order:
            self.expecting.one(settings.order, single, self._put)
        else:
            self._inbox.put(single)
        return future

    def _put(self, single: Single) -> None:
        """Hand in an intent that waited for its prediction, unless the engine stopped in the meantime."""
        if self._failure is not None:
            single.reply(self._failure)
        else:
            self._inbox.put(single)

    async def _submit_many(
        self, known: list[Known], items: tuple[Item, ...], ack: AckLevel
    ) -> list[Submitted]:
        await self._checkpointer.catch_up()
        lanes = self._kernel().state.lane_settings
        if lanes:
            items = await self.expecting.many(lanes, tuple(each.terms for each in known), items)
        # In sequence, each would wait for the one before; all at once keeps the order and fills the batches.
        parts: list[Chunk] = []
        for start in range(0, len(items), _CUT):
            parts += chunks([each.bytes for each in known], items[start : start + _CUT])
            if len(items) > _CUT:
                await asyncio.sleep(0)  # tidy: let others have their turn
        answers = await asyncio.gather(
            *(self._submit_chunk(known, part, ack) for part in parts), return_exceptions=True
        )
        if all(isinstance(answer, BaseException) for answer in answers):
            raise cast(BaseException, answers[0])
        submitted: list[Submitted] = []
        for part, answer in zip(parts, answers, strict=True):
            if isinstance(answer, DuetimeError):  # other chunks are on the log: only these items have failed
                submitted += [answer] * len(part.items)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                submitted += [error_of(each) if isinstance(each, Refusal) else each for each in answer]
        return submitted

    def _submit_chunk(
        self, known: list[Known], part: Chunk, ack: AckLevel
    ) -> asyncio.Future[list[Intent | Existing | Refusal]]:
        future: asyncio.Future[Any] = self._loop.create_future()
        terms = tuple(known[place].terms for place in part.terms)
        self.request(Submit(terms, part.items), ack, resolver(future), part.bytes)
        return future


async def _listed(future: asyncio.Future[Submitted]) -> list[Submitted]:
    return [await future]
