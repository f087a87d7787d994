"""Signatures, chains, groups and chords: data that becomes intents when it is applied.

A signature is a dict, as in Celery, so it can be an argument of a task. Applying it compiles it to a graph of
intents (`graph.py`) that are submitted together: each waits for those whose results it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from duetime.contrib.celery.exceptions import refuse
from duetime.contrib.celery.graph import Feed, Graph, Many, listed
from duetime.contrib.celery.result import AsyncResult, EagerResult, GroupResult, Result
from duetime.contrib.celery.state import current_app
from duetime.contrib.celery.utils import uuid

if TYPE_CHECKING:
    from duetime.contrib.celery.app import Celery


class Signature(dict[str, Any]):
    """A call of a task, not sent yet."""

    def __init__(
        self,
        task: Any = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        immutable: bool = False,
        app: Celery | None = None,
        subtask_type: str | None = None,
        **more: Any,
    ) -> None:
        if isinstance(task, dict):
            super().__init__(task)
        else:
            super().__init__(
                task=getattr(task, "name", task),
                args=tuple(args or ()),
                kwargs=dict(kwargs or {}),
                options=dict(options or {}, **more),
                subtask_type=subtask_type,
                immutable=immutable,
            )
        self._app = app if app is not None else getattr(task, "app", None)

    # The parts.

    @property
    def app(self) -> Celery:
        return self._app if self._app is not None else current_app()

    @property
    def task(self) -> str:
        return str(self["task"])

    name = task

    @property
    def args(self) -> tuple[Any, ...]:
        return tuple(self["args"])

    @property
    def kwargs(self) -> dict[str, Any]:
        found: dict[str, Any] = self["kwargs"]
        return found

    @property
    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = self["options"]
        return found

    @property
    def immutable(self) -> bool:
        return bool(self["immutable"])

    @property
    def id(self) -> str | None:
        return self.options.get("task_id")

    @property
    def type(self) -> Any:
        return self.app.tasks[self.task]

    # Changes.

    def clone(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Signature:
        """A copy, with arguments before its own and other options."""
        args, kwargs, options = self._merge(args, kwargs, options)
        return Signature(
            self.task, args, kwargs, options, self.immutable, self._app, subtask_type=self["subtask_type"]
        )

    partial = clone

    def set(self, immutable: bool | None = None, **options: Any) -> Signature:
        """Change options: `add.s(1).set(countdown=10)`."""
        if immutable is not None:
            self["immutable"] = immutable
        self.options.update(options)
        return self

    def set_immutable(self, immutable: bool) -> None:
        self["immutable"] = immutable

    def link(self, callback: Any) -> Any:
        """Call this with the result when the task succeeds."""
        _append(self.options, "link", callback)
        return callback

    def link_error(self, errback: Any) -> Any:
        """Call this when the task fails."""
        _append(self.options, "link_error", errback)
        return errback

    def on_error(self, errback: Any) -> Signature:
        self.link_error(errback)
        return self

    def freeze(self, _id: str | None = None, **_: Any) -> Any:
        """Give it the id that its task will have, and return the result."""
        self.options.setdefault("task_id", _id or uuid())
        return AsyncResult(self.options["task_id"], app=self._app)

    # Use.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task here."""
        return self.type(*args, *self.args, **{**self.kwargs, **kwargs})

    def delay(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def apply_async(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Send it."""
        call = self.clone(args, kwargs, **options)
        app = self.app
        if app.conf.task_always_eager:
            return call.apply()
        if type(call) is Signature and call.task in app.tasks:
            merged = call.options
            return app.tasks[call.task].apply_async(call.args, call.kwargs, **merged)
        return apply_graph(app, call)

    def apply(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Run it here, now."""
        call = self.clone(args, kwargs, **options)
        return run_here(self.app, call)

    def __invert__(self) -> Any:
        return self.apply_async().get()

    def __or__(self, other: Any) -> Any:
        return chain(self, other, app=self._app)

    def __ror__(self, other: Any) -> Any:
        return chain(other, self, app=self._app)

    def __copy__(self) -> Signature:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Signature:
        return self.clone()

    def __reduce__(self) -> Any:
        return maybe_signature, (dict(self),)

    def __repr__(self) -> str:
        shown = [*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.kwargs.items())]
        return f"{self.task}({', '.join(shown)})"

    def __getattr__(self, name: str) -> Any:
        if name in _MISSING:
            raise refuse(f"{type(self).__name__}.{name}", _MISSING[name])
        raise AttributeError(name)

    def _merge(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        merged = {**self.options, **options}
        for name in ("link", "link_error"):
            both = [*listed(self.options.get(name)), *listed(options.get(name))]
            if both:
                merged[name] = both
        if self.immutable:
            return self.args, dict(self.kwargs), merged
        return (*args, *self.args), {**self.kwargs, **(kwargs or {})}, merged

    # The graph.

    def compile(self, graph: Graph, feed: Feed | None) -> Feed:
        """Add its intents to a graph. `feed`: the intents whose results it takes."""
        return graph.add(self, feed)


class chain(Signature):  # Celery's name
    """Calls one after the other. Each gets the result of the one before as its first argument."""

    def __init__(self, *tasks: Any, app: Celery | None = None, **options: Any) -> None:
        found = tasks[0] if len(tasks) == 1 and _is_many(tasks[0]) else tasks
        steps: list[Signature] = []
        for each in found:
            step = maybe_signature(each, app)
            steps += step.tasks if isinstance(step, chain) else [step]
        super().__init__(
            "celery.chain", (), {"tasks": steps}, options, app=app or _app_of(steps), subtask_type="chain"
        )

    @property
    def tasks(self) -> list[Signature]:
        return [maybe_signature(each, self._app) for each in self.kwargs["tasks"]]

    def clone(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> chain:
        steps = [each.clone() for each in self.tasks]
        merged = {**self.options, **options}
        if steps:
            steps[0] = steps[0].clone(args, kwargs, **_except(merged, "task_id", "link", "link_error"))
            if "task_id" in merged:
                steps[-1].set(task_id=merged["task_id"])
            for callback in listed(merged.get("link")):
                steps[-1].link(callback)
            for errback in listed(merged.get("link_error")):
                for step in steps:
                    step.link_error(errback)
        found = chain(app=self._app)
        found.kwargs["tasks"] = steps
        return found

    def link(self, callback: Any) -> Any:
        return self.tasks[-1].link(callback) if self._owned() else None

    def link_error(self, errback: Any) -> Any:
        for step in self._owned():
            step.link_error(errback)
        return errback

    def freeze(self, _id: str | None = None, **_: Any) -> Any:
        steps = self._owned()
        result = None
        for step in steps:
            found = step.freeze(_id if step is steps[-1] else None)
            found.parent, result = result, found
        return result

    def _owned(self) -> list[Signature]:
        """Its steps as signatures of its own, to be changed."""
        self.kwargs["tasks"] = found = self.tasks
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def __or__(self, other: Any) -> Any:
        return chain(*self.tasks, other, app=self._app)

    def __len__(self) -> int:
        return len(self.kwargs["tasks"])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.tasks))

    def compile(self, graph: Graph, feed: Feed | None) -> Feed:
        steps = self.tasks
        if not steps:
            raise ValueError("The chain is empty.")
        for step in steps:
            if isinstance(step, group) and not step.tasks and len(steps) > 1:
                continue  # as in Celery, an empty group is no step
            feed = step.compile(graph, feed)
        return feed if feed is not None else Many([], None)


class group(Signature):  # Celery's name
    """Calls at the same time."""

    def __init__(self, *tasks: Any, app: Celery | None = None, **options: Any) -> None:
        found = tasks[0] if len(tasks) == 1 and _is_many(tasks[0]) else tasks
        members = [maybe_signature(each, app) for each in found]
        super().__init__(
            "celery.group", (), {"tasks": members}, options, app=app or _app_of(members), subtask_type="group"
        )

    @property
    def tasks(self) -> list[Signature]:
        return [maybe_signature(each, self._app) for each in self.kwargs["tasks"]]

    def clone(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> group:
        merged = _except({**self.options, **options}, "task_id")
        return group([each.clone(args, kwargs, **merged) for each in self.tasks], app=self._app)

    def link(self, callback: Any) -> Any:
        self.kwargs["tasks"] = members = self.tasks
        return members[0].link(callback)

    def link_error(self, errback: Any) -> Any:
        self.kwargs["tasks"] = members = self.tasks
        for member in members:
            member.link_error(errback)
        return errback

    def freeze(self, _id: str | None = None, **_: Any) -> Any:
        self.kwargs["tasks"] = members = self.tasks
        return GroupResult(_id, [member.freeze() for member in members], app=self._app)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.apply_async(args, **options)

    def __or__(self, other: Any) -> Any:
        return chord(self, other, app=self._app)

    def __len__(self) -> int:
        return len(self.kwargs["tasks"])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"group({self.tasks!r})"

    def compile(self, graph: Graph, feed: Feed | None) -> Feed:
        parts: list[Feed] = []
        for member in self.tasks:
            made = member.compile(graph, feed)
            # A group in a group is part of it, as in Celery.
            parts += made.parts if isinstance(member, group) and isinstance(made, Many) else [made]
        return Many(parts, feed)


class chord(Signature):  # Celery's name
    """A group, and a callback that gets the list of its results."""

    def __init__(
        self,
        header: Any,
        body: Any = None,
        task: str = "celery.chord",
        app: Celery | None = None,
        **options: Any,
    ) -> None:
        members = header if isinstance(header, group) else group(header, app=app)
        found = None if body is None else maybe_signature(body, app)
        super().__init__(
            "celery.chord",
            (),
            {"header": members, "body": found},
            options,
            app=app or members._app,
            subtask_type="chord",
        )

    @property
    def header(self) -> group:
        found = maybe_signature(self.kwargs["header"], self._app)
        return found if isinstance(found, group) else group([found], app=self._app)

    @property
    def tasks(self) -> list[Signature]:
        return self.header.tasks

    @property
    def body(self) -> Signature | None:
        body = self.kwargs["body"]
        return None if body is None else maybe_signature(body, self._app)

    def clone(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> chord:
        merged = {**self.options, **options}
        body = self.body.clone() if self.body is not None else None
        for name in ("link", "link_error"):
            for each in listed(merged.get(name)):
                assert body is not None, "a chord without a body is not applied"
                body.link(each) if name == "link" else body.link_error(each)
        if body is not None and "task_id" in merged:
            body = body.clone(task_id=merged["task_id"])
        header = self.header.clone(args, kwargs, **_except(merged, "task_id", "link", "link_error"))
        return chord(header, body, app=self._app)

    def __call__(self, body: Any = None, **options: Any) -> Any:
        """Send it, with this callback: `chord(header)(callback)`."""
        found = self if body is None else chord(self.header, body, app=self._app, **self.options)
        return found.apply_async(**options)

    def link(self, callback: Any) -> Any:
        return self._owned_body().link(callback)

    def link_error(self, errback: Any) -> Any:
        return self._owned_body().link_error(errback)

    def freeze(self, _id: str | None = None, **_: Any) -> Any:
        self.kwargs["header"] = header = self.header
        members = header.freeze()
        result = self._owned_body().freeze(_id)
        result.parent = members
        return result

    def _owned_body(self) -> Signature:
        body = self.body
        if body is None:
            raise TypeError("The chord has no body.")
        self.kwargs["body"] = body
        return body

    def __len__(self) -> int:
        return len(self.header)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"chord({self.header!r}, {self.body!r})"

    def compile(self, graph: Graph, feed: Feed | None) -> Feed:
        body = self.body
        if body is None:
            raise TypeError("The chord has no body. Write chord(header, body) or chord(header)(body).")
        return body.compile(graph, self.header.compile(graph, feed))


_KINDS = {"chain": chain, "group": group, "chord": chord}

_MISSING = {
    "stamp": "Use headers.",
    "stamp_links": "Use headers.",
    "skew": "Use countdown of each member.",
    "election": "Use unique= of a Duetime task.",
    "replace": "Build the chain before it is sent.",
    "map": "Use a group.",
    "starmap": "Use a group.",
    "chunks": "Use a group.",
}


def maybe_signature(given: Any, app: Celery | None = None) -> Any:
    """A signature, also from its dict, as it arrives as an argument of a task. None stays None."""
    if given is None or isinstance(given, Signature):
        return given
    if not isinstance(given, dict):
        if hasattr(given, "s"):  # a task without arguments
            return given.s()
        raise TypeError(f"{given!r} is not a signature. Write task.s(...).")
    kind, options = given.get("subtask_type"), given.get("options") or {}
    parts = given.get("kwargs") or {}
    if kind == "chord":
        return chord(maybe_signature(parts["header"], app), parts["body"], app=app, **options)
    if kind in _KINDS:
        return _KINDS[kind](list(parts["tasks"]), app=app, **options)
    return Signature(given["task"], given.get("args"), parts, options, bool(given.get("immutable")), app)


def signature(varies: Any, *args: Any, **kwargs: Any) -> Any:
    """`signature("tasks.add", args=(2, 2), countdown=10)`, or a signature from its dict."""
    if isinstance(varies, dict):
        found = maybe_signature(varies)
        return found.clone() if isinstance(varies, Signature) else found
    return Signature(varies, *args, **kwargs)


subtask = signature


def apply_graph(app: Celery, call: Signature) -> Result:
    """Send all intents of a call together."""
    graph = Graph(app)
    end = call.compile(graph, None)
    graph.submit()
    return graph.result(end)


def run_here(app: Celery, call: Signature, feed: tuple[Any, ...] = ()) -> EagerResult | Result:
    """Run a call in this thread: `apply`, and `task_always_eager`."""
    if isinstance(call, chord):
        header = run_here(app, call.header, feed)
        body = call.body
        assert body is not None
        return run_here(app, body, (header.get(disable_sync_subtasks=False),))
    if isinstance(call, group):
        results = [run_here(app, member, feed) for member in call.tasks]
        return GroupResult(None, results, app=app)
    if isinstance(call, chain):
        last: Any = None
        for step in call.tasks:
            taken = feed if last is None else (last.get(disable_sync_subtasks=False),)
            last = run_here(app, step, taken)
        return last  # type: ignore[no-any-return]
    args = call.args if call.immutable else (*feed, *call.args)
    found: EagerResult = app.tasks[call.task].apply(args, call.kwargs, **call.options)
    return found


def _append(options: dict[str, Any], name: str, value: Any) -> None:
    found = listed(options.get(name))
    if value not in found:
        options[name] = [*found, value]


def _is_many(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, dict | str)


def _app_of(signatures: Iterable[Any]) -> Celery | None:
    return next((each._app for each in signatures if getattr(each, "_app", None) is not None), None)


def _except(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}
