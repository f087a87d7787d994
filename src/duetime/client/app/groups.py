"""Chains (calls one by one) and groups (members with a callback).

They work the same with an embedded engine and with a server, in programs and in running functions. All
intents are submitted together, and written in one append if they fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from duetime.client.app.backend import Backend
from duetime.client.app.call import Call
from duetime.client.app.handle import Handle
from duetime.client.app.middleware import Added, added
from duetime.client.app.policies import choice, raise_for
from duetime.client.app.task import Bound
from duetime.client.remote.replies import id_of
from duetime.errors import DuetimeError, InvalidField
from duetime.protocol import bounds
from duetime.protocol.command import Cancel
from duetime.protocol.intent import Item, Ties, member_id
from duetime.protocol.terms import AfterOn, Terms
from duetime.refusals import Submitted

if TYPE_CHECKING:
    from duetime.client.app.app import App

_identity = id
R = TypeVar("R")


class Chain(Handle[R], Generic[R]):
    """A handle for the last call of a chain; `steps` has the handles of all, in order."""

    __slots__ = ("steps",)

    def __init__(self, app: App, ids: list[str], calls: list[Bound[Any]]) -> None:
        super().__init__(app, ids[-1], calls[-1].returns)
        self.steps: tuple[Handle[Any], ...] = tuple(
            Handle(app, id, call.returns) for id, call in zip(ids, calls, strict=True)
        )


class GroupProgress(Struct, frozen=True):
    """The progress of a group."""

    members: int
    joined: int
    ended: int
    left: int


class Group(Handle[R], Generic[R]):
    """A handle for the callback of a group."""

    __slots__ = ("size",)

    def __init__(self, app: App, id: str, returns: object, size: int) -> None:
        super().__init__(app, id, returns)
        self.size = size

    def member(self, number: int) -> Handle[Any]:
        """A handle for a member, by its number in the order of the members."""
        if not 0 <= number < self.size:
            raise InvalidField(f"There is no member {number}: the group has {self.size} members.")
        return Handle(self._app, member_id(self.id, number))

    def progress(self) -> Call[GroupProgress]:
        """The number of members that have ended."""
        return self._app.call(self._progress())

    async def _progress(self) -> GroupProgress:
        intent = await self._view()
        members, left = intent.members or 0, intent.left or 0
        return GroupProgress(members, intent.joined or 0, members - left, left)


class Groups:
    """The implementation of `app.chain` and `app.group`."""

    def __init__(self, app: App) -> None:
        self._app = app

    def chain(self, *calls: Bound[Any]) -> Call[Chain[Any]]:
        _check_bound("chain", calls)
        return self._app.call(self._chain(list(calls)))

    def group(self, members: Iterable[Bound[Any]], then: Bound[R], on: str, id: str | None) -> Call[Group[R]]:
        found = list(members)
        _check_bound("group", (*found, then))
        return self._app.call(self._group(found, then, on, id))

    async def _chain(self, calls: list[Bound[Any]]) -> Chain[Any]:
        if not calls:
            raise InvalidField("The chain is empty.")
        app, batch = self._app, _Batch(self._app.backend.now_ms())
        said = [call.plan().options.id for call in calls]
        steps = [
            _Step(call, app.new_id(batch.now_ms) if id is None else id, id is None)
            for call, id in zip(calls, said, strict=True)
        ]
        async with _around(app, steps, batch.now_ms) as steps:
            ids = await self._submit_chain(batch, steps)
        return Chain(app, ids, calls)

    async def _submit_chain(self, batch: _Batch, steps: list[_Step]) -> list[str]:
        for step in steps:
            item = batch.item(step)
            if item.key is not None or item.ties is not None:  # a key may return another intent
                raise InvalidField(
                    "A step of a chain cannot have a key.", hint="Give the step an id instead."
                )
            if batch.items:
                item = replace(item, after=tuple(dict.fromkeys((*item.after, batch.items[-1].id))))
                raise_for(bounds.item(item))
            batch.items.append(item)
        return [id_of(reply) for reply in await batch.submit(self._app.backend)]

    async def _group(self, members: list[Bound[Any]], then: Bound[R], on: str, id: str | None) -> Group[R]:
        app, size = self._app, len(members)
        batch = _Batch(app.backend.now_ms())
        said = id if id is not None else then.plan().options.id
        group = app.new_id(batch.now_ms) if said is None else said
        last = then.with_options(after_on=choice(AfterOn, on, "on").name) if size else then
        if any(member.plan().options.id is not None for member in members):
            raise InvalidField("The group sets the ids of its members.", hint="Omit the id.")
        steps = [
            _Step(last, group, said is None),
            *(_Step(member, member_id(group, number), said is None) for number, member in enumerate(members)),
        ]
        try:
            async with _around(app, steps, batch.now_ms) as (callback, *joining):
                if size:
                    batch.tie(callback, Ties(members=size))
                else:
                    batch.items.append(batch.item(callback))
                for member in joining:
                    batch.tie(member, Ties(group=group))
                for reply in await batch.submit(app.backend):
                    id_of(reply)
        except DuetimeError:
            if said is None:  # its id is unknown to the caller, so it could not be repeated
                with contextlib.suppress(DuetimeError):
                    await app.backend.ask(Cancel(group, tree=True))
            raise
        return Group(app, group, then.returns, size)


def _check_bound(what: str, calls: Sequence[object]) -> None:
    """Raise unless all are bound calls. The error shows what to write."""
    for each in calls:
        if not isinstance(each, Bound):
            if isinstance(each, Coroutine):
                each.close()  # otherwise Python warns that it was never awaited
            raise InvalidField(
                f"A {what} takes bound calls; {type(each).__name__} is not one.",
                hint="Write task.bind(...) instead of task.schedule(...) or task(...).",
            )


class _Step(Struct, frozen=True):
    """A call with the id of its intent, and what middleware added to it."""

    call: Bound[Any]
    id: str
    fresh: bool
    added: Added | None = None


@contextlib.asynccontextmanager
async def _around(app: App, steps: list[_Step], now_ms: int) -> AsyncIterator[list[_Step]]:
    """The hooks of the app's middleware around calls that are scheduled together."""
    if not app.middleware.schedules:
        yield steps
        return
    calls = [step.call.plan().new_call(step.id, now_ms, *step.call.arguments()) for step in steps]
    async with app.middleware.around_schedule(calls):
        yield [
            replace(step, call=step.call.with_arguments(call.args, call.kwargs), added=added(call))
            for step, call in zip(steps, calls, strict=True)
        ]


class _Batch:
    """Items of several functions, to be submitted together."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.items: list[Item] = []
        self._terms: list[Terms] = []
        self._places: dict[int, int] = {}

    def item(self, step: _Step) -> Item:
        plan = step.call.plan()
        item = plan.item(step.id, step.fresh, self.now_ms, step.call.payload, step.added)
        place = self._places.setdefault(_identity(plan.terms), len(self._terms))
        if place == len(self._terms):
            self._terms.append(plan.terms)
        return replace(item, terms=place) if place else item

    def tie(self, step: _Step, ties: Ties) -> None:
        item, call = self.item(step), step.call
        if item.ties is not None:
            ties = replace(ties, claim=item.ties.claim)  # the engine refuses it with the reason
        tied = replace(item, ties=ties, fingerprint=call.plan().fingerprint(call.payload))
        raise_for(bounds.item(tied))
        self.items.append(tied)

    def submit(self, backend: Backend) -> Awaitable[list[Submitted]]:
        ack = max(terms.ack for terms in self._terms)
        return backend.submit(tuple(self._terms), tuple(self.items), ack)
