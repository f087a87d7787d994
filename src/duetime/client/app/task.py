"""A function that can be scheduled. `schedule` has the same parameter types as the function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from duetime.bounded_cache import BoundedCache
from duetime.client.app.batch import ItemBatch
from duetime.client.app.call import Call, Origin, origin, warn_dropped
from duetime.client.app.flow import Bound, OpenBound
from duetime.client.app.habits import TASKS, missing, takes_a_delay
from duetime.client.app.handle import Handle
from duetime.client.app.middleware import Middlewares, added
from duetime.client.app.options import PER_INTENT, OptionFields
from duetime.client.app.payload import LATER, Signature
from duetime.client.app.plan import Options, Plan, make_terms
from duetime.client.app.templates import Templates
from duetime.client.app.times import Delay, Moment
from duetime.client.remote.replies import id_of
from duetime.errors import InvalidField
from duetime.limits import TEMPLATE_VALUES_KEPT
from duetime.protocol.intent import Item
from duetime.protocol.terms import Target, Terms

if TYPE_CHECKING:
    from duetime.client.app.app import App

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

# Calls of one `schedule_many` that are prepared in one go: some milliseconds of work.
_SLICE = 1_000


class Planned(Generic[P, R]):
    """A function with options. Create it once and use it often."""

    def __init__(
        self,
        app: App,
        target: Target,
        signature: Signature,
        options: Options,
        name: str,
        base: Planned[P, R] | None = None,
        templates: Templates | None = None,
    ) -> None:
        """`base` has the same terms: both share one object. `templates`: options that name arguments."""
        self._app = app
        self._base = base
        self._target = target
        self._signature = signature
        self._options = options
        self._plan: Plan | None = None
        self._templates = templates
        self._filled: BoundedCache[tuple[str, ...], Planned[P, R]] | None = None
        """With the options of its terms filled, by the arguments that they name."""
        self._template: Planned[P, R] | None = None
        """The one with templates from which this one was filled."""
        self._made: Origin | None = None
        self.name = name

    if not TYPE_CHECKING:  # a type checker finds a wrong name itself
        __getattr__ = missing("A task", TASKS)

    def schedule(self, *args: P.args, **kwargs: P.kwargs) -> Call[Handle[R]]:
        """Schedule a call with these arguments."""
        self._made = None
        return self._app.call(self._schedule(args, kwargs))

    def schedule_many(self, calls: Iterable[tuple[object, ...]]) -> Call[list[Handle[R]]]:
        """Schedule a call for each tuple of arguments, all written together. If some are refused, an error is
        raised after the others were accepted."""
        self._made = None
        return self._app.call(self._schedule_many(calls))

    @overload
    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R]: ...
    @overload
    def bind(self: Planned[Concatenate[Any, Q], R], *args: Q.args, **kwargs: Q.kwargs) -> OpenBound[P, R]: ...
    def bind(self, *args: Any, **kwargs: Any) -> Any:
        """A call that is not scheduled yet, for `|`, `app.chain` and `app.group`. The first argument may be
        missing: it is then the result of the step before."""
        self._made = None
        signature = self._signature
        if signature.lacks_first(args, kwargs):
            planned = self.filled((LATER, *args), kwargs)
            return OpenBound(planned, signature.encode_rest(args, kwargs), signature.returns)
        return Bound(self.filled(args, kwargs), signature.encode(args, kwargs), signature.returns)

    def at(self, moment: Moment) -> Planned[P, R]:
        """The same at a time: an aware datetime, ISO-8601 text, or seconds since 1970."""
        return self._timed("at", at=moment, delay=None)

    @takes_a_delay
    def delay(self, delay: Delay) -> Planned[P, R]:
        """The same after a delay: "30d", "1h30m", a timedelta, or seconds."""
        return self._timed("delay", delay=delay, at=None)

    def options(self, **options: Unpack[OptionFields]) -> Planned[P, R]:
        """The same with other options: see `Options`."""
        return self._with(Planned, options)

    def _timed(self, method: str, **options: Unpack[OptionFields]) -> Planned[P, R]:
        timed = self._with(_Timed, options)
        timed._made = (method, *origin(2)[1:])
        return timed

    def _with(self, kind: type[Planned[P, R]], options: OptionFields) -> Planned[P, R]:
        self._made = None
        merged = self._options.merged(**options)
        same_terms = options.keys() <= PER_INTENT
        base = (self._base or self) if same_terms else None
        templates = None if self._templates is None else self._templates.without(options.keys())
        made = kind(self._app, self._target, self._signature, merged, self.name, base, templates)
        if self._template is not None:
            made._template = self._template._with(Planned, options)
        return made

    def filled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Planned[P, R]:
        """The same for a call with these arguments: options that name arguments have their values."""
        templates = self._templates
        if templates is None:
            return self
        values = templates.values(args, kwargs)
        key = tuple(values[name] for name in templates.shared)
        if self._filled is None:
            self._filled = BoundedCache(TEMPLATE_VALUES_KEPT)
        shared = self._filled.get(key)
        if shared is None:
            shared = self._fill(templates.filled(values, own=False))
            shared._base = None if templates.shared else self._base
            self._filled.keep(key, shared)
        own = templates.filled(values, own=True)
        made = shared._with(Planned, own) if own else shared  # type: ignore[arg-type]
        made._template = self
        return made

    def _fill(self, options: dict[str, Any]) -> Planned[P, R]:
        merged = self._options.merged(**options)
        return Planned(self._app, self._target, self._signature, merged, self.name)

    def refilled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Planned[P, R]:
        """The same for other arguments."""
        return self if self._template is None else self._template.filled(args, kwargs)

    def terms(self, args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None) -> Terms:
        """The terms of its intents with these arguments."""
        self._made = None
        options = self.filled(args, kwargs or {})._options
        return make_terms(self._target, options, self._app.default_tier)

    def payload(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """These arguments as the payload of an intent."""
        return self._signature.encode(tuple(args), dict(kwargs))

    def prepare(
        self, id: str, args: Sequence[object], kwargs: Mapping[str, object], now_ms: int
    ) -> tuple[Terms, Item]:
        """The terms and the item of a call, checked but not submitted. `id`: if the options have none."""
        plan = self.filled(args, kwargs)._ready()
        own = plan.options.id
        id, fresh = id if own is None else own, own is None
        if not self._app.middleware.schedules:
            return plan.terms, plan.item(id, fresh, now_ms, self.payload(args, kwargs))
        call = plan.new_call(id, now_ms, args, kwargs)
        with self._app.middleware.around_schedule_here(call):
            plan = self.filled(call.args, call.kwargs)._ready()
            payload = self.payload(call.args, call.kwargs)
            return plan.terms, plan.item(id, fresh, now_ms, payload, added(call))

    def _ready(self) -> Plan:
        plan = self._plan
        if plan is None:
            self._made = None
            app, base = self._app, self._base
            terms = (
                base._ready().terms
                if base is not None
                else make_terms(self._target, self._options, app.default_tier)
            )
            plan = self._plan = Plan(terms, self._options, app.payload_bytes_max)
        return plan

    async def _schedule(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Handle[R]:
        if self._app.middleware.schedules:
            return (await self._schedule_around([(args, kwargs)]))[0]
        if self._templates is not None:
            return await self.filled(args, kwargs)._schedule(args, kwargs)
        plan = self._plan or self._ready()
        app, signature, terms = self._app, self._signature, plan.terms
        payload = signature.encode(args, kwargs)
        backend = app.backend
        now_ms = backend.now_ms()
        id = plan.options.id
        item = plan.item(app.new_id(now_ms) if id is None else id, id is None, now_ms, payload)
        reply = await backend.submit_one(terms, item, terms.ack)
        return Handle(app, id_of(reply), signature.returns)

    async def _schedule_around(
        self, calls: Iterable[tuple[Sequence[object], Mapping[str, object]]]
    ) -> list[Handle[R]]:
        """Schedule calls with the hooks of the app's middleware."""
        app, id = self._app, self._options.id
        now_ms = app.backend.now_ms()
        news = [
            self.filled(args, kwargs)
            ._ready()
            .new_call(app.new_id(now_ms) if id is None else id, now_ms, args, kwargs)
            for args, kwargs in calls
        ]
        async with app.middleware.around_schedule(news):
            made = []
            for call in news:
                plan = self.filled(call.args, call.kwargs)._ready()
                payload = self.payload(call.args, call.kwargs)
                item = plan.item(call.intent_id, id is None, now_ms, payload, added(call))
                made.append((plan.terms, item))
            if len(made) == 1:
                terms, item = made[0]
                ids = [id_of(await app.backend.submit_one(terms, item, terms.ack))]
            else:
                ids = [id_of(reply) for reply in await ItemBatch(made).submit(app.backend)]
            for call, given in zip(news, ids, strict=True):
                call.intent_id = given
        return [Handle(app, given, self._signature.returns) for given in ids]

    async def _schedule_many(self, calls: Iterable[tuple[object, ...]]) -> list[Handle[R]]:
        templates, said = self._templates or (), self._options
        keys = [name for name in ("id", "key", "unique", "collapse_key") if name not in templates]
        if any(getattr(said, name) is not None for name in keys):
            raise InvalidField("Many intents cannot share one id or key.", hint="Schedule them one by one.")
        app = self._app
        if app.middleware.schedules:
            listed = list(calls)
            _check_tuples(listed)
            return await self._schedule_around([(args, {}) for args in listed]) if listed else []
        if self._templates is not None:
            return await self._schedule_filled(calls)
        plan = self._ready()
        encode, item = self._signature.encode, plan.item
        new_id, now_ms = app.new_id, app.backend.now_ms()
        nothing: dict[str, object] = {}
        payloads: list[bytes] = []
        source = iter(calls)
        while part := list(islice(source, _SLICE)):
            _check_tuples(part)
            payloads += [encode(args, nothing) for args in part]
            await _others(len(part))
        if not payloads:
            return []
        item(new_id(now_ms), True, now_ms, max(payloads, key=len))  # all are checked before the first is sent
        items: list[Item] = []
        for start in range(0, len(payloads), _SLICE):
            made = payloads[start : start + _SLICE]
            items += [item(new_id(now_ms), True, now_ms, payload) for payload in made]
            await _others(len(made))
        ids = await app.submit_many(plan.terms, items)
        returns = self._signature.returns
        return [Handle(app, id, returns) for id in ids]

    async def _schedule_filled(self, calls: Iterable[tuple[object, ...]]) -> list[Handle[R]]:
        """Schedule many calls whose options name arguments."""
        app, nothing = self._app, dict[str, object]()
        made: list[tuple[Terms, Item]] = []
        now_ms, source = app.backend.now_ms(), iter(calls)
        while part := list(islice(source, _SLICE)):
            _check_tuples(part)
            for args in part:
                plan = self.filled(args, nothing)._ready()
                payload = self._signature.encode(args, nothing)
                made.append((plan.terms, plan.item(app.new_id(now_ms), True, now_ms, payload)))
            await _others(len(part))
        replies = await ItemBatch(made).submit(app.backend) if made else []
        return [Handle(app, id_of(reply), self._signature.returns) for reply in replies]


