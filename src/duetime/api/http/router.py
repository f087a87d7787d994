"""The ASGI application: the route table, and what answers where no route does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from duetime import errors
from duetime.api.access.auth import Gate, Role
from duetime.api.http import problems
from duetime.api.http.browsers import Browsers
from duetime.api.http.endpoint import Answer, Call, Endpoint, Load, refusal, reply
from duetime.api.http.request_ids import Repeats
from duetime.errors import DuetimeError


class Parameter(Struct, frozen=True):
    """A parameter of the query or a header, as the document describes it."""

    name: str
    description: str
    schema: Mapping[str, Any] = MappingProxyType({"type": "string"})
    place: str = "query"
    required: bool = False


class Route(Struct, frozen=True, kw_only=True):
    """One operation: how it is reached, who may, what goes in, what comes out."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Answer | None]]
    role: Role | None
    name: str
    summary: str
    about: str = ""
    """What the summary and the parameters do not say."""
    tag: str
    body: Any = None
    body_required: bool = True
    ndjson: bool = False
    bulk: bool = False
    """A request may be about many, and as large as any."""
    answers: dict[int, Any]
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[type[DuetimeError], ...] = ()
    write: bool = False
    """A write can be repeated with its X-Duetime-Request-Id."""
    stream: bool = False
    media_type: str = "application/json"


class Guard:
    """Asked before any route: pages of other sites get nothing, not even what is open."""

    def __init__(self, app: ASGIApp, browsers: Browsers, load: Load) -> None:
        self._app = app
        self._browsers = browsers
        self._load = load

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = self._browsers.judge(scope["headers"], scope["http_version"])
        if error is None:
            await self._app(scope, receive, send)
        else:
            self._load.refused(error)
            await reply(send, refusal(error))


def build(routes: Iterable[Route], gate: Gate, load: Load, repeats: Repeats, browsers: Browsers) -> Starlette:
    """The application that serves these routes."""
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)
    served: list[BaseRoute] = []
    for path, same in by_path.items():
        served += [
            StarletteRoute(
                path, _endpoint(route, gate, load, repeats), methods=[route.method], name=route.name
            )
            for route in same
        ]
    application = Starlette(
        routes=served,
        middleware=[Middleware(Guard, browsers=browsers, load=load)],
        exception_handlers={HTTPException: _no_route},
    )
    application.router.redirect_slashes = False
    return application


def _endpoint(route: Route, gate: Gate, load: Load, repeats: Repeats) -> Endpoint:
    handler = route.handler
    if route.write:

        async def once(call: Call) -> Answer | None:
            return await repeats.once(call, route.handler)  # type: ignore[arg-type]  # a write answers

        handler = once
    kind = {"stream": route.stream, "ndjson": route.ndjson, "bulk": route.bulk}
    return Endpoint(handler, route.role, gate, load, **kind)


def _no_route(request: Request, error: Exception) -> Response:
    """What Starlette says when no route matches, as a problem."""
    assert isinstance(error, HTTPException)
    headers = {}
    if error.status_code == 405:
        problem: DuetimeError = errors.NoSuchMethod(f"{request.url.path} does not take {request.method}.")
        headers["allow"] = ", ".join(_methods(request))
    else:
        problem = errors.NoSuchRoute(f"There is no route {request.method} {request.url.path[:200]}.")
    return Response(
        problems.encode(problem), problem.status, headers, media_type=problems.MEDIA_TYPE.decode()
    )


def _methods(request: Request) -> list[str]:
    """Every method that the path takes: Starlette names only those of the first route that matches it."""
    found: set[str] = set()
    for route in request.app.router.routes:
        if isinstance(route, StarletteRoute) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)
