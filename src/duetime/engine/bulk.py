"""Operations on many intents, in slices: other callers have their turn after each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duetime.engine.engine import Engine
from duetime.engine.reads.library import Library
from duetime.errors import DuetimeError, InvalidField
from duetime.kernel.state import LIVE
from duetime.limits import BULK_PAGES_MAX, BULK_TOGETHER_MAX, PAGE_MAX
from duetime.protocol.command import Cancel, Purge, Revive
from duetime.protocol.filter import Filter
from duetime.protocol.intent import DEAD_LETTERED
from duetime.protocol.reply import Refusal, Reply
from duetime.refusals import error_of
from duetime.wire.bulk import Bulk, Failure, Verb


class Found(Struct):
    """Ids of matching intents, newest first, and the cursor behind them; None: there are no more."""

    ids: list[str]
    next_cursor: str | None


class Many:
    """Cancels, revives and purges many intents of one engine."""

    def __init__(self, engine: Engine, library: Library) -> None:
        self._engine = engine
        self._library = library

    async def find(self, filter: Filter, cursor: str | None, limit: int) -> Found:
        """Up to `limit` matching intents. The search of one call is bounded, and the cursor resumes it."""
        ids: list[str] = []
        for _ in range(BULK_PAGES_MAX):
            page = await self._library.page(filter, "newest", cursor, min(PAGE_MAX, limit - len(ids)))
            ids += [view.id for view in page.items]
            cursor = page.next_cursor
            if cursor is None or len(ids) >= limit or (page.partial and ids):
                break
        return Found(ids, cursor)

    async def do(
        self, verb: Verb, ids: Sequence[str], within: tuple[str, ...] | None = None
    ) -> dict[str, DuetimeError]:
        """Run the verb on each intent. Returns the errors by id. `within`: the lanes of the caller."""
        failed: dict[str, DuetimeError] = {}
        for start in range(0, len(ids), BULK_TOGETHER_MAX):
            part = ids[start : start + BULK_TOGETHER_MAX]
            answers = await (self._purge(part) if verb == "purge" else self._each(verb, part, within))
            for id, answer in zip(part, answers, strict=True):
                if isinstance(answer, DuetimeError):
                    failed[id] = answer
        return failed

    def result(self, found: Found, failed: dict[str, DuetimeError]) -> Bulk:
        return Bulk(
            matched=len(found.ids),
            done=len(found.ids) - len(failed),
            failed=[
                Failure(intent_id=id, error_code=error.code, message=error.message)
                for id, error in failed.items()
            ],
            next_cursor=found.next_cursor,
        )

    async def _each(self, verb: Verb, ids: Sequence[str], within: tuple[str, ...] | None) -> list[object]:
        asked = [
            self._engine.ask(Revive(id) if verb == "revive" else Cancel(id, within=within)) for id in ids
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, DuetimeError):
                raise answer
        return list(answers)

    async def _purge(self, ids: Sequence[str]) -> list[object]:
        replies: list[Reply] = await self._engine.ask(Purge(tuple(ids)))
        return [error_of(reply) if isinstance(reply, Refusal) else reply for reply in replies]


def concerned(verb: Verb, filter: Filter) -> Filter:
    """The filter with the states in which intents can be cancelled, or revived and purged."""
    possible = LIVE if verb == "cancel" else (DEAD_LETTERED,)
    wrong = [status.name for status in filter.statuses if status not in possible]
    if wrong:
        names = ", ".join(status.name for status in possible)
        raise InvalidField(
            f"status={wrong[0]}: a {verb} by filter concerns intents that are {names}.",
            hint="Omit the status, or use one of these.",
        )
    if verb == "cancel" and filter == Filter():
        raise InvalidField(
            "A cancel of many intents needs a filter.",
            hint="Give tags, a queue, a task, an entity, a tier, a status or a time.",
        )
    return filter if filter.statuses else replace(filter, statuses=possible)
