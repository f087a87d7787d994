"""Handlers of intents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from duetime import errors
from duetime.api.codec.filters import filter_from, number_from
from duetime.api.http import problems
from duetime.api.http.body_parts import check_lines, check_parts
from duetime.api.http.endpoint import NDJSON, Call
from duetime.api.http.exchange import Answer
from duetime.api.http.request_ids import request_id
from duetime.api.service import Service
from duetime.errors import BadQuery, BadRevision, DuetimeError, InvalidField, NotJson, TooLarge
from duetime.limits import (
    BATCH_CREATE_MAX,
    BATCH_DECODE_BYTES_MAX,
    BATCH_TURN_BYTES,
    BATCH_TURN_ITEMS,
    PAGE_DEFAULT,
    PAGE_MAX,
    REQUEST_ONE_BYTES_MAX,
    SUGGESTIONS_MAX,
)
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Intent
from duetime.protocol.view import View
from duetime.wire.intent import CancelIntent, NewIntent, Nothing, Page, PatchIntent, ReviveIntent

encode = msgspec.json.Encoder().encode
_new = msgspec.json.Decoder(NewIntent)
_patch = msgspec.json.Decoder(PatchIntent)
_revive = msgspec.json.Decoder(ReviveIntent)
_cancel = msgspec.json.Decoder(CancelIntent)
_nothing = msgspec.json.Decoder(Nothing)
_news = msgspec.json.Decoder(list[NewIntent])
_array = msgspec.json.Decoder(list[Raw])
PAGING = ("order", "limit", "cursor", "before")
_BRIEF = (b"preference-applied", b"return=minimal")
_REPLAYED = (b"idempotent-replayed", b"true")


class Intents:
    """Handlers of intents."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def create(self, call: Call) -> Answer:
        new = call.read(_new)
        key = call.header(b"idempotency-key")
        if key is not None:
            new = _with_key(new, key)
        return made(self._service, *await self._service.create(new, request_id(call)))

    async def create_many(self, call: Call) -> Answer:
        news = await _read_all(call)
        show = self._service.show
        brief = "return=minimal" in (call.header(b"prefer") or "").lower()
        made = await self._service.create_many(news, request_id(call), show.brief if brief else show.intent)
        return Answer(encode(made), headers=[_BRIEF] if brief else [])

    async def get(self, call: Call) -> Answer:
        return self._shown(await self._service.get(call.params["id"]))

    async def page(self, call: Call) -> Answer:
        return Answer(encode(await page_of(self._service, call, filter_from(call.query, *PAGING))))

    async def history(self, call: Call) -> Answer:
        return Answer(encode(self._service.history(call.params["id"])))

    async def logs(self, call: Call) -> Answer:
        return Answer(encode(self._service.logs(call.params["id"])))

    async def why(self, call: Call) -> Answer:
        return Answer(encode(self._service.why(call.params["id"])))

    async def patch(self, call: Call) -> Answer:
        patch = call.read(_patch)
        return self._shown(
            await self._service.patch(call.params["id"], patch, expected_revision(call), request_id(call))
        )

    async def cancel(self, call: Call) -> Answer:
        tree = call.read(_cancel).tree if call.body else False
        return self._shown(
            await self._service.cancel(call.params["id"], expected_revision(call), request_id(call), tree)
        )

    async def fire_now(self, call: Call) -> Answer:
        no_body(call)
        return self._shown(
            await self._service.fire_now(call.params["id"], expected_revision(call), request_id(call))
        )

    async def revive(self, call: Call) -> Answer:
        revive = call.read(_revive) if call.body else ReviveIntent()
        return self._shown(
            await self._service.revive(call.params["id"], revive, expected_revision(call), request_id(call))
        )

    def _shown(self, view: View) -> Answer:
        etag = (b"etag", b'"%d"' % view.revision)
        return Answer(bytes(self._service.show.view(view)), 200, [etag])


def made(service: Service, intent: Intent, known: bool) -> Answer:
    """The response to a create: a new intent, or an existing one."""
    etag = (b"etag", b'"%d"' % intent.revision)
    if known:
        return Answer(bytes(service.show.view(service.view_of(intent))), 200, [etag, _REPLAYED])
    location = (b"location", b"/v1/intents/%b" % intent.id.encode())
    return Answer(bytes(service.show.intent(intent)), 201, [etag, location])


