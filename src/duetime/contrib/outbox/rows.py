"""What an outbox keeps: intents that wait in the application's own database until they are relayed.

A row's body is the JSON of `POST /v1/intents`, so it can be read by people and by any later version. Each
intent is named when its row is written: by the key it is done once, however often the row is sent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from duetime.client.app.payload import encode
from duetime.client.app.task import Planned
from duetime.client.http import request_types
from duetime.client.remote import translate
from duetime.errors import InvalidField
from duetime.timefmt import iso

TABLE: Final = "duetime_outbox"
KEY_CHARS_MAX: Final = 256
ERROR_CHARS_MAX: Final = 2_000
_MADE: Final = re.compile(r"([0-9a-f]{11})-[0-9a-f]{8}")


class NewRow(Struct, frozen=True):
    """An intent to be kept."""

    name: str
    """The id the intent will have; or, where the caller gave an idempotency key, that key."""
    key: str
    body: str
    created_ms: int


class Row(Struct, frozen=True):
    """An intent that is kept."""

    id: int
    body: str


class Settled(Struct):
    """What became of rows that were sent: gone, kept with the reason, or to be sent again at a moment."""

    done: list[int]
    refused: list[tuple[int, str]]
    later: list[tuple[int, int]]


class Count(Struct, frozen=True):
    """How many rows there are: those that will be sent, and those that were refused."""

    waiting: int
    refused: int


class Rows(Protocol):
    """A table of rows, as a relay sees it. `take` is followed by `settle` or by `let_go`.

    Where the database can, rows that are taken are locked, so that several relays share the work. Where it
    cannot, two may send the same row: the key sees to it that nothing is done twice.
    """

    async def take(self, count: int, now_ms: int) -> list[Row]:
        """The oldest rows that are not refused and whose time to be sent again has come."""
        ...

    async def settle(self, settled: Settled) -> None:
        """Write down what became of the rows that were taken."""
        ...

    async def let_go(self) -> None:
        """Leave what was taken as it is."""
        ...

    async def count(self) -> Count: ...

    async def reopen(self) -> int:
        """Send refused rows once more; how many there are."""
        ...

    async def close(self) -> None: ...


def of_task(task: Planned[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any], now_ms: int) -> NewRow:
    """A call of a function, checked as `schedule` checks it."""
    made = new_id(now_ms)
    terms, item = task.prepare(made, args, kwargs, now_ms)
    return _row({**translate.terms_fields(terms), **translate.item_fields(item, now_ms)}, made, now_ms)


def of_fields(intent: Mapping[str, Any], now_ms: int) -> NewRow:
    """An intent in the words of `Client.create`, checked as a server checks it."""
    fields = request_types.written(intent)
    if fields.keys().isdisjoint(("executeAt", "delayMs")):
        fields["delayMs"] = 0
    row = _row(fields, new_id(now_ms), now_ms)
    _check(row.body.encode(), now_ms)
    return row


def _row(fields: dict[str, Any], made: str, now_ms: int) -> NewRow:
    """`made`: the intent's id, where the caller names it neither by an id nor by a key."""
    own_key = "idempotencyKey" in fields
    if not own_key:
        id = fields.setdefault("intentId", made)
        # A name of the caller's may be somebody else's, too; ours are nobody else's.
        fields["idempotencyKey"] = id if id == made else f"outbox:{id}"
        if isinstance(fields.get("delayMs"), int) and fields["delayMs"] > 0:
            # It counts from now and not from when it is relayed. With a key of the caller's it stays as it
            # is: the same request made later must be the same.
            fields["executeAt"] = iso(now_ms + fields.pop("delayMs"))
    fields.setdefault("onDuplicate", "return")
    # Once it is with the engine its row is gone, so it must be on the medium by then.
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
    """In the order of time, as all ids that are made. Random: forked processes would count alike."""
    return f"{now_ms:011x}-{secrets.token_hex(8)}"


def made_ms(id: str) -> int | None:
    """When such an id was made; None of one that a caller chose."""
    found = _MADE.match(id)
    return None if found is None else int(found[1], 16)
