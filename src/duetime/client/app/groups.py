"""Chains (calls one by one) and groups (members with a callback).

They work the same with an embedded engine and with a server, in programs and in running functions. All
intents are submitted together, and written in one append if they fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from duetime.client.app.batch import ItemBatch
from duetime.client.app.call import Call
from duetime.client.app.flow import AnyBound, AnyFlow, Bound, Members, OpenBound, joined, last_call, not_bound
from duetime.client.app.handle import Handle
from duetime.client.app.middleware import Added, added
from duetime.client.app.policies import choice
from duetime.client.remote.replies import id_of
from duetime.errors import DuetimeError, InvalidField
from duetime.limits import AFTER_MAX
from duetime.protocol.command import Cancel
from duetime.protocol.first_argument import FirstArgument
from duetime.protocol.intent import Item, Ties, member_id
from duetime.protocol.terms import AfterOn, Terms
from duetime.refusals import Submitted
from duetime.wire.intent import Intent

if TYPE_CHECKING:
    from duetime.client.app.app import App

R = TypeVar("R")


class Chain(Handle[R], Generic[R]):
    """A handle for the last call of a chain; `steps` has the handles of all, in order."""

    __slots__ = ("failure", "steps")

    def __init__(
        self, app: App, id: str, returns: object, steps: Iterable[Handle[Any]], failure: Handle[Any] | None
    ) -> None:
        super().__init__(app, id, returns)
        self.steps: tuple[Handle[Any], ...] = tuple(steps)
        self.failure = failure
        """The branch for failures, if there is one: the handle of its last call."""

    def cancel(self, *, tree: bool = False) -> Call[Intent]:
        """Cancel the last call, or with `tree` the whole chain: all steps and what depends on them. Returns
        the last call, or with `tree` the first one."""
        return self.steps[0].cancel(tree=True) if tree else super().cancel()


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

    def chain(self, parts: Sequence[object], on_failure: AnyFlow | None) -> Call[Chain[Any]]:
        if not parts:
            raise InvalidField("The chain is empty.")
        flow = joined(parts)
        last_call(flow)
        flow = flow if on_failure is None else flow.on_failure(on_failure)
        return self._app.call(self._chain(flow))

    def group(
        self,
        members: Iterable[object],
        then: Bound[R] | OpenBound[..., R],
        on: str,
        id: str | None,
        on_failure: AnyFlow | None,
    ) -> Call[Group[R]]:
        if not isinstance(then, Bound | OpenBound):
            raise not_bound("group", then)
        flow = joined([list(members), then])
        flow = flow if on_failure is None else flow.on_failure(on_failure)
        return self._app.call(self._group(flow, then, choice(AfterOn, on, "on"), id))

    async def _chain(self, flow: AnyFlow) -> Chain[Any]:
        last = last_call(flow)
        said = last.plan().options.id
        placed = _Placed(self._app, self._app.backend.now_ms())
        placed.add(flow, placed.new_id() if said is None else said, said is None)
        await self._submit(placed)
        failure = placed.failure
        return Chain(self._app, placed.handles[-1].id, last.returns, placed.handles, failure)

    async def _group(
        self, flow: AnyFlow, then: Bound[R] | OpenBound[..., R], on: AfterOn, id: str | None
    ) -> Group[R]:
        said = id if id is not None else then.plan().options.id
        placed = _Placed(self._app, self._app.backend.now_ms(), on, repeatable=said is not None)
        group = placed.new_id() if said is None else said
        placed.add(flow, group, said is None)
        await self._submit(placed)
        found: Group[R] = placed.handles[-1]  # type: ignore[assignment]
        return found

    async def _submit(self, placed: _Placed) -> None:
        app = self._app
        try:
            async with _around(app, placed.in_order(), placed.now_ms) as steps:
                batch = ItemBatch(step.item(placed.now_ms) for step in steps)
                replies = await batch.submit(app.backend)
                if placed.said and not placed.repeatable and any(map(_refused, replies)):
                    for step, reply in zip(steps, replies, strict=True):
                        if not _refused(reply):  # the others exist, or were not created
                            await app.backend.ask(Cancel(step.id))
                for reply in replies:
                    id_of(reply)
        except DuetimeError:
            if not placed.said:  # its ids are unknown to the caller, so it could not be repeated
                for step in placed.in_order():
                    if not step.after and step.ties.group is None:
                        with contextlib.suppress(DuetimeError):
                            await app.backend.ask(Cancel(step.id, tree=True))
            raise


class _Step(Struct, frozen=True):
    """A call with the id of its intent and its ties to others, and what middleware added to it."""

    call: AnyBound
    id: str
    fresh: bool
    after: tuple[str, ...] = ()
    ties: Ties = Ties()
    key: str | None = None
    """Makes it repeatable, if it has no place in a group."""
    added: Added | None = None

    def item(self, now_ms: int) -> tuple[Terms, Item]:
        """Its terms and its item."""
        plan, payload = self.call.plan(), self.call.payload
        item = plan.step(self.id, self.fresh, now_ms, payload, self.added, self.after, self.ties, self.key)
        return plan.terms, item


class _Entry(Struct, frozen=True):
    """What the first calls of a flow come after."""

    after: tuple[str, ...] = ()
    first: FirstArgument = FirstArgument.NONE
    on_failure: bool = False


class _Placed:
    """The calls of a flow as intents, in an order in which they can be created.

    A member of a group may wait for intents that are older than the outermost group only. So the calls before
    the last one of each member come first, then the callbacks with their members, then branches for failures.
    """

    def __init__(
        self, app: App, now_ms: int, on: AfterOn = AfterOn.SUCCESS, repeatable: bool = False
    ) -> None:
        self._app = app
        self.now_ms = now_ms
        self._on = on
        self._top = ""
        self.repeatable = repeatable
        """Whether the same call again creates what is missing, and nothing twice."""
        self.said = repeatable
        """Whether the caller gave an id."""
        self.handles: list[Handle[Any]] = []
        """Of the steps of the whole flow."""
        self.failure: Handle[Any] | None = None
        self._first: list[_Step] = []
        self._groups: list[_Step] = []
        self._branches: list[_Step] = []

    def new_id(self) -> str:
        return self._app.new_id(self.now_ms)

    def in_order(self) -> list[_Step]:
        return [*self._first, *self._groups, *self._branches]

    def add(self, flow: AnyFlow, id: str, fresh: bool) -> None:
        """The whole flow. `id`: of its last call."""
        self._top = id
        self.said |= not fresh
        ids, last = self._flow(flow, _Entry(), id, fresh, None, self.handles)
        self._groups += last
        if flow.branch is not None:
            self.failure = self._branch(flow.branch, ids)

    def _branch(self, branch: AnyFlow, after: Sequence[str]) -> Handle[Any]:
        said = last_call(branch).plan().options.id
        if said is None and self.repeatable:
            said = f"{after[-1]}-failure"
        self.said |= said is not None
        id = self.new_id() if said is None else said
        entry = _Entry(tuple(after[-AFTER_MAX:]), FirstArgument.FAILURE, on_failure=True)
        inner = _Placed(self._app, self.now_ms, repeatable=self.repeatable)
        handles: list[Handle[Any]] = []
        _, last = inner._flow(branch, entry, id, said is None, None, handles)
        self._branches += [*inner._first, *inner._groups, *last, *inner._branches]
        return handles[-1]

    def _flow(
        self,
        flow: AnyFlow,
        entry: _Entry,
        id: str,
        fresh: bool,
        group: str | None,
        handles: list[Handle[Any]],
    ) -> tuple[list[str], list[_Step]]:
        """The ids of the steps, and the intents of the last one; the others are placed."""
        ids: list[str] = []
        last_call(flow)
        members: Members | None = None
        for place, step in enumerate(flow.steps):
            if isinstance(step, tuple):
                members = step
                continue
            is_last = place == len(flow.steps) - 1
            own = step.plan().options.id
            if is_last:
                own_id, own_fresh = id, fresh
                if group is not None and own is not None:
                    raise InvalidField("The group sets the ids of its members.", hint="Omit the id.")
            elif own is None and self.repeatable:
                own_id, own_fresh = f"{id}-{place}", False
            else:
                own_id, own_fresh = self.new_id() if own is None else own, own is None
                self.said |= own is not None
            made = self._step(step, members, entry, own_id, own_fresh, group if is_last else None)
            ids.append(own_id)
            size = len(members) if members is not None else -1
            handles.append(
                Handle(self._app, own_id, step.returns)
                if size < 0
                else Group(self._app, own_id, step.returns, size)
            )
            entry, members = _Entry((own_id,), FirstArgument.RESULT), None
            if is_last:
                if group is not None and flow.branch is not None:
                    self._branch(flow.branch, ids)
                return ids, made
            self._first += made
        raise AssertionError("the last step is a call")

    def _step(
        self, call: AnyBound, members: Members | None, entry: _Entry, id: str, fresh: bool, group: str | None
    ) -> list[_Step]:
        """The intent of a call, after the members of its group if there are any."""
        if not members:
            return [self._plain(call, members is not None, entry, id, fresh, group)]
        on = self._on if id == self._top else AfterOn.SUCCESS
        first = FirstArgument.NONE
        if isinstance(call, OpenBound):
            first = FirstArgument.FAILURE if on is AfterOn.FAILURE else FirstArgument.RESULTS
        call = call if on is AfterOn.SUCCESS else call.with_options(after_on=on.name)
        found = [_Step(call, id, fresh, (), Ties(group=group, members=len(members), first=first))]
        for number, member in enumerate(members):
            _, made = self._flow(member, entry, member_id(id, number), fresh, id, [])
            found += made
        return found

    def _plain(
        self, call: AnyBound, gathers: bool, entry: _Entry, id: str, fresh: bool, group: str | None
    ) -> _Step:
        first = FirstArgument.NONE
        if isinstance(call, OpenBound):
            if gathers:  # an empty group
                call = call.closed([])
            elif not entry.after:
                raise InvalidField(
                    f"{call!r} lacks its first argument, and no step before it gives one.",
                    hint="Pass all arguments to bind(), or put a call before it.",
                )
            else:
                first = entry.first
        if entry.on_failure:
            call = call.with_options(after_on=AfterOn.FAILURE.name)
        key = id if self.repeatable and group is None and not fresh else None
        return _Step(call, id, fresh, entry.after, Ties(group=group, first=first), key)


def _refused(reply: Submitted) -> bool:
    return isinstance(reply, DuetimeError)


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
