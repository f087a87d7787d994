"""A Duetime App that lives as long as an ASGI application: for Starlette, FastAPI and their kin.

    api = FastAPI(lifespan=lifespan(app))

The app is started before the first request and stopped after the last one, within the server's own graceful
stop. Nothing of the framework is needed here: a lifespan is a function of the application.
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
) -> Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]:
    """A lifespan that starts the app and then relays, and then does what `inner` does; and back.

    `inner` is a lifespan of your own, in which the app can be used already. In a request the app is
    `request.state.duetime`, beside whatever `inner` yields.
    """

    @asynccontextmanager
    async def living(asgi: Any) -> AsyncIterator[Mapping[str, Any]]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(app)
            for relay in relays:
                await stack.enter_async_context(relay)
            state = await stack.enter_async_context(inner(asgi)) if inner is not None else None
            yield {"duetime": app, **(state or {})}

    return living
