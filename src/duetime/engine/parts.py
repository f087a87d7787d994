"""Cutting things up: a submit into chunks, an answer into shares, effects into now and later; and replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from duetime.engine.inbox import Batch, item_bytes
from duetime.engine.options import Options
from duetime.engine.pump import Turn
from duetime.kernel.kernel import Answer
from duetime.kernel.state import State
from duetime.limits import BATCH_BYTES_MAX
from duetime.protocol.command import Command, Configure, Resize, Start
from duetime.protocol.effect import Deliver, Effect
from duetime.protocol.intent import DISPATCHING, Item
from duetime.protocol.terms import AckLevel, Guarantee

# Intents of one submit that are written together, and their bytes.
CHUNK_ITEMS = 1_000
CHUNK_BYTES = BATCH_BYTES_MAX // 2


def first_batch(state: State, options: Options) -> Batch:
    """What a new writer says first: its epoch, and what the configuration changed."""
    commands: list[Command] = [Start(state.epoch + 1)]
    if state.settings != options.settings:
        commands.append(Configure(options.settings))
    for tier, permits in enumerate(options.permits):
        if state.tiers.all[tier].max != permits:
            commands.append(Resize(tier, permits))
    return Batch(commands, [[] for _ in commands], AckLevel.DURABLE, [])


class Chunk(Struct, frozen=True):
    """A part of a large submit that fits a frame: its intents, and which of the submit's terms they use."""

    items: tuple[Item, ...]
    """Each with the place of its terms in `terms`."""
    terms: tuple[int, ...]
    bytes: int


def chunks(terms_bytes: Sequence[int], items: tuple[Item, ...]) -> list[Chunk]:
    """Parts of a large submit, in order. The terms that a part uses count as well as its intents."""
    if len(terms_bytes) == 1 and len(items) <= CHUNK_ITEMS:  # as nearly always
        whole = sum(map(item_bytes, items)) + terms_bytes[0]
        if whole <= CHUNK_BYTES:
            return [Chunk(items, (0,), whole)]
    found: list[Chunk] = []
    places: dict[int, int] = {}
    start = size = 0
    for place, item in enumerate(items):
        more = item_bytes(item) + (0 if item.terms in places else terms_bytes[item.terms])
        if place - start >= CHUNK_ITEMS or (size + more > CHUNK_BYTES and place > start):
            found.append(_chunk(items[start:place], places, size))
            start, size, places = place, 0, {}
            more = item_bytes(item) + terms_bytes[item.terms]
        places.setdefault(item.terms, len(places))
        size += more
    found.append(_chunk(items[start:], places, size))
    return found


def _chunk(items: tuple[Item, ...], places: dict[int, int], size: int) -> Chunk:
    if any(old != new for old, new in places.items()):
        items = tuple(replace(item, terms=places[item.terms]) for item in items)
    return Chunk(items, tuple(places), size)


def split(turn: Turn) -> tuple[list[Effect], list[Effect]]:
    """Effects that may go now, and those that must wait until their record is on the medium: deliveries
    at most once, and those of intents whose own DURABLE submit is in this batch."""
    durable = turn.batch.ack >= AckLevel.DURABLE
    now: list[Effect] = []
    later: list[Effect] = []
    for effect in turn.effects:
        if type(effect) is Deliver:
            terms = effect.terms
            if terms.guarantee is Guarantee.AT_MOST_ONCE or (durable and terms.ack >= AckLevel.DURABLE):
                later.append(effect)
                continue
        now.append(effect)
    return now, later


def is_out(state: State, effect: Effect) -> bool:
    """Whether a delivery that waited for the medium is still wanted: it may be cancelled by now."""
    intent = state.store.get(effect.id)
    return intent is not None and intent.status is DISPATCHING and intent.delivery == effect.delivery


def resolver(future: asyncio.Future[Any]) -> Callable[[Answer | Exception], None]:
    """A reply that ends a future."""

    def reply(answer: Answer | Exception) -> None:
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    return reply
