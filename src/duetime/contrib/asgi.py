"""Runs a Duetime App inside an ASGI application such as Starlette or FastAPI.

    api = FastAPI(lifespan=lifespan(app))

The app is started before the first request and stopped after the last one, during the graceful shutdown of
the server. This module imports no framework: a lifespan is a function that takes the application.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from duetime.client.app.app import App
from duetime.contrib.relay import Relay

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]


def lifespan(
    app: App, inner: Lifespan | None = None, *, relays: tuple[Relay, ...] | list[Relay] = ()
) -> Callable[[object], AbstractAsyncContextManager[Mapping[str, object]]]:
    """A lifespan that starts the app, then the relays, then `inner`, and stops them in reverse order.

    `inner` is your own lifespan; it can use the app. In a request, the app is `request.state.duetime`, beside
    the values that `inner` yields. An app that is started already, such as that of the pytest plugin, is used
    as it is: the code that started it stops it.
    """

    @asynccontextmanager
    async def living(asgi: object) -> AsyncIterator[Mapping[str, object]]:
        async with AsyncExitStack() as stack:
            if app.loop is None:
                await stack.enter_async_context(app)
            for relay in relays:
                await stack.enter_async_context(relay)
            state = await stack.enter_async_context(inner(asgi)) if inner is not None else None
            yield {"duetime": app, **(state or {})}

    return living
