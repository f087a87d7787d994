"""An app with middleware: a worker process imports it, and tests schedule its functions."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar

from duetime import App, Middleware, NewCall, Retry, Run, current

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
hooks: ContextVar[tuple[str, ...]] = ContextVar("hooks", default=())
_logger = logging.getLogger("hooks")
app = App("http://127.0.0.1:1")
SOON = Retry(max_attempts=3, backoff="fixed", initial_delay="10ms", jitter=False)


class Tenants(Middleware):
    """Takes a context variable from the caller to the function."""

    def before_schedule(self, call: NewCall) -> None:
        call.headers["x-tenant"] = tenant.get()

    def before_run(self, run: Run) -> None:
        tenant.set(run.context.headers.get("x-tenant", "none"))


class Noting(Middleware):
    """A function can read which hooks ran before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def before_run(self, run: Run) -> None:
        hooks.set((*hooks.get(), f"{self.name} {run.context.task} {run.context.queue} {run.context.attempt}"))


class Waiting(Middleware):
    """A hook that waits for the event loop."""

    async def run_ended(self, run: Run) -> None:
        await asyncio.sleep(0)  # tidy: a turn of the loop
        _logger.info("ended %s %d", run.context.intent_id, run.context.attempt)


app.add_middleware(Tenants(), Noting("a"), Noting("b"), Waiting())


def _told() -> list[object]:
    return [tenant.get(), list(hooks.get())]


@app.task(name="coroutine", retry=SOON)
async def coroutine(fails: int = 0) -> list[object]:
    if current().attempt <= fails:
        raise ValueError("not yet")
    return _told()


@app.task(name="plain", retry=SOON)
def plain(fails: int = 0) -> list[object]:
    if current().attempt <= fails:
        raise ValueError("not yet")
    return _told()


@app.task(name="heavy", queue="heavy", cpu_bound=True)
def heavy() -> list[object]:
    return _told()


@app.task(name="relays")
async def relays() -> str:
    """Schedules another function: the tenant goes on with it."""
    return (await coroutine.schedule()).id


class Account:
    def __init__(self, id: str) -> None:
        self.id = id

    def deposit(self) -> list[object]:
        return _told()


accounts = app.entity(Account)


@app.every("365d", id="yearly")
@app.task(name="yearly", queue="rules")
def yearly() -> list[object]:
    return _told()
