"""The router: the route table, and the responses if no route matches."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from duetime import errors
from duetime.api.access.auth import Gate, Role
from duetime.api.http.browsers import Browsers
from duetime.api.http.endpoint import Call, Endpoint, Load, refusal
from duetime.api.http.exchange import Answer, Exchange
from duetime.api.http.request_ids import Repeats
from duetime.errors import DuetimeError

_PARAMETER: Final = re.compile(r"{(\w+)(:path)?}")


class Parameter(Struct, frozen=True):
    """A parameter of the query or a header, for the OpenAPI document."""

    name: str
    description: str
    schema: Mapping[str, object] = MappingProxyType({"type": "string"})
    place: str = "query"
    required: bool = False


class Route(Struct, frozen=True, kw_only=True):
    """One operation: method, path, role, request and response."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Answer | None]]
    role: Role | None
    name: str
    summary: str
    about: str = ""
    """A description in addition to the summary and the parameters."""
    tag: str
    body: object = None
    body_required: bool = True
    ndjson: bool = False
    bulk: bool = False
    """A batch: the request may have the maximum size."""
    answers: Mapping[int, object]
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[type[DuetimeError], ...] = ()
    write: bool = False
    """A write, which can be repeated with its X-Duetime-Request-Id."""
    stream: bool = False
    waits: bool = False
    """A long poll: it has limits of its own, and is no running request while it waits."""
    media_type: str = "application/json"


class Served:
    """One path, and the endpoint of each of its methods."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pattern = re.compile(_PARAMETER.sub(_group, path)) if "{" in path else None
        self.endpoints: dict[str, Endpoint] = {}


class Router:
    """Passes each request to the endpoint of its method and path."""

    def __init__(
        self, routes: Iterable[Route], gate: Gate, load: Load, repeats: Repeats, browsers: Browsers
    ) -> None:
        self._load = load
        self._browsers = browsers
        self.routes = tuple(routes)
        self.served: dict[str, Served] = {}
        """By path, in the order of the table."""
        for route in self.routes:
            served = self.served.setdefault(route.path, Served(route.path))
            endpoint = _endpoint(route, gate, load, repeats)
            for method in (route.method, "HEAD") if route.method == "GET" else (route.method,):
                served.endpoints[method] = endpoint

    async def __call__(self, exchange: Exchange) -> None:
        head = exchange.head
        # Before any route: pages of other sites cannot use open routes either.
        error = self._browsers.judge(head.headers, head.version)
        if error is not None:
            self._load.refused(error)
            await exchange.respond(refusal(error))
            return
        methods: set[str] = set()
        for served, params in self.matches(head.path):
            endpoint = served.endpoints.get(head.method)
            if endpoint is not None:
                await endpoint(exchange, params)
                return
            methods |= served.endpoints.keys()
        await exchange.respond(_no_route(head.method, head.path, methods))

    def matches(self, path: str) -> Iterator[tuple[Served, Mapping[str, str]]]:
        """The matching paths of the table: first the equal one, then those with parameters, in order."""
        exact = self.served.get(path)
        if exact is not None and exact.pattern is None:
            yield exact, {}
        for served in self.served.values():
            if served.pattern is not None and (found := served.pattern.fullmatch(path)) is not None:
                yield served, found.groupdict()


def _group(parameter: re.Match[str]) -> str:
    return f"(?P<{parameter[1]}>{'.*' if parameter[2] else '[^/]+'})"


def _endpoint(route: Route, gate: Gate, load: Load, repeats: Repeats) -> Endpoint:
    handler = route.handler
    if route.write:

        async def once(call: Call) -> Answer | None:
            return await repeats.once(call, route.handler)  # type: ignore[arg-type]  # a write answers

        handler = once
    kind = {"stream": route.stream or route.waits, "ndjson": route.ndjson, "bulk": route.bulk}
    return Endpoint(handler, route.role, gate, load, **kind)


def _no_route(method: str, path: str, methods: set[str]) -> Answer:
    """`methods`: the methods of the path; empty: there is no such path."""
    if not methods:
        return refusal(errors.NoSuchRoute(f"There is no route {method} {path[:200]}."))
    answer = refusal(errors.NoSuchMethod(f"{path[:200]} does not support {method}."))
    answer.headers.append((b"allow", ", ".join(sorted(methods)).encode()))
    return answer
