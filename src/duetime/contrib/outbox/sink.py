"""Sends the rows of a relay to the engine of this process or to a server, and returns the result of each.

A row that is sent twice creates one intent: its idempotency key finds the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from duetime.client.app.app import App
from duetime.client.remote.backend import RemoteBackend
from duetime.contrib.outbox.rows import Row
from duetime.errors import (
    BadTarget,
    Busy,
    DuetimeError,
    Forbidden,
    IdExists,
    InThePast,
    InvalidField,
    KeyFinished,
    KeyReused,
    NoSuchMethod,
    NoSuchRoute,
    NotJson,
    NoToken,
    Refused,
)
from duetime.protocol.intent import Item
from duetime.protocol.terms import AckLevel, Bare, Entity, Task, Terms

if TYPE_CHECKING:
    from duetime.contrib.outbox.decode import Composing

# Errors of the connection or the token, not of a row.
NOT_THE_ROW: Final = (NoToken, Forbidden, NoSuchRoute, NoSuchMethod)
_TARGETS: Final = ("task", "entity", "stream", "callback")
_fields = msgspec.json.Decoder(dict[str, Raw])

# The error of a row; None: it was accepted.
Said = DuetimeError | None


class Sink:
    """Sends rows to one started app."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._composing: Composing | None = None

    async def send(self, rows: Sequence[Row]) -> list[Said]:
        """The result of each row, in order. Errors that concern no particular row are raised."""
        bodies = [row.body.encode() for row in rows]
        said: list[Said] = [_unreadable(body) for body in bodies]
        good = [place for place, each in enumerate(said) if each is None]
        await self._send_some(good, bodies, said)
        late = [place for place, each in enumerate(said) if isinstance(each, InThePast)]
        if late:  # the time passed while the row waited in the outbox: run it now
            now = [_now(body) if place in late else body for place, body in enumerate(bodies)]
            await self._send_some(late, now, said)
        return [_unless_ours(each, body) for each, body in zip(said, bodies, strict=True)]

    async def _send_some(self, places: list[int], bodies: list[bytes], said: list[Said]) -> None:
        if places:
            answers = await self._send_together([bodies[place] for place in places])
            for place, answer in zip(places, answers, strict=True):
                said[place] = answer

    async def _send_together(self, bodies: list[bytes]) -> list[Said]:
        try:
            return await self._submit(bodies)
        except NOT_THE_ROW:
            raise
        except (Refused, Busy) as error:
            groups = _groups(bodies, one_by_one=not isinstance(error, Busy))
            if len(groups) == 1:
                return [error] * len(bodies)
        # The error may concern only some rows (a full queue), or only the request as a whole (its size).
        said: list[Said] = [None] * len(bodies)
        for places in groups:
            part = [bodies[place] for place in places]
            try:
                answers = await self._submit(part)
            except NOT_THE_ROW:
                raise
            except (Refused, Busy) as error:
                answers = [error] * len(part)
            for place, answer in zip(places, answers, strict=True):
                said[place] = answer
        return said

    async def _submit(self, bodies: list[bytes]) -> list[Said]:
        backend = self._app.backend
        if isinstance(backend, RemoteBackend):
            return await backend.send_bodies(bodies)
        return await self._submit_here(bodies)

    async def _submit_here(self, bodies: list[bytes]) -> list[Said]:
        backend, now_ms = self._app.backend, self._app.backend.now_ms()
        composing = self._compose()
        terms: list[Terms] = []
        items: list[Item] = []
        said: list[Said] = []
        for body in bodies:
            try:
                its_terms, item = composing.item(body, now_ms)
                if not isinstance(its_terms.target, Task | Entity | Bare):
                    raise BadTarget("An app on a folder runs only functions and entities.")
            except DuetimeError as error:
                said.append(error)
                continue
            said.append(None)
            if its_terms not in terms[-1:]:
                terms.append(its_terms)
            items.append(msgspec.structs.replace(item, terms=len(terms) - 1))
        if not items:
            return said
        replies = iter(await backend.submit(tuple(terms), tuple(items), AckLevel.DURABLE))
        for place, each in enumerate(said):
            if each is None and isinstance(submitted := next(replies), DuetimeError):
                said[place] = submitted
        return said

    def _compose(self) -> Composing:
        if self._composing is None:
            from duetime.contrib.outbox.decode import Composing

            self._composing = Composing(self._app.default_tier, self._app.payload_bytes_max)
        return self._composing


def _unreadable(body: bytes) -> Said:
    """The error of an invalid row (edited by hand), which must not break the request of the others."""
    try:
        fields = _fields.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return NotJson(f"The row's body is not a JSON object: {error}.")
    if "idempotencyKey" not in fields:
        return InvalidField("The row's body has no idempotencyKey.")
    return None


def _unless_ours(said: Said, body: bytes) -> Said:
    """None if the id or key exists because this row was sent before; otherwise the error."""
    if not isinstance(said, IdExists | KeyReused | KeyFinished):
        return said
    fields = _fields.decode(body)
    id, key = bytes(fields.get("intentId", b"")), bytes(fields["idempotencyKey"])
    if id != key:
        return said  # the caller chose the id, so the intent may be another one
    if isinstance(said, IdExists):
        return None
    return None if said.details.get("intentId") == msgspec.json.decode(id) else said


def _now(body: bytes) -> bytes:
    fields = _fields.decode(body)
    fields.pop("executeAt", None)
    return msgspec.json.encode({**fields, "delayMs": 0})


def _groups(bodies: list[bytes], one_by_one: bool) -> list[list[int]]:
    """The indexes of the bodies, grouped by queue, or one by one."""
    groups: dict[bytes, list[int]] = {}
    for place, body in enumerate(bodies):
        groups.setdefault(b"%d" % place if one_by_one else _lane(body), []).append(place)
    return list(groups.values())


def _lane(body: bytes) -> bytes:
    fields = _fields.decode(body)
    target = next((bytes(fields[name]) for name in _TARGETS if name in fields), b"")
    if "task" in fields:
        target = bytes(_fields.decode(target).get("queue", b""))
    return bytes(fields.get("precisionTier", b"")) + target