class _Timed(Planned[P, R]):
    """A function with a time, made by `delay` or `at`. It warns if it is dropped without being used."""

    def __del__(self) -> None:
        made = getattr(self, "_made", None)
        if made is not None:
            warn_dropped(made, "was never used, so nothing was scheduled", "Write .schedule(...) after it.")


def _check_tuples(calls: Sequence[object]) -> None:
    if not all(isinstance(args, tuple | list) for args in calls):
        raise InvalidField("Each call is a tuple of arguments.", hint="Write [(1,), (2,)].")


async def _others(count: int) -> None:
    """After each slice, other tasks get a turn."""
    if count == _SLICE:
        await asyncio.sleep(0)  # tidy: a turn of the loop


class Task(Planned[P, R]):
    """A decorated function. Call it to run it directly; schedule it to run it as an intent."""

    def __init__(
        self,
        app: App,
        function: Callable[P, Any],
        target: Target,
        signature: Signature,
        options: Options,
        name: str,
    ) -> None:
        templates = Templates.of(options, signature, name)
        super().__init__(app, target, signature, options, name, templates=templates)
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__module__ = function.__module__

    @property
    def middleware(self) -> Middlewares:
        """The middleware of its app, for runs in another process."""
        return self._app.middleware

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Task({self.name!r})"
