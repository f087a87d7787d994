"""Cutting things up: a submit into chunks, an answer into shares, effects into now and later; and replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from duetime.engine.inbox import Batch, item_bytes
from duetime.engine.options import Options
from duetime.engine.pump import Turn
from duetime.kernel.kernel import Answer
from duetime.kernel.state import State
from duetime.limits import BATCH_BYTES_MAX
from duetime.protocol.command import Command, Configure, Resize, Start
from duetime.protocol.effect import Deliver, Effect
from duetime.protocol.intent import Item
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


def chunks(items: tuple[Item, ...]) -> list[tuple[tuple[Item, ...], int]]:
    """Parts of a large submit that each fit a frame, with their bytes."""
    found: list[tuple[tuple[Item, ...], int]] = []
    start = size = 0
    for place, item in enumerate(items):
        more = item_bytes(item)
        if place - start >= CHUNK_ITEMS or (size + more > CHUNK_BYTES and place > start):
            found.append((items[start:place], size))
            start, size = place, 0
        size += more
    found.append((items[start:], size))
    return found


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