async def page_of(service: Service, call: Call, filter: Filter) -> Page:
    """One page of a list, for a query."""
    query = call.query
    limit = number_from(query, "limit", PAGE_DEFAULT, 1, PAGE_MAX)
    order, cursor = query.get("order", "newest"), query.get("cursor")
    before = query.get("before")
    if before is not None:
        if cursor is not None or order != "newest":
            raise BadQuery("before needs the order newest and no cursor.", parameter="before")
        cursor = service.library.cursor_before((await service.get(before)).seq)
    page = await service.page(filter, order, cursor, limit)
    items: Any = [service.show.view(view) for view in page.items]
    return Page(items=items, next_cursor=page.next_cursor, partial=page.partial)


def expected_revision(call: Call) -> int:
    """The revision that the caller expects; 0 if none is given."""
    text = call.header(b"x-duetime-expected-revision")
    if text is None:
        match = call.header(b"if-match")
        if match is None or match.strip() == "*":
            return 0
        text = match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
        raise BadRevision(f"{text[:32]!r} is not a revision.")
    return int(text)


def _with_key(new: NewIntent, key: str) -> NewIntent:
    if new.idempotency_key is not None and new.idempotency_key != key:
        raise InvalidField("The header Idempotency-Key and idempotencyKey differ.", path="$.idempotencyKey")
    if not 1 <= len(key) <= 256:
        raise InvalidField("The header Idempotency-Key must have 1 to 256 characters.")
    return msgspec.structs.replace(new, idempotency_key=key)


def no_body(call: Call) -> None:
    """Whether the body is empty, or an empty object."""
    if call.body:
        call.read(_nothing)


async def _read_all(call: Call) -> Sequence[NewIntent | DuetimeError]:
    """The intents of a batch. An unreadable intent becomes its error and does not affect the others."""
    if call.body.startswith(b"[") and len(call.body) <= BATCH_DECODE_BYTES_MAX and not _is_lines(call):
        try:
            read = call.read(_news)  # all together, the usual case
        except DuetimeError:
            pass  # one by one, to find the wrong ones
        else:
            _check_count(len(read))
            return read
    news: list[NewIntent | DuetimeError] = []
    wrong = size = 0
    for number, raw in enumerate(_parts(call)):
        # Searching the nearest name takes much longer than decoding, so it is done only for the first ones.
        new = _read_one(raw, number, suggest=wrong < SUGGESTIONS_MAX)
        wrong += isinstance(new, DuetimeError)
        news.append(new)
        size += len(raw)
        if number % BATCH_TURN_ITEMS == 0 or size > BATCH_TURN_BYTES:
            size = 0
            await asyncio.sleep(0)  # tidy: let others have their turn
    return news


def _parts(call: Call) -> list[Any]:
    """The undecoded intents of a batch: a JSON array, or one JSON object per line."""
    body = call.body.strip()
    if _is_lines(call) or not body.startswith(b"["):
        check_lines(body)
        parts: list[Any] = [line for line in body.split(b"\n") if line.strip()]
    else:
        parts = call.read(_array)
    _check_count(len(parts))
    return parts


def _is_lines(call: Call) -> bool:
    return (call.headers.get(b"content-type") or b"").partition(b";")[0].strip().lower() in NDJSON


def _check_count(count: int) -> None:
    if not count:
        raise NotJson(
            "There is no intent in the batch.", hint="Send a JSON array, or one JSON object per line."
        )
    if count > BATCH_CREATE_MAX:
        raise TooLarge(f"{count} intents are in the batch; {BATCH_CREATE_MAX} are allowed.")


def _read_one(raw: bytes | Raw, number: int, *, suggest: bool) -> NewIntent | DuetimeError:
    try:
        if type(raw) is bytes and not raw.isascii():
            raw.decode()
        if len(raw) > REQUEST_ONE_BYTES_MAX:
            return TooLarge(f"Intent {number} of the batch has {len(raw)} bytes.", path=f"$[{number}]")
        check_parts(raw)
        return _new.decode(raw)
    except TooLarge as error:
        error.details["path"] = f"$[{number}]"
        return error
    except msgspec.ValidationError as error:
        return problems.invalid(str(error), f"$[{number}]", NewIntent, suggest=suggest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return errors.NotJson(f"Intent {number} of the batch is not JSON: {error}.", path=f"$[{number}]")
