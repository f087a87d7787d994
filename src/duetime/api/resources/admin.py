"""Handlers for operators: dead letters, lanes, tiers, the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from heapq import nsmallest

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from duetime.api.codec.filters import check_names, filter_from, number_from
from duetime.api.codec.intent_decoder import tier_named
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.resources.intents import PAGING, encode, no_body, page_of
from duetime.api.service import Service
from duetime.engine.engine import Engine
from duetime.errors import BadQuery, DuetimeError, InvalidField
from duetime.limits import DEAD_LETTERS_TOGETHER_MAX, LANE_CHARS_MAX, PAGE_MAX
from duetime.protocol.command import LaneSettings, Order, Pause, Purge, Resize, Resume, Revive, SetLane
from duetime.protocol.filter import Filter
from duetime.protocol.intent import DEAD_LETTERED
from duetime.protocol.reply import Refusal, Reply
from duetime.refusals import error_of
from duetime.wire import rates
from duetime.wire.dead_letter import Bulk, Failure, FilterIn, ManyDeadLetters
from duetime.wire.lane import Lane, LanePatch, Lanes
from duetime.wire.tier import TierPatch, TierSize

_many = msgspec.json.Decoder(ManyDeadLetters)
_tier = msgspec.json.Decoder(TierPatch)
_lane_patch = msgspec.json.Decoder(LanePatch)
# The prefixes of lane names.
_KINDS = ("callback", "task", "entity", "entities", "stream")

Verb = Callable[[list[str]], Awaitable[list[object]]]


class DeadLetterRoutes:
    """Handlers for dead letters in bulk."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def page(self, call: Call) -> Answer:
        filter = _dead(filter_from(call.query, *PAGING))
        return Answer(encode(await page_of(self._service, call, filter)))

    async def revive(self, call: Call) -> Answer:
        return await self._do(call, self._revive)

    async def purge(self, call: Call) -> Answer:
        return await self._do(call, self._purge)

    async def _do(self, call: Call, verb: Verb) -> Answer:
        many = call.read(_many)
        if (many.intent_ids is None) == (many.filter is None):
            raise InvalidField(
                "Exactly one of intentIds and filter is needed.",
                hint='{"filter": {}} selects all dead letters, up to limit.',
                path="$",
            )
        ids = many.intent_ids if many.intent_ids is not None else await self._found(many)
        failed: list[Failure] = []
        for start in range(0, len(ids), DEAD_LETTERS_TOGETHER_MAX):
            part = ids[start : start + DEAD_LETTERS_TOGETHER_MAX]
            for id, answer in zip(part, await verb(part), strict=True):
                if isinstance(answer, DuetimeError):
                    failed.append(Failure(intent_id=id, error_code=answer.code, message=answer.message))
        return Answer(encode(Bulk(matched=len(ids), done=len(ids) - len(failed), failed=failed)))

    async def _found(self, many: ManyDeadLetters) -> list[str]:
        assert many.filter is not None
        filter = _dead(filter_from(_as_query(many.filter)))
        ids: list[str] = []
        cursor: str | None = None
        while len(ids) < many.limit:
            limit = min(PAGE_MAX, many.limit - len(ids))
            page = await self._service.library.page(filter, "newest", cursor, limit)
            ids += [view.id for view in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        return ids

    async def _revive(self, ids: list[str]) -> list[object]:
        engine = self._service.running
        asked = [engine.ask(Revive(id)) for id in ids]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, DuetimeError):
                raise answer
        return list(answers)

    async def _purge(self, ids: list[str]) -> list[object]:
        replies: list[Reply] = await self._service.running.ask(Purge(tuple(ids)))
        return [error_of(reply) if isinstance(reply, Refusal) else reply for reply in replies]


