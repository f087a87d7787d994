"""Consumers of deliveries: their names, and what they ask of the engine.

The kernel checks outcomes by the names of consumers, so clients cannot choose them. A name has three parts:
the name that the client gave, a mark of its token, and random digits. Every connection and every claim has
its own name, which is never reused.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Iterable
from typing import Any

from duetime.engine.admission.commands import resolver
from duetime.engine.engine import Engine
from duetime.errors import DuetimeError, InvalidField, LogUnavailable
from duetime.limits import CONSUMER_CHARS_MAX, EARLIER_NAMES_MAX, LEAVE_RETRY_S
from duetime.protocol.command import Command, Leave
from duetime.protocol.outcome import Settlement
from duetime.protocol.reply import Answer
from duetime.protocol.terms import AckLevel

_logger = logging.getLogger("duetime.api")

_MARK_BYTES = 4
_RANDOM_BYTES = 6
# In the names of claims, where other names have a hexadecimal digit.
_CLAIM = "h"


def new_name(consumer: str, token_hash: str) -> str:
    """A name for a connection with the token of this hash (empty: no token was required).

    A client that reconnects gets a new name. It can still settle the deliveries of its earlier connections:
    it sends their names, and the mark proves that they had the same token.
    """
    return _name(consumer, _mark(token_hash))


def own_names(names: Iterable[str], token_hash: str) -> tuple[str, ...]:
    """Those of the names that belong to this token; only the newest if there are too many."""
    mark = _mark(token_hash)
    return tuple(name for name in names if name.rpartition("~")[2].startswith(mark))[-EARLIER_NAMES_MAX:]


def claim_name(consumer: str, token_hash: str) -> str:
    """A name for a claim."""
    return _name(consumer, _mark(token_hash) + _CLAIM)


def is_own_claim(name: str, consumer: str, token_hash: str) -> bool:
    """Whether a claim was made by this consumer, with this token."""
    own, _, rest = name.rpartition("~")
    return own == consumer and rest.startswith(_mark(token_hash) + _CLAIM)


def _name(consumer: str, marks: str) -> str:
    if not (1 <= len(consumer) <= CONSUMER_CHARS_MAX and consumer.isprintable()):
        raise InvalidField(f"A consumer's name has 1 to {CONSUMER_CHARS_MAX} printable characters.")
    return f"{consumer}~{marks}{secrets.token_hex(_RANDOM_BYTES)}"


def _mark(token_hash: str) -> str:
    return hashlib.blake2b(token_hash.encode(), digest_size=_MARK_BYTES).hexdigest()


async def ask(engine: Engine, command: Command, ack: AckLevel = AckLevel.ASYNC) -> Any:
    """Hand in a command of a consumer, and wait until it is applied."""
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    engine.request(command, ack, resolver(future), 512)
    return await future


async def count(engine: Engine, settlements: list[Settlement]) -> list[bool]:
    """Submit outcomes, and report which of them counted."""
    future: asyncio.Future[list[bool]] = asyncio.get_running_loop().create_future()
    engine.settle(settlements, resolver(future))
    try:
        return await future
    except LogUnavailable:
        # The log is full: the engine keeps them and writes them later; the result is unknown.
        return [True] * len(settlements)


def leave(engine: Engine, name: str) -> None:
    """Notify the engine that a consumer has left; retry while its log is full."""

    def reply(answer: Answer | Exception) -> None:
        if isinstance(answer, LogUnavailable):
            asyncio.get_running_loop().call_later(LEAVE_RETRY_S, leave, engine, name)
        elif isinstance(answer, Exception) and not isinstance(answer, DuetimeError):
            _logger.error("%r disconnected, but the engine could not record it.", name, exc_info=answer)

    engine.request(Leave(name), AckLevel.ASYNC, reply)
