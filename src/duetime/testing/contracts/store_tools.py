"""Intents and checkpoints for testing a store, and the operations of the kernel on a store."""

from __future__ import annotations

from typing import Any

import msgspec

from duetime.protocol.checkpoint import Checkpoint, Marks
from duetime.protocol.command import Settings
from duetime.protocol.intent import ACKED, SCHEDULED, Intent, Rare, Status, Ties
from duetime.protocol.terms import Claim, Task, Terms
from duetime.store.store import Store

TERMS = Terms(Task("work"), "task:default")
OTHER = Terms(Task("work", "other"), "task:other")
NEVER = 10**13


def make(
    seq: int, wake_at_ms: int = 0, *, key: str | None = None, claim: Claim | None = None, **fields: Any
) -> Intent:
    """An intent named by its seq."""
    fields = {
        "id": f"i{seq}",
        "terms": TERMS,
        "payload": b"",
        "status": SCHEDULED,
        "execute_at_ms": wake_at_ms,
        "created_at_ms": 1_000,
        "updated_at_ms": 1_000,
        **fields,
    }
    rare = Rare(key, ties=None if claim is None else Ties(claim)) if key or claim else None
    return Intent(seq=seq, wake_at_ms=wake_at_ms, rare=rare, **fields)


def put(store: Store, *intents: Intent) -> None:
    """Add as the kernel does."""
    for intent in intents:
        store.add(intent)
        _defer(store, intent)


def change(store: Store, intent: Intent, **fields: Any) -> Intent:
    """Change as the kernel does."""
    store.touch(intent)
    for name, value in fields.items():
        setattr(intent, name, value)
    intent.revision += 1
    _defer(store, intent)
    return intent


def _defer(store: Store, intent: Intent) -> None:
    if intent.wake_at_ms and (intent.wake_at_ms, intent.seq) > store.edge:
        store.defer(intent)


def end(store: Store, intent: Intent, ended: int, at_ms: int, status: Status = ACKED) -> Intent:
    return change(store, intent, status=status, ended=ended, finished_at_ms=at_ms, wake_at_ms=0)


def moment(position: int, marks: Marks | None = None) -> Checkpoint:
    """A checkpoint of which only the position and the marks matter."""
    return Checkpoint(
        position=position, records=position, at_ms=position, latest_ms=position, epoch=1, seq=position,
        ended=0, settings=Settings(), marks=marks if marks is not None else Marks(), permits=(1,) * 5,
        counts=(0,) * 8, pending={"task:default": 3}, paused=("x",), consumers=(), turns={"s": ("w",)},
    )  # fmt: skip


def save(store: Store, position: int = 1, marks: Marks | None = None) -> None:
    """Write a complete checkpoint."""
    for job in store.checkpoint(moment(position, marks)):
        job()


def text(intent: Intent | None) -> bytes:
    """An intent as bytes, without the fields that have no meaning on disk."""
    if intent is None:
        return b""
    copy = msgspec.structs.replace(intent, armed=0, cycle=0)
    return msgspec.msgpack.encode(copy)


def ids(intents: list[Intent]) -> list[str]:
    return [intent.id for intent in intents]


def got(store: Store, id: str) -> Intent:
    intent = store.get(id)
    assert intent is not None, f"{id!r} is not there"
    return intent