class Admin:
    """Handlers for the engine as a whole."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def resize(self, call: Call) -> Answer:
        """Change the number of permits of a tier immediately."""
        tier = tier_named(call.params["tier"], "tier")
        concurrency = call.read(_tier).concurrency
        await self._service.running.ask(Resize(tier, concurrency))
        return Answer(encode(TierSize(tier=tier.name, concurrency=concurrency)))

    async def lanes(self, call: Call) -> Answer:
        """A page of lanes by name. Not sorted on the event loop: there may be a million entities."""
        check_names(call.query, ("limit", "cursor", "entities"))
        limit = number_from(call.query, "limit", PAGE_MAX, 1, PAGE_MAX)
        entities = call.query.get("entities", "true")
        if entities not in ("true", "false"):
            raise BadQuery("entities must be true or false.", parameter="entities")
        engine = self._service.running
        names = engine.reads.lane_names(entities=entities == "true")
        page = await asyncio.to_thread(_behind, names, call.query.get("cursor", ""), limit + 1)
        lanes = [_lane_out(engine, name) for name in page[:limit]]
        more = page[limit - 1] if len(page) > limit else None
        return Answer(encode(Lanes(lanes=lanes, next_cursor=more)))

    async def functions(self, call: Call) -> Answer:
        """The functions that workers announce."""
        check_names(call.query, ())
        return Answer(encode(self._service.functions.shown()))

    async def set_lane(self, call: Call) -> Answer:
        """Change the limits of a lane immediately. They are stored on the log."""
        lane, patch = _lane(call), call.read(_lane_patch)
        engine = self._service.running
        settings = _patched(engine.reads.lane_settings(lane), patch)
        if settings != engine.reads.lane_settings(lane):
            await engine.ask(SetLane(lane, settings))
        if patch.paused is not UNSET:
            await engine.ask(Pause(lane) if patch.paused else Resume(lane))
        return Answer(encode(_lane_out(engine, lane)))

    async def pause(self, call: Call) -> Answer:
        no_body(call)
        lane = _lane(call)
        await self._service.running.ask(Pause(lane))
        return Answer(b"{}")

    async def resume(self, call: Call) -> Answer:
        no_body(call)
        lane = _lane(call)
        await self._service.running.ask(Resume(lane))
        return Answer(b"{}")


def _behind(sources: list[list[str]], cursor: str, limit: int) -> list[str]:
    """The first names after a cursor. A name may be in several sources."""
    behind = (name for names in sources for name in names if name > cursor)
    return list(dict.fromkeys(nsmallest(limit * len(sources), behind)))[:limit]


def _lane_out(engine: Engine, name: str) -> Lane:
    lane, settings = engine.reads.lane(name), engine.reads.lane_settings(name)
    return Lane(
        name=name,
        paused=lane.paused,
        pushed=lane.pushed,
        pending=lane.pending,
        ready=lane.ready,
        running=lane.running,
        consumers=lane.consumers,
        concurrency=settings.concurrency or None,
        rate=rates.shown(settings.rate, settings.period_ms),
        burst=settings.burst,
        pending_max=settings.pending_max or None,
        priority=settings.priority,
        order=settings.order.name,  # type: ignore[arg-type]  # the names are those of the Literal
    )


def _patched(settings: LaneSettings, patch: LanePatch) -> LaneSettings:
    """The settings with a patch applied."""
    changes: dict[str, object] = {
        name: value or 0
        for name in ("concurrency", "pending_max", "burst", "priority")
        if (value := getattr(patch, name)) is not UNSET
    }
    if patch.rate is not UNSET:
        rate = (0, 1_000) if patch.rate is None else rates.read(patch.rate, "$.rate")
        changes["rate"], changes["period_ms"] = rate
    if patch.order is not UNSET:
        changes["order"] = Order[patch.order]
    return replace(settings, **changes)


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


def _lane(call: Call) -> str:
    lane = call.params["lane"]
    kind, _, name = lane.partition(":")
    if kind not in _KINDS or not name or len(lane) > LANE_CHARS_MAX:
        raise InvalidField(f"{lane[:64]!r} is not a lane.", hint="Examples: task:default, stream:news.")
    return lane
