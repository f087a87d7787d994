"""The rows of an outbox: intents that wait in the application's database until they are relayed.

The body of a row is the JSON of `POST /v1/intents`: people can read it, and so can later versions. Each row
gets an idempotency key when it is written, so a row that is sent several times creates one intent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from duetime.client.app.payload import encode
from duetime.client.app.task import Planned
from duetime.client.http import requests
from duetime.client.remote import translate
from duetime.errors import InvalidField
from duetime.json_types import Json
from duetime.limits import KEY_CHARS_MAX
from duetime.timefmt import iso

TABLE: Final = "duetime_outbox"
_MADE: Final = re.compile(r"([0-9a-f]{11})-[0-9a-f]{8}")


class NewRow(Struct, frozen=True):
    """A row to insert."""

    name: str
    """The id of the intent; or the idempotency key, if the caller gave one."""
    key: str
    body: str
    created_ms: int


class Row(Struct, frozen=True):
    """A stored row."""

    id: int
    body: str


class Settled(Struct):
    """The results of sent rows: done (to delete), refused (with the reason), later (with the time)."""

    done: list[int]
    refused: list[tuple[int, str]]
    later: list[tuple[int, int]]


class Count(Struct, frozen=True):
    """The number of waiting and of refused rows."""

    waiting: int
    refused: int


class Rows(Protocol):
    """The table, for a relay. After `take`, call `settle` or `let_go`.

    If the database has row locks, taken rows are locked, so that several relays share the work. Otherwise two
    relays may send the same row; its idempotency key prevents a second intent.
    """

    async def take(self, count: int, now_ms: int) -> list[Row]:
        """The oldest rows that are not refused and whose retry time has passed."""
        ...

    async def settle(self, settled: Settled) -> None:
        """Store the results of the taken rows."""
        ...

    async def let_go(self) -> None:
        """Release the taken rows unchanged."""
        ...

    async def count(self) -> Count: ...

    async def reopen(self) -> int:
        """Mark refused rows to be sent again. Returns their number."""
        ...

    async def close(self) -> None: ...


def of_task(
    task: Planned[Any, Any], args: Sequence[object], kwargs: Mapping[str, object], now_ms: int
) -> NewRow:
    """The row of a function call, validated as by `schedule`."""
    made = new_id(now_ms)
    terms, item = task.prepare(made, args, kwargs, now_ms)
    return _row({**translate.terms_fields(terms), **translate.item_fields(item, now_ms)}, made, now_ms)


def of_fields(intent: Mapping[str, object], now_ms: int) -> NewRow:
    """The row of an intent with the fields of `Client.create`, validated as by a server."""
    fields = requests.written(intent)
    if fields.keys().isdisjoint(("executeAt", "delayMs")):
        fields["delayMs"] = 0
    row = _row(fields, new_id(now_ms), now_ms)
    _check(row.body.encode(), now_ms)
    return row


def _row(fields: Json, made: str, now_ms: int) -> NewRow:
    """`made`: the intent's id if the caller gave neither an id nor a key."""
    own_key = "idempotencyKey" in fields
    if not own_key:
        id = fields.setdefault("intentId", made)
        # An id that the caller chose may also be in use as a key; a generated id is unique.
        fields["idempotencyKey"] = id if id == made else f"outbox:{id}"
        if isinstance(fields.get("delayMs"), int) and fields["delayMs"] > 0:
            # The delay starts now, not when the row is relayed. With a key of the caller the delay is kept:
            # the same request, sent later, must have the same fields.
            fields["executeAt"] = iso(now_ms + fields.pop("delayMs"))
    fields.setdefault("onDuplicate", "return")
    # The row is deleted after the engine's reply, so the intent must be durable by then.
    if fields.get("ackLevel", "ASYNC") in ("ASYNC", "BATCH_DEFERRED"):
        fields["ackLevel"] = "DURABLE"
    key = fields["idempotencyKey"]
    if not isinstance(key, str) or not 0 < len(key) <= KEY_CHARS_MAX:
        raise InvalidField(f"An idempotency key is a text of 1 to {KEY_CHARS_MAX} characters.")
    name = key if own_key else fields["intentId"]
    return NewRow(name, key, encode(fields, "The intent").decode(), now_ms)


def _check(body: bytes, now_ms: int) -> None:
    from duetime.contrib.outbox.decode import Composing

    Composing().item(body, now_ms)


def new_id(now_ms: int) -> str:
    """A new id; ids sort by time. The rest is random, because forked processes would share a counter."""
    return f"{now_ms:011x}-{secrets.token_hex(8)}"


def made_ms(id: str) -> int | None:
    """The time at which the id was generated; None for an id that a caller chose."""
    found = _MADE.match(id)
    return None if found is None else int(found[1], 16)
