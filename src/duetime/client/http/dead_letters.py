"""The dead letters of a server: list, revive and purge them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from duetime.client.app.call import Call
from duetime.client.app.stream import EventStream
from duetime.client.http.requests import FilterFields, body, filter_body, query
from duetime.client.http.transport import Request
from duetime.errors import InvalidField
from duetime.json_types import Json
from duetime.wire.bulk import Bulk
from duetime.wire.intent import Intent, Page

if TYPE_CHECKING:
    from duetime.client.http.client import Client

_PATH = "/v1/admin/dead-letters"


class DeadLetters:
    """`client.dead_letters`: the same filters as `client.list`, and bulk operations."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self, *, limit: int = 50, cursor: str | None = None, **filter: Unpack[FilterFields]
    ) -> Call[Page]:
        """A page of dead letters, newest first."""
        return self._client.call(self._client.page(_PATH, query(filter), limit, cursor))

    def every(self, **filter: Unpack[FilterFields]) -> EventStream[Intent]:
        """All dead letters, page by page."""
        return self._client.stream(self._client.pages(_PATH, query(filter)))

    def revive(
        self, ids: Iterable[str] | None = None, *, limit: int | None = None, **filter: Unpack[FilterFields]
    ) -> Call[Bulk]:
        """Retry dead letters: those with these ids, or at most `limit` that match the filter."""
        return self._many("revive", ids, limit, filter)

    def purge(
        self, ids: Iterable[str] | None = None, *, limit: int | None = None, **filter: Unpack[FilterFields]
    ) -> Call[Bulk]:
        """Delete dead letters permanently: those with these ids, or at most `limit` that match the filter."""
        return self._many("purge", ids, limit, filter)

    def _many(
        self, verb: str, ids: Iterable[str] | None, limit: int | None, filter: FilterFields
    ) -> Call[Bulk]:
        if ids is not None and (filter or limit is not None):
            raise InvalidField("Both ids and a filter are given.", hint="Give one of them.")
        said: Json = {"filter": filter_body(filter)} if ids is None else {"intentIds": [*ids]}
        if limit is not None:
            said["limit"] = limit
        return self._client.ask(Request("POST", f"{_PATH}/{verb}", body=body(said)), Bulk)
