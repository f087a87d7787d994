"""The route table, which the server, the OpenAPI document and the tests read."""

from __future__ import annotations

from typing import Final

from duetime import errors as e
from duetime.api.access.auth import Role
from duetime.api.http.endpoint import Handler
from duetime.api.http.router import Parameter, Route
from duetime.api.http.sse import EventStream
from duetime.api.resources.intents import Intents
from duetime.errors import DuetimeError
from duetime.json_types import Json
from duetime.limits import KEY_CHARS_MAX, PAGE_MAX
from duetime.wire.history import History, Why
from duetime.wire.intent import (
    Batch,
    BriefBatch,
    CancelIntent,
    Intent,
    NewIntent,
    Nothing,
    Page,
    PatchIntent,
    ReviveIntent,
)
from duetime.wire.progress import Logs

_TEXT: Final[Json] = {"type": "string"}
REQUEST_ID: Final = Parameter(
    "X-Duetime-Request-Id",
    "Makes the write safe to repeat for 15 minutes.",
    {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX},
    "header",
)
REVISION: Final = (
    Parameter(
        "X-Duetime-Expected-Revision",
        "Refuse (409) unless the intent is at this revision.",
        {"type": "integer", "minimum": 1},
        "header",
    ),
    Parameter("If-Match", "The same, as an ETag.", _TEXT, "header"),
)
_KEY: Final = Parameter(
    "Idempotency-Key",
    "Identifies one intent within its window.",
    {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX},
    "header",
)
_PREFER: Final = Parameter(
    "Prefer",
    "return=minimal: the response has only id, status, time and revision of each intent.",
    _TEXT,
    "header",
)
FILTERS: Final = (
    Parameter("status", "One or more states, separated by commas."),
    Parameter("tier", "A precision tier."),
    Parameter("queue", "The queue of a task."),
    Parameter("task", "The name of a task."),
    Parameter("entity", "TYPE or TYPE/ID of an entity."),
)
# Callers choose the names of tags, so they cannot be listed as parameters.
BY_TAGS: Final = (
    "A parameter tag.NAME=VALUE filters by a tag, as in ?tag.customer=ada; an intent must match all of them."
)
PAGE: Final = (
    Parameter("limit", "Maximum number of results.", {"type": "integer", "minimum": 1, "maximum": PAGE_MAX}),
    Parameter("cursor", "Continue here: nextCursor of the previous page."),
)
LIST: Final = (
    *FILTERS,
    Parameter("from", "Execution time at or after this time."),
    Parameter("to", "Execution time before this time."),
    Parameter("order", "Newest first, or by due time.", {"type": "string", "enum": ["newest", "due"]}),
    Parameter("before", "Only intents that were accepted before the one with this id. Needs order newest."),
    *PAGE,
)
_SUBMIT_ERRORS: Final = (
    e.NotJson, e.TooLarge, e.KeyFinished, e.KeyHeld, e.KeyReused, e.IdExists, e.TimeMissing,
    e.DeadlineTooEarly, e.InThePast, e.InvalidField, e.BadTarget, e.BadUrl, e.UnknownTier, e.Busy,
    e.RateLimited, e.LaneFull, e.EntityFull, e.NotReady, e.LogUnavailable,
)  # fmt: skip
_BATCH_ERRORS: Final = (
    e.NotJson, e.TooLarge, e.InvalidField, e.KeyReused, e.Busy, e.RateLimited, e.NotReady, e.LogUnavailable,
)  # fmt: skip
_CHANGE_ERRORS: Final = (
    e.BadRevision, e.NotJson, e.NoSuchIntent, e.RevisionMoved, e.KeyReused, e.TooLarge, e.InThePast,
    e.DeadlineTooEarly, e.InvalidField, e.NotReady, e.LogUnavailable,
)  # fmt: skip


