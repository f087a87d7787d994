"""Converts between gRPC messages and intents.

A request is converted into the JSON of the HTTP API and decoded by the same decoders, so that the same rules
and error codes apply. Errors contain JSON paths (`$.executeAt`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from duetime.api.codec.intent_encoder import IntentEncoder
from duetime.api.grpc.field_mapping import moment, numbers, reader, writer
from duetime.api.http import problems
from duetime.errors import BadRevision, DuetimeError
from duetime.json_types import Json
from duetime.protocol.view import View
from duetime.v1 import intents_pb2 as pb
from duetime.wire import views
from duetime.wire.intent import Intent, NewIntent, PatchIntent, ReviveIntent

T = TypeVar("T")

_new = msgspec.json.Decoder(NewIntent)
_patch = msgspec.json.Decoder(PatchIntent)
_revive = msgspec.json.Decoder(ReviveIntent)
_read_new = reader(pb.NewIntent, NewIntent)
_read_patch = reader(pb.PatchRequest, PatchIntent)
_read_revive = reader(pb.ReviveRequest, ReviveIntent)
_write = writer(pb.Intent, Intent)

STATUSES = numbers(pb.Status.DESCRIPTOR)
TIERS = numbers(pb.PrecisionTier.DESCRIPTOR)
_STATUS_NAMES = {number: name for name, number in STATUSES.items() if name and name.isupper()}
_TIER_NAMES = {number: name for name, number in TIERS.items() if name and name.isupper()}


# Requests.


def new_intent(new: pb.NewIntent, place: str = "$") -> NewIntent:
    return _decoded(_new, _read_new(new, place), place)


def new_intents(news: Iterable[pb.NewIntent]) -> list[NewIntent | DuetimeError]:
    """The intents of a batch. An unreadable intent is replaced by its error."""
    found: list[NewIntent | DuetimeError] = []
    for number, new in enumerate(news):
        try:
            found.append(new_intent(new, f"$[{number}]"))
        except DuetimeError as error:
            found.append(error)
    return found


def patch_intent(patch: pb.PatchRequest) -> PatchIntent:
    return _decoded(_patch, _read_patch(patch, "$"), "$")


def revive_intent(revive: pb.ReviveRequest) -> ReviveIntent:
    return _decoded(_revive, _read_revive(revive, "$"), "$")


def revision(message: Any) -> int:
    """The revision that the caller expects; 0 if none is given."""
    if not message.HasField("expected_revision"):
        return 0
    expected: int = message.expected_revision
    if expected <= 0:
        raise BadRevision(f"{expected} is not a revision.")
    return expected


def query(message: Any) -> dict[str, str]:
    """The filters of a request, with the names of the HTTP query."""
    found = {name: getattr(message, name) for name in ("queue", "task") if message.HasField(name)}
    if message.statuses:
        found["status"] = ",".join(_STATUS_NAMES.get(each, str(each)) for each in message.statuses)
    if message.tier:
        found["tier"] = _TIER_NAMES.get(message.tier, str(message.tier))
    if message.HasField("entity_type"):
        found["entity"] = message.entity_type
        if message.HasField("entity_id"):
            found["entity"] += f"/{message.entity_id}"
    return found


def list_query(request: pb.ListRequest) -> dict[str, str]:
    """A request for a list as the query of `GET /v1/intents`."""
    found = query(request)
    for name, value in request.tags.items():
        found[f"tag.{name}"] = value
    if request.HasField("from_ms"):
        found["from"] = str(moment(request.from_ms))
    if request.HasField("to_ms"):
        found["to"] = str(moment(request.to_ms))
    if request.by_due_time:
        found["order"] = "due"
    if request.HasField("limit"):
        found["limit"] = str(request.limit)
    if request.HasField("cursor"):
        found["cursor"] = request.cursor
    return found


def _decoded(decoder: msgspec.json.Decoder[T], said: Json, place: str) -> T:
    try:
        return decoder.decode(msgspec.json.encode(said))
    except msgspec.ValidationError as error:
        raise problems.invalid(str(error), place, decoder.type) from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise problems.unreadable(error) from None


# Responses.


def intent(view: View, encoder: IntentEncoder) -> pb.Intent:
    """An intent, with the fields that the current caller may see."""
    return _write(views.intent(view, _milliseconds, Raw, encoder.terms(view.terms)))


def _milliseconds(at_ms: int) -> datetime:
    return cast(datetime, at_ms)  # messages have times in milliseconds, as stored
