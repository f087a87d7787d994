"""Groups on a server: create, extend and read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from duetime.client.app.call import Call
from duetime.client.app.payload import encode
from duetime.client.http.request_types import NewIntent
from duetime.client.http.requests import path, written
from duetime.client.http.transport import Request
from duetime.json_types import Json
from duetime.limits import PAGE_MAX
from duetime.wire.group import Group, MadeGroup
from duetime.wire.history import Parent, Parents

if TYPE_CHECKING:
    from duetime.client.http.client import Client


class ServerGroups:
    """`client.groups`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(
        self,
        then: NewIntent,
        members: Iterable[NewIntent] = (),
        *,
        group_id: str | None = None,
        size: int | None = None,
        on: str = "SUCCESS",
    ) -> Call[MadeGroup]:
        """Create members, and a callback for the end of all. With your own id it can be repeated."""
        fields: Json = {"then": written(then), "on": on, "members": [written(m) for m in members]}
        if group_id is not None:
            fields["groupId"] = group_id
        if size is not None:
            fields["size"] = size
        request = Request("POST", "/v1/groups", body=encode(fields, "The request"))
        return self._client.ask(request, MadeGroup)

    def add(self, group_id: str, first: int, members: Iterable[NewIntent]) -> Call[MadeGroup]:
        """Add members; `first` is the number of the first one."""
        fields = {"first": first, "members": [written(each) for each in members]}
        request = Request("POST", path("groups", group_id, "members"), body=encode(fields, "The request"))
        return self._client.ask(request, MadeGroup)

    def get(self, group_id: str) -> Call[Group]:
        """How far it is."""
        return self._client.ask(Request("GET", path("groups", group_id)), Group)

    async def parents(self, id: str) -> Sequence[Parent]:
        """All pages of an intent's dependencies."""
        found: list[Parent] = []
        cursor: str | None = "0"
        while cursor is not None:
            pairs = [("limit", str(PAGE_MAX)), ("cursor", cursor)]
            page = await self._client.ask(Request("GET", path("intents", id, "parents"), pairs), Parents)
            found += page.items
            cursor = page.next_cursor
        return found