def intent_routes(intents: Intents) -> list[Route]:
    """The routes of intents."""
    one = "/v1/intents/{id}"
    return [
        Route(
            method="POST", path="/v1/intents", handler=intents.create, role=Role.submit, name="createIntent",
            summary="Create an intent", tag="Intents", body=NewIntent,
            answers={201: Intent, 200: Intent}, parameters=(_KEY, REQUEST_ID),
            errors=_SUBMIT_ERRORS, write=True,
        ),
        Route(
            method="POST", path="/v1/intents/batch", handler=intents.create_many, role=Role.submit,
            name="createIntents", summary="Create many intents in one append", tag="Intents",
            body=list[NewIntent], ndjson=True, bulk=True, answers={200: Batch | BriefBatch},
            parameters=(_PREFER, REQUEST_ID),
            errors=_BATCH_ERRORS, write=True,
        ),
        Route(
            method="GET", path="/v1/intents", handler=intents.page, role=Role.read, name="listIntents",
            summary="Intents, newest first or by due time", about=BY_TAGS, tag="Intents",
            answers={200: Page},
            parameters=LIST, errors=(e.BadQuery, e.NoSuchIntent, e.NotReady),
        ),
        Route(
            method="GET", path=one, handler=intents.get, role=Role.read, name="getIntent",
            summary="Get an intent", tag="Intents", answers={200: Intent},
            errors=(e.NoSuchIntent, e.NotReady),
        ),
        Route(
            method="PATCH", path=one, handler=intents.patch, role=Role.submit, name="patchIntent",
            summary="Change an intent that is neither final nor in flight", tag="Intents", body=PatchIntent,
            answers={200: Intent}, parameters=(*REVISION, REQUEST_ID),
            errors=(*_CHANGE_ERRORS, e.NotPatchable), write=True,
        ),
        Route(
            method="GET", path=f"{one}/history", handler=intents.history, role=Role.read, name="getHistory",
            summary="Every transition and attempt", tag="Intents", answers={200: History},
            errors=(e.NoSuchIntent, e.NotReady),
        ),
        Route(
            method="GET", path=f"{one}/logs", handler=intents.logs, role=Role.read, name="getLogs",
            summary="Log lines of the newest attempt", tag="Intents", answers={200: Logs},
            errors=(e.NoSuchIntent, e.NotReady),
        ),
        Route(
            method="GET", path=f"{one}/why", handler=intents.why, role=Role.read, name="getWhy",
            summary="Why it has not run yet, or how it ended", tag="Intents", answers={200: Why},
            errors=(e.NoSuchIntent, e.NotReady),
        ),
        _verb(
            "cancel", intents.cancel, "cancelIntent", "Cancel an intent, even while it runs", CancelIntent,
            e.StateForbids,
        ),
        _verb(
            "fire-now", intents.fire_now, "fireIntentNow", "Make a scheduled intent due now", Nothing,
            e.StateForbids,
        ),
        _verb(
            "revive", intents.revive, "reviveIntent", "Schedule a dead letter again", ReviveIntent,
            e.NotDeadLettered, e.KeyHeld, e.BadTarget, e.BadUrl,
        ),
    ]  # fmt: skip


def _verb(
    verb: str, handler: Handler, name: str, summary: str, body: object, *errors: type[DuetimeError]
) -> Route:
    """The route of an action on one intent."""
    return Route(
        method="POST",
        path=f"/v1/intents/{{id}}/{verb}",
        handler=handler,
        role=Role.submit,
        name=name,
        summary=summary,
        tag="Intents",
        body=body,
        body_required=False,
        answers={200: Intent},
        parameters=(*REVISION, REQUEST_ID),
        errors=(*_CHANGE_ERRORS, *errors),
        write=True,
    )


def event_routes(stream: EventStream) -> list[Route]:
    return [
        Route(
            method="GET", path="/v1/events", handler=stream, role=Role.read, name="getEvents",
            summary="Server-sent events of transitions", about=BY_TAGS, tag="Events", answers={200: str},
            stream=True,
            media_type="text/event-stream",
            parameters=(
                *FILTERS,
                Parameter("intentId", "One intent."),
                Parameter("Last-Event-ID", "Resume after this event id.", _TEXT, "header"),
            ),
            errors=(e.BadQuery, e.NotReady),
        )
    ]  # fmt: skip
