"""Groups: routes and handlers. A group has members, and a callback that runs when all have ended."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from duetime import errors as e
from duetime.api.access.auth import Role
from duetime.api.codec.filters import check_names, number_from
from duetime.api.http import problems
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.http.request_ids import request_id
from duetime.api.http.router import Route
from duetime.api.resources.intents import encode
from duetime.api.resources.routes import PAGE, REQUEST_ID
from duetime.api.service import Service, made_of, no_such
from duetime.errors import DuetimeError, InvalidField
from duetime.limits import GROUP_MEMBERS_MAX, PAGE_DEFAULT, PAGE_MAX, REFUSED_SHOWN_MAX
from duetime.protocol.intent import Item, member_id
from duetime.protocol.terms import Terms
from duetime.wire.group import Group, MadeGroup, MemberError, MoreMembers, NewGroup
from duetime.wire.history import Parent, Parents
from duetime.wire.intent import NewIntent
from duetime.wire.views import STATUSES

_new = msgspec.json.Decoder(NewGroup)
_more = msgspec.json.Decoder(MoreMembers)


class GroupRoutes:
    """Handlers of groups."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def create(self, call: Call) -> Answer:
        """Create the callback and its members in one append. A repeated request continues it."""
        new, request = call.read(_new), request_id(call)
        size = len(new.members) if new.size is None else new.size
        if size < len(new.members):
            raise InvalidField(
                f"{len(new.members)} members are given, more than the size, at $.size.", path="$.size"
            )
        group = new.group_id or self._service.composer.id_for(self._service.running.now_ms(), request)
        if new.then.after_on is not None:
            place = "$.then.afterOn"
            raise InvalidField(f"Use `on` of the group instead of afterOn, at {place}.", path=place)
        then = replace(
            _own(new.then, "$.then"), intent_id=group, members=size or None, after_on=new.on if size else None
        )
        batch = _Batch(self._service, request)
        batch.add(then, "$.then")
        known = self._service.running.reads.intent(group)
        if known is None or (known.rare is not None and known.rare.fingerprint == batch.items[0].fingerprint):
            batch.add_members(group, 0, new.members)
        made = await batch.submit(group)
        answer = Answer(encode(made), 201 if made.created or not made.existing else 200)
        answer.headers = [(b"location", f"/v1/groups/{group}".encode())]
        return answer

    async def add(self, call: Call) -> Answer:
        more = call.read(_more)
        batch = _Batch(self._service, request_id(call))
        batch.add_members(call.params["id"], more.first, more.members)
        return Answer(encode(await batch.submit(call.params["id"])))

    async def get(self, call: Call) -> Answer:
        check_names(call.query, ())
        id = call.params["id"]
        view = await self._service.get(id)
        return Answer(
            encode(
                Group(
                    group_id=id,
                    status=STATUSES[view.status],
                    members=view.members,
                    joined=view.joined,
                    ended=view.members - view.left,
                    left=view.left,
                )
            )
        )

    async def parents(self, call: Call) -> Answer:
        """The dependencies of an intent, or the members of its group, with their results."""
        check_names(call.query, ("limit", "cursor"))
        limit = number_from(call.query, "limit", PAGE_DEFAULT, 1, PAGE_MAX)
        first = number_from(call.query, "cursor", 0, 0, GROUP_MEMBERS_MAX)
        id, engine = call.params["id"], self._service.running
        found, intent = engine.reads.parents(id, first, limit), engine.reads.intent(id)
        if found is None or intent is None:
            raise no_such(id)
        many = 0 if intent.rare is None else max(len(intent.rare.after), intent.rare.joined)
        after = first + len(found)
        return Answer(
            encode(
                Parents(
                    items=[
                        Parent(
                            intent_id=each.id,
                            status=None if each.status is None else STATUSES[each.status],
                            result=None if each.result is None else msgspec.Raw(each.result),
                        )
                        for each in found
                    ],
                    next_cursor=str(after) if after < many else None,
                )
            )
        )


