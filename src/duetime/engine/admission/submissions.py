"""The entry for new intents: one by one, on the shortest path, or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from duetime.clock import Clock
from duetime.engine.admission.catalog import Catalog, KnownTerms
from duetime.engine.admission.chunks import Chunk, chunks
from duetime.engine.admission.commands import Commands, resolver
from duetime.engine.admission.guard import Guard
from duetime.engine.durability.checkpointer import Checkpointer
from duetime.engine.phase import Phase
from duetime.engine.predictions.predictor import Predictor
from duetime.engine.shell.inbox import Inbox, Single, item_bytes
from duetime.errors import DuetimeError
from duetime.kernel.state import State
from duetime.limits import CHUNK_ITEMS_MAX, LARGE_PAYLOAD_BYTES
from duetime.protocol.command import Submit
from duetime.protocol.intent import Intent, Item
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.terms import AckLevel, Terms
from duetime.refusals import Submitted, error_of

# Intents cut into chunks in one go: some milliseconds of work.
_CUT = 10 * CHUNK_ITEMS_MAX


class Submissions:
    """Takes new intents, checks that there is room, and hands them to the inbox."""

    def __init__(
        self,
        state: State,
        phase: Phase,
        clock: Clock,
        commands: Commands,
        inbox: Inbox,
        guard: Guard,
        checkpointer: Checkpointer,
        predictor: Predictor,
    ) -> None:
        self._state = state
        self._phase = phase
        self._now_ms = clock.now_ms
        self._commands = commands
        self._inbox = inbox
        self._guard = guard
        self._checkpointer = checkpointer
        self._predictor = predictor
        self._catalog = Catalog()
        self._new_future: Callable[[], asyncio.Future[Any]] = _new_future

    def start(self) -> None:
        """The engine starts: all callers are on this loop from now on."""
        self._new_future = asyncio.get_running_loop().create_future

    def submit(
        self, terms: tuple[Terms, ...], items: Iterable[Item], ack: AckLevel
    ) -> Awaitable[list[Submitted]]:
        """New intents; one reply for each. Refused before anything is written, where that is known."""
        items = tuple(items)
        if len(items) == len(terms) == 1:
            return _listed(self.submit_one(terms[0], items[0], ack))
        self._phase.check()
        self._guard.admit(terms, len(items))
        payloads = [len(item.payload) for item in items]
        if max(payloads, default=0) >= LARGE_PAYLOAD_BYTES:
            self._guard.admit_large(sum(size for size in payloads if size >= LARGE_PAYLOAD_BYTES))
        now_ms = self._now_ms()
        late_ms = [self._guard.late_ms(each, now_ms) for each in terms]
        for item in items if any(late_ms) else ():
            if item.execute_at_ms < now_ms + late_ms[item.terms]:
                self._guard.refuse_late(terms[item.terms], late_ms[item.terms])
        known = [self._catalog.find(each) for each in terms]
        return self._submit_many(known, items, ack)

    def submit_one(self, terms: Terms, item: Item, ack: AckLevel) -> asyncio.Future[Submitted]:
        """One new intent; its `terms` is 0. Intents that arrive together are written together."""
        if not self._phase.accepts:
            raise self._phase.refusal()
        lanes = self._state.lane_settings
        known = self._catalog.find(terms)
        self._guard.admit_one(known)
        if len(item.payload) >= LARGE_PAYLOAD_BYTES:
            self._guard.admit_large(len(item.payload))
        late_ms = self._guard.late_ms(terms, now_ms := self._now_ms())
        if late_ms and item.execute_at_ms < now_ms + late_ms:
            self._guard.refuse_late(terms, late_ms)
        future: asyncio.Future[Submitted] = self._new_future()
        single = Single(known.terms, item, ack, future, known.bytes + item_bytes(item))
        if lanes and (settings := lanes.get(terms.lane)) is not None and settings.order:
            self._predictor.one(settings.order, single, self._put)
        else:
            self._inbox.put(single)
        return future

    def _put(self, single: Single) -> None:
        """Hand in an intent that waited for its prediction, unless the engine stopped in the meantime."""
        if self._phase.failure is not None:
            single.reply(self._phase.failure)
        else:
            self._inbox.put(single)

    async def _submit_many(
        self, known: list[KnownTerms], items: tuple[Item, ...], ack: AckLevel
    ) -> list[Submitted]:
        await self._checkpointer.catch_up()
        self._phase.check()
        lanes = self._state.lane_settings
        if lanes:
            items = await self._predictor.many(lanes, tuple(each.terms for each in known), items)
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
        self, known: list[KnownTerms], part: Chunk, ack: AckLevel
    ) -> asyncio.Future[list[Intent | Existing | Refusal]]:
        future = self._new_future()
        terms = tuple(known[place].terms for place in part.terms)
        self._commands.request(Submit(terms, part.items), ack, resolver(future), part.bytes)
        return future


def _new_future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def _listed(future: asyncio.Future[Submitted]) -> list[Submitted]:
    return [await future]
