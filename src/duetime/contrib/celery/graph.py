"""The intents of one canvas: compiled from signatures, submitted together.

An intent waits for the intents whose results it takes (`after`), and reads the results when it runs. How it
uses them is stored under one reserved keyword beside its arguments (`TOLD`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from duetime.client.remote.replies import id_of
from duetime.contrib.celery.exceptions import refuse
from duetime.limits import AFTER_MAX
from duetime.protocol.intent import Item, Ties, member_id
from duetime.protocol.terms import Terms

if TYPE_CHECKING:
    from duetime.contrib.celery.app import Celery
    from duetime.contrib.celery.canvas import Signature
    from duetime.contrib.celery.result import Result

TOLD = "__celery__"
"""The keyword beside the arguments of a task: `take` (how it takes the results of the intents before it),
`keep` (its result is needed), `delay` (seconds after the end of the one before), `errback`."""

_identity = id


class Node:
    """One intent."""

    def __init__(self, call: Signature, after: list[Node], id: str) -> None:
        self.call = call
        self.after = after
        self.id = id
        self.told: dict[str, Any] = {}
        self.group: Node | None = None
        """The node that has this one as a member: it waits for more than `after` can name."""


class One:
    """The result of one intent."""

    def __init__(self, node: Node, before: Feed | None) -> None:
        self.node = node
        self.before = before

    def nodes(self) -> Iterator[Node]:
        yield self.node

    def shape(self, numbers: Iterator[int]) -> Any:
        return next(numbers)


class Many:
    """The list of the results of a group."""

    def __init__(self, parts: list[Feed], before: Feed | None) -> None:
        self.parts = parts
        self.before = before

    def nodes(self) -> Iterator[Node]:
        for part in self.parts:
            yield from part.nodes()

    def shape(self, numbers: Iterator[int]) -> Any:
        return [part.shape(numbers) for part in self.parts]


Feed = One | Many


class Graph:
    """The intents of one call, in an order in which each comes after those that it waits for."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._nodes: list[Node] = []
        app.connect()
        self._now_ms = app.backend.now_ms()

    def add(self, call: Signature, feed: Feed | None) -> Feed:
        """A task that takes the results of `feed`."""
        from duetime.contrib.celery.canvas import maybe_signature

        nodes = [] if feed is None else list(feed.nodes())
        node = self._node(call, nodes)
        if feed is not None and not call.immutable:
            node.told["take"] = "all" if _is_flat(feed) else feed.shape(iter(range(len(nodes))))
            for each in nodes:
                each.told["keep"] = True
        countdown = call.options.get("countdown")
        if countdown and nodes:
            node.told["delay"] = countdown
        made = One(node, feed)
        for callback in listed(call.options.get("link")):
            maybe_signature(callback, self._app).compile(self, made)
        for errback in listed(call.options.get("link_error")):
            self._node(maybe_signature(errback, self._app), [node]).told["errback"] = True
        return made

    def _node(self, call: Signature, after: list[Node]) -> Node:
        node = Node(call, after, call.options.get("task_id") or self._app.new_id(self._now_ms))
        self._nodes.append(node)
        return node

    def submit(self) -> None:
        """Submit all intents together."""
        for node in self._nodes:
            if len(node.after) > AFTER_MAX:
                self._make_group(node)
        if self._nodes:  # a group may be empty
            self._app.call(self._submit()).wait()

    def result(self, feed: Feed, outer: Feed | None = None) -> Result:
        """The result of a part of the graph. `outer`: the feed that its group has taken, and shows itself."""
        from duetime.contrib.celery.result import AsyncResult, GroupResult

        before = feed.before
        parent = None if before is None or before is outer else self.result(before, outer)
        if isinstance(feed, One):
            return AsyncResult(feed.node.id, app=self._app, parent=parent)
        members: list[Result] = [self.result(part, before) for part in feed.parts]
        return GroupResult(None, members, app=self._app, parent=parent)

    def _make_group(self, node: Node) -> None:
        """More intents than `after` may name: they become the members of a group with this callback."""
        for number, member in enumerate(node.after):
            if member.group is not None or member.call.options.get("task_id"):
                raise refuse(
                    f"A chord of {len(node.after)} members, some with a task_id or in another chord",
                    f"Such a member can be in a chord of up to {AFTER_MAX} members.",
                )
            member.group, member.id = node, member_id(node.id, number)

    async def _submit(self) -> None:
        app = self._app
        terms: dict[int, tuple[int, Terms]] = {}
        items: list[Item] = []
        for node in _in_order(self._nodes):
            made, item = self._prepared(node)
            place, _ = terms.setdefault(_identity(made), (len(terms), made))
            items.append(replace(item, terms=place))
        shared = tuple(each for _, each in terms.values())
        ack = max(each.ack for each in shared)
        for reply in await app.backend.submit(shared, tuple(items), ack):
            id_of(reply)

    def _prepared(self, node: Node) -> tuple[Terms, Item]:
        call, grouped = node.call, len(node.after) > AFTER_MAX
        told = {TOLD: node.told} if node.told else {}
        planned = self._app.planned(
            call.task,
            call.options,
            after=[] if grouped else [each.id for each in node.after],
            blocked=bool(node.after),
            always="errback" in node.told,
        )
        args, kwargs = self._app.packed(call.task, call.args, call.kwargs, checked=not node.told)
        made, item = planned.prepare(node.id, args, {**kwargs, **told}, self._now_ms)
        if grouped:
            item = replace(item, ties=Ties(members=len(node.after)))
        elif node.group is not None:
            item = replace(item, ties=Ties(group=node.group.id))
        return made, item


def _in_order(nodes: list[Node]) -> Iterator[Node]:
    """The callback of a group comes before its members; every other intent after those that it waits for."""
    for node in nodes:
        if len(node.after) > AFTER_MAX:
            yield node
    for node in nodes:
        if len(node.after) <= AFTER_MAX:
            yield node


def _is_flat(feed: Feed) -> bool:
    return isinstance(feed, Many) and all(isinstance(part, One) for part in feed.parts)


def taken(take: Any, results: list[Any]) -> Any:
    """The results of the intents before, in the shape in which the task takes them."""
    if take == "all":
        return results
    if isinstance(take, list):
        return [taken(each, results) for each in take]
    return results[take]


def listed(value: Any) -> list[Any]:
    """One callback or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