class _Batch:
    """A callback and members, or only members, that are submitted together."""

    def __init__(self, service: Service, request: str | None) -> None:
        self._service = service
        self._request = request
        self._now_ms = service.running.now_ms()
        self._terms: list[Terms] = []
        self._places: dict[int, int] = {}
        self.items: list[Item] = []

    def add(self, new: NewIntent, place: str) -> None:
        composer, number = self._service.composer, len(self.items)
        request = None if self._request is None else f"{self._request}\n{number}"
        try:
            terms = composer.terms(new)
            where = self._places.setdefault(id(terms), len(self._terms))
            if where == len(self._terms):
                self._terms.append(terms)
            item = composer.item(new, where, self._now_ms, request)
            self._service.functions.check_item(terms.target, item)
            self.items.append(item)
        except DuetimeError as error:
            raise _placed(error, place) from None

    def add_members(self, group: str, first: int, members: list[NewIntent]) -> None:
        for number, member in enumerate(members):
            place = f"$.members[{number}]"
            own = _own(member, place)
            self.add(replace(own, intent_id=member_id(group, first + number), group=group), place)

    async def submit(self, group: str) -> MadeGroup:
        """Submit, and return the result. A refused callback is raised: then there is no such group."""
        service = self._service
        replies = await service.submit(self._terms, self.items)
        pairs = list(zip(self.items, replies, strict=True))
        if self.items[0].id == group:
            made_of(pairs.pop(0)[1])
        created = existing = 0
        refused: list[MemberError] = []
        for item, reply in pairs:
            try:
                _, known = made_of(reply)
            except DuetimeError as error:
                service.refused(error)
                shown = problems.problem(error)
                refused.append(MemberError(intent_id=item.id, status=error.status, error=shown))
                continue
            created += not known
            existing += known
        then: Any = service.show.view(await service.get(group))
        return MadeGroup(
            group_id=group,
            then=then,
            created=created,
            existing=existing,
            failed=len(refused),
            errors=refused[:REFUSED_SHOWN_MAX],
        )


def _own(new: NewIntent, place: str) -> NewIntent:
    """A part of a group: the group sets its id, and its default time is now."""
    for name, value in (("intentId", new.intent_id), ("group", new.group)):
        if value is not None:
            raise InvalidField(f"The group sets this field, at {place}.{name}.", path=f"{place}.{name}")
    if new.execute_at is None and new.delay_ms is None:
        return replace(new, delay_ms=0)
    return new


def _placed(error: DuetimeError, place: str) -> DuetimeError:
    """An error in one of several intents, with its path in the request."""
    path = str(error.details.get("path", "$"))
    where = path.replace("$", place, 1)
    error.message = error.message.replace(f"at {path}", f"at {where}")
    if f"at {where}" not in error.message:
        error.message = f"{error.message.removesuffix('.')}, at {where}."
    error.details["path"] = where
    return error


def group_routes(groups: GroupRoutes) -> list[Route]:
    one = "/v1/groups/{id}"
    return [
        Route(
            method="POST", path="/v1/groups", handler=groups.create, role=Role.submit, name="createGroup",
            summary="Create a group: members and a callback", tag="Groups", body=NewGroup,
            bulk=True, answers={201: MadeGroup, 200: MadeGroup}, parameters=(REQUEST_ID,),
            errors=(
                e.NotJson, e.TooLarge, e.IdExists, e.KeyReused, e.TimeMissing, e.DeadlineTooEarly,
                e.InThePast, e.InvalidField, e.BadTarget, e.BadUrl, e.UnknownTier, e.Busy, e.RateLimited,
                e.LaneFull, e.EntityFull, e.NotReady, e.LogUnavailable,
            ),
            write=True,
        ),
        Route(
            method="GET", path=one, handler=groups.get, role=Role.read, name="getGroup",
            summary="Progress of a group", tag="Groups", answers={200: Group},
            errors=(e.BadQuery, e.NoSuchIntent, e.NotReady),
        ),
        Route(
            method="POST", path=f"{one}/members", handler=groups.add, role=Role.submit, name="addMembers",
            summary="Add members to a group", tag="Groups", body=MoreMembers, bulk=True,
            answers={200: MadeGroup}, parameters=(REQUEST_ID,),
            errors=(
                e.NotJson, e.TooLarge, e.NoSuchIntent, e.KeyReused, e.TimeMissing, e.InvalidField,
                e.BadTarget, e.BadUrl, e.UnknownTier, e.Busy, e.RateLimited, e.NotReady, e.LogUnavailable,
            ),
            write=True,
        ),
        Route(
            method="GET", path="/v1/intents/{id}/parents", handler=groups.parents, role=Role.read,
            name="getParents", summary="Dependencies or group members, with their results",
            tag="Intents", answers={200: Parents},
            parameters=PAGE,
            errors=(e.BadQuery, e.NoSuchIntent, e.NotReady),
        ),
    ]  # fmt: skip
