"""Database connections of Django around each run, as around each request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from duetime.client.app.middleware import Middleware, Run


class DjangoConnections(Middleware):
    """Closes database connections that are unusable or too old, before and after each run."""

    def before_run(self, run: Run) -> Awaitable[None] | None:
        return _close_old()

    def run_ended(self, run: Run) -> Awaitable[None] | None:
        return _close_old()


def _close_old() -> Awaitable[None] | None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # a plain function: this thread has its own connections
        close_old_connections()
        return None
    # Around a coroutine: the connections belong to the thread in which Django runs its queries.
    found: Awaitable[None] = sync_to_async(close_old_connections)()
    return found
