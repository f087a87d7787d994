"""Handlers for many intents at once."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from duetime.api.access.auth import own_lanes
from duetime.api.codec.filters import filter_from
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.resources.intents import PAGING, encode, page_of
from duetime.api.service import Service
from duetime.engine.bulk import Found, concerned
from duetime.errors import BadQuery, InvalidField
from duetime.protocol.filter import Filter
from duetime.protocol.intent import DEAD_LETTERED
from duetime.wire.bulk import CancelMany, FilterIn, Verb
from duetime.wire.dead_letter import ManyDeadLetters

_many = msgspec.json.Decoder(ManyDeadLetters)
_cancel = msgspec.json.Decoder(CancelMany)


class BulkRoutes:
    """Handlers for many intents at once: cancel by filter; dead letters by id or by filter."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def cancel(self, call: Call) -> Answer:
        many = call.read(_cancel)
        return await self._by_filter("cancel", many.filter, many.cursor, many.limit)

    async def page(self, call: Call) -> Answer:
        """A page of dead letters."""
        filter = _dead(filter_from(call.query, *PAGING))
        return Answer(encode(await page_of(self._service, call, filter)))

    async def revive(self, call: Call) -> Answer:
        return await self._do(call, "revive")

    async def purge(self, call: Call) -> Answer:
        return await self._do(call, "purge")

    async def _do(self, call: Call, verb: Verb) -> Answer:
        many = call.read(_many)
        if (many.intent_ids is None) == (many.filter is None):
            raise InvalidField(
                "Exactly one of intentIds and filter is needed.",
                hint='{"filter": {}} selects all dead letters, up to limit.',
                path="$",
            )
        if many.filter is not None:
            return await self._by_filter(verb, many.filter, many.cursor, many.limit)
        if many.cursor is not None:
            raise InvalidField("A cursor continues a filter, not intentIds.", path="$.cursor")
        assert many.intent_ids is not None
        return await self._done(verb, Found(many.intent_ids, None))

    async def _by_filter(self, verb: Verb, filter: FilterIn, cursor: str | None, limit: int) -> Answer:
        wanted = concerned(verb, filter_from(_as_query(filter)))
        return await self._done(verb, await self._service.many.find(wanted, cursor, limit))

    async def _done(self, verb: Verb, found: Found) -> Answer:
        many = self._service.many
        return Answer(encode(many.result(found, await many.do(verb, found.ids, own_lanes()))))


def _dead(filter: Filter) -> Filter:
    if filter.statuses and filter.statuses != (DEAD_LETTERED,):
        raise BadQuery("Dead letters always have the status DEAD_LETTERED.", parameter="status")
    return replace(filter, statuses=(DEAD_LETTERED,))


def _as_query(filter: FilterIn) -> dict[str, str]:
    """The filter in a body, in the form of a query."""
    query = {
        name: str(value)
        for name, value in (
            ("status", filter.status),
            ("tier", filter.tier),
            ("queue", filter.queue),
            ("task", filter.task),
            ("entity", filter.entity),
            ("from", filter.from_),
            ("to", filter.to),
        )
        if value is not None
    }
    return query | {f"tag.{name}": value for name, value in (filter.tags or {}).items()}
