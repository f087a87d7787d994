"""Flows: calls that run one after another or side by side, not scheduled yet.

`a.bind(1) | b.bind()` runs `a(1)`, and then `b` with its result. A list in a flow is a group: its members run
side by side, and the step after it gets the list of their results.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from duetime.client.app.options import OptionFields
from duetime.client.app.payload import LATER
from duetime.errors import InvalidField
from duetime.limits import DEPENDENTS_MAX

if TYPE_CHECKING:
    from duetime.client.app.call import Call
    from duetime.client.app.groups import Chain
    from duetime.client.app.plan import Plan
    from duetime.client.app.task import Planned

P = ParamSpec("P")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

Members = tuple["AnyFlow", ...]
"""The members of a group."""


class _Steps:
    """Steps in order. The calls of a flow that is open at its beginning lack their first argument."""

    __slots__ = ("_branch", "_steps")

    def __init__(self, steps: tuple[AnyBound | Members, ...], branch: AnyFlow | None = None) -> None:
        self._steps = steps
        self._branch = branch

    @property
    def steps(self) -> tuple[AnyBound | Members, ...]:
        return self._steps

    @property
    def branch(self) -> AnyFlow | None:
        """Runs if one of the steps fails."""
        return self._branch

    def __repr__(self) -> str:
        return " | ".join(repr(list(step)) if isinstance(step, tuple) else repr(step) for step in self.steps)

    def _then(self, other: object) -> Any:
        if not isinstance(other, _Steps | list | tuple):
            raise not_bound("chain", other)
        return joined([self, other])

    def _after(self, members: object) -> Any:
        if not isinstance(members, list | tuple):
            raise not_bound("chain", members)
        return joined([members, self])


class Flow(_Steps, Generic[T_co]):
    """Steps that can be scheduled. `|` adds a step, which gets the result of the one before."""

    __slots__ = ()

    @overload
    def __or__(self, then: OpenFlow[Concatenate[T_co, ...], R]) -> Flow[R]: ...
    @overload
    def __or__(self, then: Flow[R]) -> Flow[R]: ...
    @overload
    def __or__(self, then: Sequence[OpenFlow[Concatenate[T_co, ...], R]]) -> Flow[list[R]]: ...
    @overload
    def __or__(self, then: Sequence[Flow[R]]) -> Flow[list[R]]: ...
    def __or__(self, then: object) -> Any:
        return self._then(then)

    def __ror__(self, members: Sequence[Flow[Any]]) -> Flow[T_co]:
        found: Flow[T_co] = self._after(members)
        return found

    def on_failure(self, branch: AnyFlow) -> Flow[T_co]:
        """The same with a branch that runs if one of the steps fails. If its first call lacks its first
        argument, it gets the `Failure`."""
        return Flow(self.steps, _checked_branch(self, branch))

    def schedule(self) -> Call[Chain[T_co]]:
        """Schedule the calls, as `app.chain` does."""
        found: Call[Chain[T_co]] = app_of(self).chain(self)
        return found


class OpenFlow(_Steps, Generic[P, T_co]):
    """Steps whose first call lacks its first argument: it gets the result of the step before."""

    __slots__ = ()

    @overload
    def __or__(self, then: OpenFlow[Concatenate[T_co, ...], R]) -> OpenFlow[P, R]: ...
    @overload
    def __or__(self, then: Flow[R]) -> OpenFlow[P, R]: ...
    @overload
    def __or__(self, then: Sequence[OpenFlow[Concatenate[T_co, ...], R]]) -> OpenFlow[P, list[R]]: ...
    @overload
    def __or__(self, then: Sequence[Flow[R]]) -> OpenFlow[P, list[R]]: ...
    def __or__(self, then: object) -> Any:
        return self._then(then)

    def __ror__(self, members: Sequence[Flow[Any]]) -> Flow[T_co]:
        found: Flow[T_co] = self._after(members)
        return found

    def on_failure(self, branch: AnyFlow) -> OpenFlow[P, T_co]:
        """The same with a branch that runs if one of the steps fails."""
        return OpenFlow(self.steps, _checked_branch(self, branch))


AnyFlow = Flow[Any] | OpenFlow[..., Any]


class _Called:
    """A call: a function with its arguments and options. It is its only step."""

    __slots__ = ()
    _planned: Planned[..., Any]
    payload: bytes
    returns: object

    @property
    def steps(self) -> Any:
        return (self,)

    @property
    def branch(self) -> None:
        return None

    def __repr__(self) -> str:
        return f"Bound({self._planned.name!r})"

    def plan(self) -> Plan:
        """Its prepared options; the same object for all calls of one function."""
        return self._planned._ready()


class Bound(_Called, Flow[T_co]):
    """A function with its arguments and options, not scheduled yet: a flow of one step."""

    __slots__ = ("_planned", "payload", "returns")

    def __init__(self, planned: Planned[..., T_co], payload: bytes, returns: object) -> None:
        self._planned = planned
        self.payload = payload
        self.returns = returns

    def with_options(self, **options: Unpack[OptionFields]) -> Bound[T_co]:
        """The same call with other options."""
        return Bound(self._planned.options(**options), self.payload, self.returns)

    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """Its arguments, as the function will get them."""
        return self._planned._signature.decode(self.payload)

    def with_arguments(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Bound[T_co]:
        """The same call with other arguments."""
        planned = self._planned.refilled(args, kwargs)
        return Bound(planned, planned.payload(args, kwargs), self.returns)


class OpenBound(_Called, OpenFlow[P, T_co]):
    """The same without its first argument, which comes from the step before."""

    __slots__ = ("_planned", "payload", "returns")

    def __init__(self, planned: Planned[..., T_co], payload: bytes, returns: object) -> None:
        self._planned = planned
        self.payload = payload
        self.returns = returns

    def with_options(self, **options: Unpack[OptionFields]) -> OpenBound[P, T_co]:
        """The same call with other options."""
        return OpenBound(self._planned.options(**options), self.payload, self.returns)

    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """Its arguments after the first one."""
        return self._planned._signature.decode(self.payload, skipped=1)

    def with_arguments(self, args: Sequence[object], kwargs: Mapping[str, object]) -> OpenBound[P, T_co]:
        """The same call with other arguments after the first one."""
        payload = self._planned._signature.encode_rest(tuple(args), dict(kwargs))
        return OpenBound(self._planned.refilled((LATER, *args), kwargs), payload, self.returns)

    def closed(self, first: object) -> Bound[T_co]:
        """The call with this first argument."""
        args, kwargs = self.arguments()
        return Bound(self._planned, self._planned.payload([first, *args], kwargs), self.returns)

    def check_first(self, before: AnyBound | Members) -> None:
        """Raise if the function cannot take what the step before it returns."""
        signature = self._planned._signature
        if isinstance(before, tuple):
            for member in before:
                last = last_call(member)
                signature.check_first(last.returns, last._planned.name, listed=True)
        else:
            signature.check_first(before.returns, before._planned.name)


AnyBound = Bound[Any] | OpenBound[..., Any]


def joined(parts: Sequence[object]) -> AnyFlow:
    """One flow of these: flows, and lists of flows. What each step gets is checked here."""
    steps: list[AnyBound | Members] = []
    branch: AnyFlow | None = None
    for part in parts:
        if branch is not None:
            raise InvalidField(
                "A step follows on_failure.", hint="Put on_failure at the end of the whole chain."
            )
        if isinstance(part, Flow | OpenFlow):
            added, branch = part.steps, part.branch
        elif isinstance(part, list | tuple):
            added = (_members(part),)
        else:
            raise not_bound("chain", part)
        for step in added:
            if steps:
                _check(steps[-1], step)
            steps.append(step)
    first = steps[0] if steps else ()
    opens = isinstance(first, OpenBound) or (isinstance(first, tuple) and any(map(is_open, first)))
    return OpenFlow(tuple(steps), branch) if opens else Flow(tuple(steps), branch)


def is_open(flow: AnyFlow) -> bool:
    """Whether its beginning lacks an argument."""
    return isinstance(flow, OpenFlow)


def last_call(flow: AnyFlow) -> AnyBound:
    """The call at its end, whose result is that of the flow."""
    last = flow.steps[-1]
    if isinstance(last, tuple):
        raise InvalidField(
            "A chain ends with a group.",
            hint="Add the call that gets the list of results: [...] | total.bind().",
        )
    return last


def app_of(flow: AnyFlow) -> Any:
    """The app of its functions."""
    return last_call(flow)._planned._app


def not_bound(what: str, found: object) -> InvalidField:
    """The error for something that is not a bound call. It shows what to write."""
    if isinstance(found, Coroutine):
        found.close()  # otherwise Python warns that it was never awaited
    return InvalidField(
        f"A {what} takes bound calls; {type(found).__name__} is not one.",
        hint="Write task.bind(...) instead of task.schedule(...) or task(...).",
    )


def _members(given: Sequence[object]) -> Members:
    found: list[AnyFlow] = []
    for each in given:
        if not isinstance(each, Flow | OpenFlow):
            raise not_bound("group", each)
        last_call(each)
        found.append(each)
    return tuple(found)


def _checked_branch(flow: AnyFlow, branch: AnyFlow) -> AnyFlow:
    if flow.branch is not None:
        raise InvalidField("The chain has an on_failure already.", hint="Give one.")
    if not isinstance(branch, Flow | OpenFlow):
        raise not_bound("chain", branch)
    last_call(branch)
    return branch


def _check(before: AnyBound | Members, step: AnyBound | Members) -> None:
    """Check what a step gets from the one before."""
    if not isinstance(step, tuple):
        if isinstance(step, OpenBound):
            step.check_first(before)
        return
    if isinstance(before, tuple):
        raise InvalidField(
            "A group follows a group.", hint="Put a call between them, which gets the list of results."
        )
    if len(step) > DEPENDENTS_MAX:
        raise InvalidField(
            f"A group of {len(step)} members follows {before._planned.name}; {DEPENDENTS_MAX} are allowed.",
            hint="Schedule the group inside the function instead.",
        )
    for member in step:
        _check(before, member.steps[0])
