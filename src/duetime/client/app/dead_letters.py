"""The dead letters of an app, on a folder or on a server; and operations on many intents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from duetime.client.app.call import Call
from duetime.client.app.filters import filter_of
from duetime.client.http.requests import FilterFields
from duetime.errors import InvalidField
from duetime.limits import BULK_SLICE
from duetime.protocol.filter import Filter
from duetime.protocol.intent import DEAD_LETTERED
from duetime.wire.bulk import Verb
from duetime.wire.intent import Intent

if TYPE_CHECKING:
    from duetime.client.app.app import App


class AppDeadLetters:
    """`app.dead_letters`: intents that failed for good, with their last error."""

    def __init__(self, app: App) -> None:
        self._app = app

    def list(
        self, *, limit: int = 100, before: str | None = None, **filter: Unpack[FilterFields]
    ) -> Call[Sequence[Intent]]:
        """Dead letters, newest first. For the next page, `before` is the id of the last one."""
        wanted = filter_of({"status": "DEAD_LETTERED", **filter})
        if wanted.statuses != (DEAD_LETTERED,):
            raise InvalidField("Dead letters always have the status DEAD_LETTERED.", hint="Omit the status.")

        async def found() -> Sequence[Intent]:
            return await self._app.backend.page(wanted, before, limit)

        return self._app.call(found())

    def revive(self, *, all: bool = False, **filter: Unpack[FilterFields]) -> Call[int]:
        """Retry those that match the filter, each with a new set of attempts; returns how many."""
        return self._many("revive", filter, all)

    def purge(self, *, all: bool = False, **filter: Unpack[FilterFields]) -> Call[int]:
        """Delete those that match the filter permanently; returns how many."""
        return self._many("purge", filter, all)

    def _many(self, verb: Verb, filter: FilterFields, all: bool) -> Call[int]:
        wanted = filter_of(filter)
        if (wanted == Filter()) != all:
            raise InvalidField(
                "Dead letters are selected by a filter, or with all=True.",
                hint=f'Write app.dead_letters.{verb}(queue="mail"), or {verb}(all=True).',
            )
        return self._app.call(many(self._app, verb, wanted))


async def many(app: App, verb: Verb, filter: Filter) -> int:
    """Cancel, revive or purge all intents that match a filter, in slices. Returns how many."""
    done, cursor = 0, None
    while True:
        part = await app.backend.many(verb, filter, cursor, BULK_SLICE)
        done, cursor = done + part.done, part.next_cursor
        if cursor is None:
            return done
