"""Handlers for operators: lanes, tiers, the log."""

from __future__ import annotations

import asyncio
from heapq import nsmallest

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from duetime.api.codec.filters import check_names, number_from
from duetime.api.codec.intent_decoder import tier_named
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.resources.intents import encode, no_body
from duetime.api.service import Service
from duetime.engine.engine import Engine
from duetime.errors import BadQuery, InvalidField
from duetime.limits import LANE_CHARS_MAX, PAGE_MAX
from duetime.protocol.command import LaneSettings, Order, Pause, Resize, Resume, SetLane
from duetime.wire import rates
from duetime.wire.lane import Lane, LanePatch, Lanes
from duetime.wire.tier import TierPatch, TierSize

_tier = msgspec.json.Decoder(TierPatch)
_lane_patch = msgspec.json.Decoder(LanePatch)
# The prefixes of lane names.
_KINDS = ("callback", "task", "entity", "entities", "stream")


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
        settings = patched_settings(engine.reads.lane_settings(lane), patch)
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


def patched_settings(settings: LaneSettings, patch: LanePatch) -> LaneSettings:
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


def _lane(call: Call) -> str:
    lane = call.params["lane"]
    kind, _, name = lane.partition(":")
    if kind not in _KINDS or not name or len(lane) > LANE_CHARS_MAX:
        raise InvalidField(f"{lane[:64]!r} is not a lane.", hint="Examples: task:default, stream:news.")
    return lane
