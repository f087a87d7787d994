"""Intents over gRPC: every call is one operation of the service."""

from __future__ import annotations

from typing import cast

import msgspec

from duetime.api.access.auth import Role
from duetime.api.codec.filters import filter_from, number_from
from duetime.api.grpc import errors, intent_codec
from duetime.api.grpc.calls import Unary
from duetime.api.resources.intents import PAGING
from duetime.api.service import Service
from duetime.errors import InvalidField, NotJson, TooLarge
from duetime.insight.health import Narrator
from duetime.limits import BATCH_CREATE_MAX, PAGE_DEFAULT, PAGE_MAX
from duetime.protocol.view import View
from duetime.v1 import intents_pb2 as pb


class IntentCalls:
    """The calls for intents."""

    def __init__(self, service: Service, narrator: Narrator) -> None:
        self._service = service
        self._narrator = narrator

    def table(self) -> list[Unary]:
        return [
            Unary("Create", pb.CreateRequest, self.create, Role.submit),
            Unary("CreateBatch", pb.CreateBatchRequest, self.create_batch, Role.submit),
            Unary("Get", pb.GetRequest, self.get, Role.read),
            Unary("List", pb.ListRequest, self.list, Role.read),
            Unary("Patch", pb.PatchRequest, self.patch, Role.submit),
            Unary("Cancel", pb.CancelRequest, self.cancel, Role.submit),
            Unary("FireNow", pb.FireNowRequest, self.fire_now, Role.submit),
            Unary("Revive", pb.ReviveRequest, self.revive, Role.submit),
            Unary("Health", pb.HealthRequest, self.health, None),
        ]

    def _shown(self, view: View) -> pb.Intent:
        return intent_codec.intent(view, self._service.show)

    async def create(self, request: pb.CreateRequest, id: str | None) -> pb.CreateResponse:
        if not request.HasField("intent"):
            raise InvalidField("There is no intent in the request.", path="$")
        made, existing = await self._service.create(intent_codec.new_intent(request.intent), id)
        return pb.CreateResponse(intent=self._shown(self._service.view_of(made)), existing=existing)

    async def create_batch(self, request: pb.CreateBatchRequest, id: str | None) -> pb.CreateBatchResponse:
        if not request.intents:
            raise NotJson("There is no intent in the batch.", hint="Send at least one.")
        if len(request.intents) > BATCH_CREATE_MAX:
            raise TooLarge(
                f"{len(request.intents)} intents are in the batch; {BATCH_CREATE_MAX} are allowed."
            )
        made = await self._service.create_many(intent_codec.new_intents(request.intents), id)
        return pb.CreateBatchResponse(
            items=[
                pb.CreateBatchResponse.Item(
                    status=item.status,
                    intent=None if item.intent is None else self._shown(cast(View, item.intent)),
                    error=None if item.error is None else errors.problem(item.error),
                )
                for item in made.items
            ],
            created=made.created,
            existing=made.existing,
            failed=made.failed,
        )

    async def get(self, request: pb.GetRequest, id: str | None) -> pb.Intent:
        return self._shown(await self._service.get(request.intent_id))

    async def list(self, request: pb.ListRequest, id: str | None) -> pb.ListResponse:
        query = intent_codec.list_query(request)
        limit = number_from(query, "limit", PAGE_DEFAULT, 1, PAGE_MAX)
        order = query.get("order", "newest")
        page = await self._service.page(filter_from(query, *PAGING), order, query.get("cursor"), limit)
        found = map(self._shown, page.items)
        return pb.ListResponse(intents=found, next_cursor=page.next_cursor, partial=page.partial)

    async def patch(self, request: pb.PatchRequest, id: str | None) -> pb.Intent:
        patch = intent_codec.patch_intent(request)
        return self._shown(
            await self._service.patch(request.intent_id, patch, intent_codec.revision(request), id)
        )

    async def cancel(self, request: pb.CancelRequest, id: str | None) -> pb.Intent:
        revision = intent_codec.revision(request)
        return self._shown(await self._service.cancel(request.intent_id, revision, id, request.tree))

    async def fire_now(self, request: pb.FireNowRequest, id: str | None) -> pb.Intent:
        return self._shown(
            await self._service.fire_now(request.intent_id, intent_codec.revision(request), id)
        )

    async def revive(self, request: pb.ReviveRequest, id: str | None) -> pb.Intent:
        revive = intent_codec.revive_intent(request)
        return self._shown(
            await self._service.revive(request.intent_id, revive, intent_codec.revision(request), id)
        )

    async def health(self, request: pb.HealthRequest, id: str | None) -> pb.HealthResponse:
        health = self._narrator.health()
        return pb.HealthResponse(
            status=health.status, narrative=health.narrative, report=msgspec.json.encode(health)
        )
