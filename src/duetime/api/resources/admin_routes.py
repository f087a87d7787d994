"""The route table of operators: dead letters, lanes, tiers, the log, health and metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from duetime import errors as e
from duetime.api.access.auth import Role
from duetime.api.http.router import Parameter, Route
from duetime.api.resources.admin import Admin
from duetime.api.resources.bulk import BulkRoutes
from duetime.api.resources.insight import HealthRoutes, InsightRoutes
from duetime.api.resources.routes import BY_TAGS, LIST, PAGE, REQUEST_ID
from duetime.limits import AUTOSCALE_TARGET_S_MAX, TIMELINE_SLOTS_MAX
from duetime.wire.autoscale import Autoscale
from duetime.wire.bulk import Bulk, CancelMany
from duetime.wire.chronoscope import Chronoscope
from duetime.wire.dead_letter import ManyDeadLetters
from duetime.wire.function import FunctionList
from duetime.wire.health import Health, Readiness
from duetime.wire.intent import Nothing, Page
from duetime.wire.lane import Lane, LanePatch, Lanes
from duetime.wire.log import LogSegments
from duetime.wire.predictions import Predictions
from duetime.wire.replay import Life, Past
from duetime.wire.tier import TierPatch, TierSize
from duetime.wire.timeline import Timeline

_LANES: Final = (
    *PAGE,
    Parameter("entities", "false: without the lanes of single entities.", {"type": "boolean"}),
)
_NOT_NOW: Final = (e.NotReady, e.LogUnavailable)


def bulk_routes(bulk: BulkRoutes) -> list[Route]:
    """The routes of dead letters, and of operations on many intents."""
    many = partial(
        Route,
        method="POST",
        role=Role.admin,
        tag="Dead letters",
        body=ManyDeadLetters,
        bulk=True,
        answers={200: Bulk},
        parameters=(REQUEST_ID,),
        errors=(e.NotJson, e.InvalidField, e.UnknownTier, e.BadQuery, e.KeyReused, *_NOT_NOW),
        write=True,
    )
    return [
        many(
            path="/v1/intents/cancel", handler=bulk.cancel, name="cancelIntents", role=Role.submit,
            summary="Cancel the intents that match a filter, even while they run", tag="Intents",
            body=CancelMany,
        ),
        Route(
            method="GET", path="/v1/admin/dead-letters", handler=bulk.page, role=Role.read,
            name="listDeadLetters", summary="Dead letters with their errors", about=BY_TAGS,
            tag="Dead letters", answers={200: Page}, parameters=LIST,
            errors=(e.BadQuery, e.NoSuchIntent, e.NotReady),
        ),
        many(
            path="/v1/admin/dead-letters/revive", handler=bulk.revive, name="reviveDeadLetters",
            summary="Revive many dead letters",
        ),
        many(
            path="/v1/admin/dead-letters/purge", handler=bulk.purge, name="purgeDeadLetters",
            summary="Delete many dead letters now",
        ),
    ]  # fmt: skip


def admin_routes(admin: Admin, insights: InsightRoutes) -> list[Route]:
    lane = partial(
        Route,
        method="POST",
        role=Role.admin,
        tag="Operation",
        body=Nothing,
        body_required=False,
        answers={200: Nothing},
        parameters=(REQUEST_ID,),
        errors=(e.NotJson, e.NoSuchRoute, e.InvalidField, e.KeyReused, *_NOT_NOW),
        write=True,
    )
    read = partial(Route, method="GET", role=Role.read, tag="Operation")
    return [
        read(
            path="/v1/admin/chronoscope", handler=insights.chronoscope, name="getChronoscope",
            summary="Figures of every tier: waiting, running, permits, lateness",
            answers={200: Chronoscope}, errors=(e.BadQuery, e.NotReady),
        ),
        _functions(admin),
        read(
            path="/v1/admin/lanes", handler=admin.lanes, name="listLanes",
            summary="Figures and limits of the lanes, by name", parameters=_LANES,
            answers={200: Lanes}, errors=(e.BadQuery, e.NotReady),
        ),
        lane(
            path="/v1/admin/lanes/{lane:path}", handler=admin.set_lane, name="setLane",
            summary="Change the limits of a lane immediately",
            method="PATCH", body=LanePatch, body_required=True, answers={200: Lane},
        ),
        lane(
            path="/v1/admin/lanes/{lane:path}/pause", handler=admin.pause, name="pauseLane",
            summary="Pause deliveries from a lane",
        ),
        lane(
            path="/v1/admin/lanes/{lane:path}/resume", handler=admin.resume, name="resumeLane",
            summary="Resume deliveries from a lane",
        ),
        Route(
            method="PATCH", path="/v1/admin/tiers/{tier}", handler=admin.resize, role=Role.admin,
            name="resizeTier", summary="Change the number of permits of a tier immediately", tag="Operation",
            body=TierPatch, answers={200: TierSize}, parameters=(REQUEST_ID,),
            errors=(e.NotJson, e.UnknownTier, e.InvalidField, e.KeyReused, *_NOT_NOW), write=True,
        ),
        Route(
            method="GET", path="/metrics", handler=insights.metrics, role=Role.read, name="getMetrics",
            summary="Metrics for Prometheus, or as JSON", tag="Health", answers={200: str},
            media_type="text/plain",
        ),
        *_insight_routes(insights, read),
    ]  # fmt: skip


def _insight_routes(insights: InsightRoutes, read: Callable[..., Route]) -> list[Route]:
    return [
        read(
            path="/v1/admin/timeline", handler=insights.timeline, name="getTimeline",
            summary="Upcoming intents and expected lateness", answers={200: Timeline},
            parameters=(
                Parameter("from", "Start time (default: now)."),
                Parameter("to", "End time (default: an hour later)."),
                Parameter(
                    "slots", "Number.", {"type": "integer", "minimum": 1, "maximum": TIMELINE_SLOTS_MAX}
                ),
            ),
            errors=(e.BadQuery, e.NotReady),
        ),
        read(
            path="/v1/admin/predictions", handler=insights.predictions, name="getPredictions",
            summary="Durations of functions, and the gain of ordering by them",
            answers={200: Predictions}, errors=(e.BadQuery, e.NotReady),
        ),
        read(
            path="/v1/admin/autoscale", handler=insights.autoscale, name="getAutoscale",
            summary="Number of workers each queue needs", answers={200: Autoscale},
            parameters=(
                Parameter("queue", "One queue: default, or stream:news (default: all with consumers)."),
                Parameter(
                    "targetSeconds", "Target time to finish the backlog, in seconds (default: 60).",
                    {"type": "integer", "minimum": 1, "maximum": AUTOSCALE_TARGET_S_MAX},
                ),
            ),
            errors=(e.BadQuery, e.NotReady),
        ),
        read(
            path="/v1/admin/replay", handler=insights.replay, name="getReplay",
            summary="An intent or the whole system at a point in time",
            answers={200: Life | Past},
            parameters=(Parameter("intentId", "One intent."), Parameter("at", "The moment.")),
            errors=(e.BadQuery, e.MissingParameter, e.NoSuchIntent, e.NotReady),
        ),
        read(
            path="/v1/admin/log/segments", handler=insights.segments, name="listSegments",
            summary="The files of the log", answers={200: LogSegments}, errors=(e.BadQuery, e.NotReady),
        ),
    ]  # fmt: skip


def _functions(admin: Admin) -> Route:
    return Route(
        method="GET",
        path="/v1/admin/functions",
        handler=admin.functions,
        role=Role.read,
        name="listFunctions",
        summary="The functions of the workers with their parameters",
        tag="Operation",
        answers={200: FunctionList},
        errors=(e.BadQuery, e.NotReady),
    )


def health_routes(health: HealthRoutes) -> list[Route]:
    own = partial(Route, method="GET", role=None, tag="Health")
    return [
        own(
            path="/health", handler=health.health, name="getHealth", summary="Whether the server is on time",
            answers={200: Health, 503: Health},
        ),
        own(
            path="/health/live", handler=health.live, name="getLive", summary="Liveness",
            answers={200: dict[str, str]},
        ),
        own(
            path="/health/ready", handler=health.ready, name="getReady", summary="Readiness",
            answers={200: Readiness, 503: Readiness},
        ),
        own(
            path="/health/deep", handler=health.deep, name="getDeepHealth",
            summary="Whether every tier is on time", answers={200: Health, 503: Health},
        ),
    ]  # fmt: skip
